//! The far side of `net.throughput` and of the loads.
use super::datagrams::{self, Way};
use super::{tcp_streams, Task};
use crate::clock;
use crate::error::{Kind, ProbeError};
use crate::net::connection::{readable, End};
use crate::net::messages::{count, gone, receive_message, send_message};
use crate::net::server::{listen_both, next_peer};
use crate::net::udp::packet::flow_id;
use crate::trial::{ListenConfig, Trial};
use serde_json::{json, Value};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::Ordering;

/// Serves one peer.
pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value, ProbeError> {
    let (listener, socket, address) = listen_both(listen)?;
    trial.listens_at(address)?;
    let Some(peer) = next_peer(trial.session, &listener, &listen.token)? else {
        return Ok(nothing());
    };
    let mut peer = peer.patient();
    let task: Task = serde_json::from_value(receive_message(&mut peer)?).map_err(|error| {
        let message = format!("The peer asked for what is not understood: {error}.");
        let hint = "Use the same version of the probe on both sides.";
        ProbeError::new(Kind::Failed, "far_side_nonsense", message, hint)
    })?;
    send_message(&mut peer, &json!({"udp_port": address.port()}))?;
    if task.tcp {
        streams(&task, &listener, listen, &mut peer)
    } else {
        carry(&task, &socket, listen, &mut peer)
    }
}

fn nothing() -> Value {
    json!({"sent_bytes": 0, "received_bytes": 0})
}

fn streams(
    task: &Task,
    listener: &TcpListener,
    listen: &ListenConfig,
    peer: &mut End,
) -> Result<Value, ProbeError> {
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    let wanted = task.streams * (usize::from(task.up) + usize::from(task.down));
    while senders.len() + receivers.len() < wanted {
        let Some(mut end) = next_peer(peer.session(), listener, &listen.token)? else {
            return Ok(nothing());
        };
        let role = receive_message(&mut end)?;
        send_message(&mut end, &json!({"taken": true}))?;
        let ends = if role["role"] == "up" { &mut receivers } else { &mut senders };
        ends.push(end.patient());
    }
    if !word(peer)? {
        return Ok(nothing());
    }
    let flowed = tcp_streams::run(task, senders, receivers, |_, _| told(peer), || Ok(()))?;
    let counts = json!({"sent_bytes": flowed.sent_bytes, "received_bytes": flowed.received_bytes});
    send_message(peer, &json!(flowed))?;
    Ok(counts)
}

fn carry(
    task: &Task,
    socket: &UdpSocket,
    listen: &ListenConfig,
    peer: &mut End,
) -> Result<Value, ProbeError> {
    let flow_id = flow_id(&listen.token);
    let session = peer.session();
    let over = || session.check().map(|()| session.is_stopped() || readable(peer.descriptor(), 0));
    let source = datagrams::answer_hellos(session, socket, flow_id, peer.far_address(), over)?;
    if !word(peer)? {
        return Ok(nothing());
    }
    send_message(peer, &json!({"counting": true}))?;
    if !word(peer)? {
        return Ok(nothing());
    }
    let far = source.ok_or_else(gone)?;
    let way = Way { socket, flow_id, far, sends: task.down };
    let carried = datagrams::run(session, task, &way, |receiving, sender_ended| {
        if !word_or_end(peer)? {
            receiving.until_ns.store(0, Ordering::Relaxed);
            return Ok(());
        }
        let coming = count(&receive_message(peer)?, "sent")?;
        let sent = sender_ended()?;
        send_message(peer, &json!({ "sent": sent }))?;
        receiving.until_ns.store(clock::monotonic_ns() + task.wait_ns, Ordering::Relaxed);
        receiving.wanted.store(coming, Ordering::Relaxed);
        Ok(())
    })?;
    let counts = json!({"sent": carried.sent, "received": carried.received});
    if !session.is_stopped() {
        receive_message(peer)?;
        send_message(peer, &json!(carried))?;
    }
    Ok(counts)
}

/// Waits for the peer's next line and takes it; false when told to stop first.
fn word(peer: &mut End) -> Result<bool, ProbeError> {
    Ok(word_or_end(peer)? && receive_message(peer).map(|_| true)?)
}

/// Waits for the peer's next line; false when told to stop first.
fn word_or_end(peer: &End) -> Result<bool, ProbeError> {
    loop {
        peer.session().check()?;
        if peer.session().is_stopped() {
            return Ok(false);
        }
        if readable(peer.descriptor(), 50) {
            return Ok(true);
        }
    }
}

/// Whether the peer has said that it is over.
fn told(peer: &mut End) -> Result<bool, ProbeError> {
    peer.session().check()?;
    if peer.session().is_stopped() {
        return Ok(true);
    }
    Ok(readable(peer.descriptor(), 0) && receive_message(peer).map(|_| true)?)
}
