//! The far side of `net.throughput` and of the loads.
use super::datagrams::{self, DatagramPath};
use super::{tcp_streams, StreamRole, TransferTask};
use crate::error::Result;
use crate::net::connection::{readable, End};
use crate::net::messages::{gone, receive_message, send_message, Signal, UdpPort};
use crate::net::server::{listen_both, Reception};
use crate::net::udp::packet::flow_id;
use crate::trial::{ListenConfig, Trial};
use nephoscope_linux::clock;
use serde_json::{json, Value};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value> {
    let (listener, socket, address) = listen_both(listen)?;
    trial.listens_at(address)?;
    let mut reception = Reception::new(trial.session, &listener, &listen.token);
    let Some(peer) = reception.next_peer(None)? else {
        return Ok(nothing());
    };
    let mut peer = peer.patient();
    loop {
        let task = receive_message::<TransferTask>(&mut peer)?.checked()?;
        send_message(&mut peer, &UdpPort { udp_port: address.port() })?;
        if task.tcp {
            return streams(&task, &mut reception, &mut peer);
        }
        let served = carry(&task, &socket, listen, &mut peer)?;
        // The peer may hang up where a task could have followed.
        if !task.more_follow || !wait_for_message(&peer)? || peer.peek(&mut [0])? == 0 {
            return Ok(served);
        }
    }
}

fn nothing() -> Value {
    json!({"sent_bytes": 0, "received_bytes": 0})
}

fn streams(task: &TransferTask, reception: &mut Reception, peer: &mut End) -> Result<Value> {
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    let wanted = task.streams * (usize::from(task.up) + usize::from(task.down));
    while senders.len() + receivers.len() < wanted {
        let Some(mut end) = reception.next_peer(Some(peer.far_ip()))? else {
            return Ok(nothing());
        };
        let role = receive_message(&mut end)?;
        send_message(&mut end, &Signal::Accepted)?;
        match role {
            StreamRole::Up => receivers.push(end.patient()),
            StreamRole::Down => senders.push(end.patient()),
        }
    }
    if !receive_signal(peer)? {
        return Ok(nothing());
    }
    let stats = tcp_streams::run(task, senders, receivers, |_, _| is_over(peer), || Ok(()))?;
    send_message(peer, &stats)?;
    Ok(json!({"sent_bytes": stats.sent_bytes, "received_bytes": stats.received_bytes}))
}

fn carry(
    task: &TransferTask,
    socket: &UdpSocket,
    listen: &ListenConfig,
    peer: &mut End,
) -> Result<Value> {
    let flow_id = flow_id(&listen.token).wrapping_add(task.number);
    let session = peer.session();
    let over =
        || session.check().map(|()| session.is_stopped() || readable([peer.as_raw_fd()], 0)[0]);
    let source = datagrams::answer_hellos(session, socket, flow_id, peer.far_ip(), over)?;
    if !receive_signal(peer)? {
        return Ok(nothing());
    }
    send_message(peer, &Signal::Counting)?;
    if !receive_signal(peer)? {
        return Ok(nothing());
    }
    let far = source.ok_or_else(gone)?;
    let path = DatagramPath { socket, flow_id, far, sends: task.down };
    let stats = datagrams::run(session, task, &path, |receiving, sender_ended| {
        if !wait_for_message(peer)? {
            receiving.until_ns.store(0, Ordering::Relaxed);
            return Ok(());
        }
        let coming = receive_message(peer)?;
        send_message(peer, &sender_ended()?)?;
        receiving.wanted.store(coming, Ordering::Relaxed);
        receiving.until_ns.store(clock::monotonic_ns() + task.wait_ns, Ordering::Relaxed);
        Ok(())
    })?;
    if !session.is_stopped() {
        receive_message::<Signal>(peer)?;
        send_message(peer, &stats)?;
    }
    Ok(json!({"sent": stats.sent.packets, "received": stats.received.packets}))
}

/// Waits for the peer's next signal and takes it; false when stopped first.
fn receive_signal(peer: &mut End) -> Result<bool> {
    Ok(wait_for_message(peer)? && receive_message::<Signal>(peer).map(|_| true)?)
}

/// Waits for the peer's next message; false when stopped first.
fn wait_for_message(peer: &End) -> Result<bool> {
    loop {
        peer.session().check()?;
        if peer.session().is_stopped() {
            return Ok(false);
        }
        if readable([peer.as_raw_fd()], 50)[0] {
            return Ok(true);
        }
    }
}

/// Returns whether the peer has ended the transfer, or this side was stopped.
fn is_over(peer: &mut End) -> Result<bool> {
    peer.session().check()?;
    if peer.session().is_stopped() {
        return Ok(true);
    }
    Ok(readable([peer.as_raw_fd()], 0)[0] && receive_message::<Signal>(peer).map(|_| true)?)
}
