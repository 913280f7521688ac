//! The running side of `net.throughput` and of the loads.
use super::datagrams::{self, DatagramPath, UdpTransferStats};
use super::tcp_streams::{self, TcpTransferStats};
use super::{StreamRole, TransferTask};
use crate::error::{FailureKind, ProbeError, Result};
use crate::net::client::reach;
use crate::net::connection::End;
use crate::net::messages::{receive_message, send_message, Signal, UdpPort};
use crate::net::rtt_client::{any_of, hello};
use crate::net::udp::batch;
use crate::net::udp::packet::flow_id;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_wire::lines::Peer;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A receiver whose first byte took that long is waited for no longer.
const LATEST_NS: u64 = 10_000_000_000;

pub struct TwoSided<T> {
    pub near: T,
    pub far: T,
}

/// TCP streams; `trial`'s gate opens when all are connected.
pub fn streams(
    trial: &mut Trial,
    task: &TransferTask,
    peer: &Peer,
) -> Result<TwoSided<TcpTransferStats>> {
    let session = trial.session;
    let mut far = reach(session, peer)?.patient();
    agree(&mut far, task, peer)?;
    let connect = |wanted: bool, role: StreamRole| {
        let stream = |_| {
            let mut end = reach(session, peer)?;
            send_message(&mut end, &role)?;
            // The far side has accepted it before the next one comes.
            receive_message::<Signal>(&mut end).map(|_| end.patient())
        };
        (0..if wanted { task.streams } else { 0 }).map(stream).collect::<Result<Vec<_>, _>>()
    };
    let senders = connect(task.up, StreamRole::Up)?;
    let receivers = connect(task.down, StreamRole::Down)?;
    trial.prepared()?;
    send_message(&mut far, &Signal::Go)?;
    // A load of intensity 0 sends no first byte.
    let silent = task.pace.is_some_and(|pace| pace.intensity_ratio == 0.0);
    let wanted = if silent { 0 } else { receivers.len() };
    let threads = senders.len() + receivers.len();
    let over = |progress: &tcp_streams::Progress, elapsed_ns: u64| {
        session.check()?;
        if session.is_stopped() {
            return Ok(true);
        }
        if task.stream_bytes > 0 {
            return Ok(progress.ended.load(Ordering::Relaxed) == threads);
        }
        let least_ns = task.warmup_ns + task.duration_ns;
        let complete = progress.complete.load(Ordering::Relaxed) == wanted;
        let over = elapsed_ns >= least_ns && (complete || elapsed_ns >= least_ns + LATEST_NS);
        Ok(task.duration_ns > 0 && over)
    };
    let near = tcp_streams::run(task, senders, receivers, over, || {
        send_message(&mut far, &Signal::Finish)
    })?;
    let far: TcpTransferStats = receive_message(&mut far)?;
    check_counts("bytes", near.sent_bytes, far.received_bytes, false)?;
    check_counts("bytes", far.sent_bytes, near.received_bytes, false)?;
    Ok(TwoSided { near, far })
}

/// A connection over which tasks of datagrams are agreed one after the other.
pub struct UdpSession {
    far: End,
    peer: Peer,
    socket: UdpSocket,
}

impl UdpSession {
    pub fn open(session: Session, peer: Peer) -> Result<Self> {
        let far = reach(session, &peer)?.patient();
        let bound = batch::socket(any_of(peer.address));
        let socket = bound.map_err(|error| ProbeError::os("A socket", &error))?;
        Ok(Self { far, peer, socket })
    }

    /// Sends and receives datagrams; `trial`'s gate opens when one has gone there and back.
    pub fn carry(
        &mut self,
        trial: &mut Trial,
        task: &TransferTask,
    ) -> Result<TwoSided<UdpTransferStats>> {
        let session = trial.session;
        let (far, socket) = (&mut self.far, &self.socket);
        let to = agree(far, task, &self.peer)?;
        let flow_id = flow_id(&self.peer.token).wrapping_add(task.number);
        hello(session, socket, to, flow_id)?;
        send_message(far, &Signal::Heard)?;
        receive_message::<Signal>(far)?;
        trial.prepared()?;
        send_message(far, &Signal::Go)?;
        let path = DatagramPath { socket, flow_id, far: to, sends: task.up };
        let near = datagrams::run(session, task, &path, |receiving, sender_ended| {
            let end_ns = clock::monotonic_ns() + task.duration_ns;
            loop {
                session.check()?;
                let time_over = task.duration_ns > 0 && clock::monotonic_ns() >= end_ns;
                let all_sent = receiving.all_sent.load(Ordering::Relaxed);
                // What is late at the end of the time is still sent where its number was promised.
                if session.is_stopped() || time_over && (all_sent || task.pace.is_some()) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            send_message(far, &sender_ended()?)?;
            receiving.wanted.store(receive_message(far)?, Ordering::Relaxed);
            receiving.until_ns.store(clock::monotonic_ns() + task.wait_ns, Ordering::Relaxed);
            Ok(())
        })?;
        send_message(far, &Signal::Report)?;
        let far: UdpTransferStats = receive_message(far)?;
        check_counts("datagrams", near.sent.packets, far.received.packets, true)?;
        check_counts("datagrams", far.sent.packets, near.received.packets, true)?;
        Ok(TwoSided { near, far })
    }
}

/// One task of datagrams.
pub fn datagrams(
    trial: &mut Trial,
    task: &TransferTask,
    peer: Peer,
) -> Result<TwoSided<UdpTransferStats>> {
    UdpSession::open(trial.session, peer)?.carry(trial, task)
}

/// Sends the task; returns the address of the far side's socket for datagrams.
fn agree(far: &mut End, task: &TransferTask, peer: &Peer) -> Result<SocketAddr> {
    send_message(far, task)?;
    let UdpPort { udp_port } = receive_message(far)?;
    Ok(SocketAddr::new(peer.address, udp_port))
}

/// Nothing arrives that was not sent, and where `may_lose` is false nothing is lost.
fn check_counts(what: &str, sent: u64, received: u64, may_lose: bool) -> Result<()> {
    if received == sent || may_lose && received < sent {
        return Ok(());
    }
    Err(ProbeError::new(
        FailureKind::Failed,
        "counts_disagree",
        format!(
            "The counts of both sides disagree: {sent} {what} were sent and {received} arrived."
        ),
        "Run it again; if it happens again, report it.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_loses_nothing_and_datagrams_may() {
        assert!(check_counts("bytes", 5, 5, false).is_ok());
        assert_eq!(check_counts("bytes", 5, 4, false).unwrap_err().name, "counts_disagree");
        assert!(check_counts("datagrams", 5, 4, true).is_ok());
        assert_eq!(check_counts("datagrams", 5, 6, true).unwrap_err().name, "counts_disagree");
    }
}
