//! The running side of `net.throughput` and of the loads.
use super::datagrams::{self, UdpTransferStats, Way};
use super::tcp_streams::{self, TcpTransferStats};
use super::Task;
use crate::clock;
use crate::error::{Kind, ProbeError};
use crate::net::client::reach;
use crate::net::connection::End;
use crate::net::messages::{count, receive_message, send_message};
use crate::net::rtt_client::{any_of, hello};
use crate::net::udp::batch;
use crate::net::udp::packet::flow_id;
use crate::session::Session;
use crate::trial::Trial;
use nephoscope_wire::lines::Peer;
use serde::de::DeserializeOwned;
use serde_json::{json, Value};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A receiver whose first byte took that long is waited for no longer.
const LATEST_NS: u64 = 10_000_000_000;

/// What both sides counted.
pub struct Both<T> {
    /// Here.
    pub near: T,
    /// There.
    pub far: T,
}

/// TCP streams; `trial`'s gate opens when all are connected.
pub fn streams(
    trial: &mut Trial,
    task: &Task,
    peer: &Peer,
) -> Result<Both<TcpTransferStats>, ProbeError> {
    let session = trial.session;
    let mut far = begin(session, task, peer)?;
    receive_message(&mut far)?;
    let connect = |wanted: bool, role: &str| {
        let one = |_| {
            let mut end = reach(session, peer)?;
            send_message(&mut end, &json!({ "role": role }))?;
            // The far side has taken it before the next one comes.
            receive_message(&mut end).map(|_| end.patient())
        };
        (0..if wanted { task.streams } else { 0 }).map(one).collect::<Result<Vec<_>, _>>()
    };
    let (senders, receivers) = (connect(task.up, "up")?, connect(task.down, "down")?);
    trial.prepared()?;
    send_message(&mut far, &json!({"go": true}))?;
    // A load of intensity 0 sends no first byte.
    let silent = task.press.is_some_and(|press| press.intensity_ratio == 0.0);
    let wanted = if silent { 0 } else { receivers.len() };
    let over = |progress: &tcp_streams::Progress, elapsed_ns: u64| {
        session.check()?;
        if session.is_stopped() {
            return Ok(true);
        }
        let least_ns = task.warmup_ns + task.duration_ns;
        let complete = progress.complete.load(Ordering::Relaxed) == wanted;
        let over = elapsed_ns >= least_ns && (complete || elapsed_ns >= least_ns + LATEST_NS);
        Ok(task.duration_ns > 0 && over)
    };
    let near = tcp_streams::run(task, senders, receivers, over, || {
        send_message(&mut far, &json!({"finish": true}))
    })?;
    let told: TcpTransferStats = read(receive_message(&mut far)?)?;
    nothing_lost("bytes", near.sent_bytes, told.received_bytes)?;
    nothing_lost("bytes", told.sent_bytes, near.received_bytes)?;
    Ok(Both { near, far: told })
}

/// Datagrams; `trial`'s gate opens when one has gone there and back.
pub fn datagrams(
    trial: &mut Trial,
    task: &Task,
    peer: &Peer,
) -> Result<Both<UdpTransferStats>, ProbeError> {
    let session = trial.session;
    let mut far = begin(session, task, peer)?;
    let port = u16::try_from(count(&receive_message(&mut far)?, "udp_port")?).unwrap_or(0);
    let to = SocketAddr::new(peer.address, port);
    let socket = batch::socket(any_of(peer.address)).map_err(|e| ProbeError::os("A socket", &e))?;
    let flow_id = flow_id(&peer.token);
    hello(session, &socket, to, flow_id)?;
    // From now on it counts datagrams instead of sending them back.
    send_message(&mut far, &json!({"heard": true}))?;
    receive_message(&mut far)?;
    trial.prepared()?;
    send_message(&mut far, &json!({"go": true}))?;
    let way = Way { socket: &socket, flow_id, far: to, sends: task.up };
    let near = datagrams::run(session, task, &way, |receiving, sender_ended| {
        let end_ns = clock::monotonic_ns() + task.duration_ns;
        loop {
            session.check()?;
            let time_over = task.duration_ns > 0 && clock::monotonic_ns() >= end_ns;
            let all_sent = receiving.all_sent.load(Ordering::Relaxed);
            // What is late at the end of the time is still sent where its number was promised.
            if session.is_stopped() || time_over && (all_sent || task.press.is_some()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let sent = sender_ended()?;
        send_message(&mut far, &json!({ "sent": sent }))?;
        let coming = count(&receive_message(&mut far)?, "sent")?;
        receiving.until_ns.store(clock::monotonic_ns() + task.wait_ns, Ordering::Relaxed);
        receiving.wanted.store(coming, Ordering::Relaxed);
        Ok(())
    })?;
    send_message(&mut far, &json!({"report": true}))?;
    let told: UdpTransferStats = read(receive_message(&mut far)?)?;
    not_more("datagrams", near.sent, told.received)?;
    not_more("datagrams", told.sent, near.received)?;
    Ok(Both { near, far: told })
}

fn begin(session: Session, task: &Task, peer: &Peer) -> Result<End, ProbeError> {
    let mut far = reach(session, peer)?.patient();
    send_message(&mut far, &json!(task))?;
    Ok(far)
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, ProbeError> {
    serde_json::from_value(value).map_err(|error| disagree(format!("It said: {error}.")))
}

fn nothing_lost(what: &str, sent: u64, received: u64) -> Result<(), ProbeError> {
    if sent == received {
        return Ok(());
    }
    Err(disagree(format!("{sent} {what} were sent and {received} arrived.")))
}

fn not_more(what: &str, sent: u64, received: u64) -> Result<(), ProbeError> {
    if received <= sent {
        return Ok(());
    }
    Err(disagree(format!("{sent} {what} were sent and {received} arrived.")))
}

fn disagree(what: String) -> ProbeError {
    ProbeError::new(
        Kind::Failed,
        "counts_disagree",
        format!("Both sides do not tell the same. {what}"),
        "Run it again; if it happens again, report it.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_loses_nothing_and_datagrams_may() {
        assert!(nothing_lost("bytes", 5, 5).is_ok());
        assert_eq!(nothing_lost("bytes", 5, 4).unwrap_err().name, "counts_disagree");
        assert!(not_more("datagrams", 5, 4).is_ok());
        assert_eq!(not_more("datagrams", 5, 6).unwrap_err().name, "counts_disagree");
    }
}
