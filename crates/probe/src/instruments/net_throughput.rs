//! # What it measures
//! How much the way between two machines carries: goodput of TCP connections, one or many, up, down
//! or both at once; or what of a set rate of UDP datagrams arrives.
//!
//! # How
//! Goodput is what the receiving program got, by its own clock: payload bytes from the first read
//! after `warmup_ns` to the first read at least `duration_ns` later, per stream, and the streams'
//! rates add up. Slow start and the first filling of buffers lie in the warm-up. Every sender writes
//! `send_bytes` at a time of bytes that do not compress. What the kernel sent again is asked of it
//! (`TCP_INFO`) when the last byte is acknowledged. UDP datagrams leave at an even rate on a schedule
//! that was fixed before the first; the receiver counts what arrives, and when. A load with `duration_ns`
//! 0 runs until it is told to stop. `up` is from the running to the serving side.
//!
//! # Known truth
//! TCP loses nothing: the bytes of both sides agree, or the trial fails. A rate limit on a pair of
//! virtual ports is reported, less the headers that such a limit counts. A packet filter that drops
//! datagrams at random is found with its set share in the Wilson interval, and its own count agrees.
//!
//! # Cross-check
//! iperf3, interleaved; the kernel's counters of the ports.
//!
//! # Overhead
//! A thread for each stream on either side, and the link, to the full or to `rate_bits_per_s`.
//!
//! # Caveats
//! Many providers let a burst pass before they limit: a short trial shows the burst. One stream over a
//! long way is bound by the sockets' buffers, which are the system's own here. Machines with few CPUs
//! may be the limit: `used_cpus` of both sides tells.
use crate::error::ProbeError;
use crate::net::goodput::client::{self, Both};
use crate::net::goodput::datagrams::{self, UdpTransferStats};
use crate::net::goodput::samples::{emit_intervals, emit_known, emit_used_cpus};
use crate::net::goodput::tcp_streams::TcpTransferStats;
use crate::net::goodput::{server, Task};
use crate::net::udp::packet::HEADER_BYTES;
use crate::trial::{Factors, ListenConfig, Trial};
use crate::{load, trial::factors};
use nephoscope_wire::spec::{Metric, Param, Spec};
use serde_json::Value;

pub const SPEC: Spec = Spec {
    id: "net.throughput",
    summary: "TCP goodput, or what arrives of a set rate of UDP, between two machines",
    params: &[
        Param::choice("protocol", "tcp", &["tcp", "udp"]).doc("TCP as fast as it goes, or UDP at a set rate."),
        Param::choice("direction", "up", &["up", "down", "both"]).doc("From the running to the serving side, the other way, or both at once."),
        Param::count("streams", 1, 1..=128).doc("TCP connections each way."),
        Param::int("send_bytes", 128 << 10, 1..=16 << 20).doc("Bytes of one write, and at most of one read, of TCP."),
        Param::int("warmup_ns", 300_000_000, 0..=600_000_000_000).doc("How long after its first byte a TCP stream is not counted."),
        load::DURATION,
        load::INTERVAL,
        Param::float("rate_bits_per_s", 10e6, 1000.0..=400e9).doc("Payload of UDP offered a second, each way."),
        Param::int("packet_bytes", 1400, HEADER_BYTES as i64..=65_507).doc("Bytes of a UDP datagram, without the headers of UDP and IP."),
        Param::int("wait_ns", 1_000_000_000, 0..=60_000_000_000).doc("How long the last UDP datagrams are awaited; then they are lost."),
    ],
    metrics: &[
        Metric::higher("goodput_bytes_per_s").headline().doc("Payload bytes that the receiver got a second, over all streams, by direction."),
        Metric::higher("stream_goodput_bytes_per_s").doc("The same of each TCP stream."),
        Metric::higher("interval_goodput_bytes_per_s").series().doc("The same in each interval, warm-up included, at its end since the receiver began."),
        Metric::neutral("sent_bytes").doc("Payload bytes that were sent over TCP, warm-up included; as many arrived."),
        Metric::lower("retransmits_count").doc("TCP segments that were sent again."),
        Metric::lower("retransmitted_ratio").doc("Bytes that TCP sent again out of all that it sent; RFC 6349's efficiency is 1 minus it."),
        Metric::lower("tcp_rtt_ns").doc("Smoothed round trip of TCP at the end; of several streams the longest."),
        Metric::lower("buffer_delay_ratio").doc("How much longer that was than the least round trip, over the least (RFC 6349)."),
        Metric::lower("used_cpus").doc("CPU time of the program over its time, by side."),
        Metric::neutral("sent_count").doc("Datagrams sent."),
        Metric::neutral("received_count").doc("Different datagrams that arrived."),
        Metric::lower("loss_ratio").doc("Lost out of sent."),
        Metric::neutral("sent_per_s").doc("Datagrams sent a second."),
        Metric::lower("jitter_ns").doc("Smoothed jitter of RFC 3550 after the last datagram."),
        Metric::lower("duplicates_count").doc("Datagrams that arrived again."),
        Metric::lower("reordered_count").doc("Datagrams that arrived after a later one (RFC 4737)."),
        Metric::lower("late_sends_ratio").doc("Share of datagrams that left more than 1 ms after they were due."),
        Metric::neutral("strangers_count").doc("Datagrams of others that were ignored."),
        Metric::lower("receiver_drops_count").doc("Datagrams that arrived and found the receiver's buffer full."),
    ],
    overhead: "a thread for each stream on either side; the link, full or at rate_bits_per_s",
    source: "iperf3; RFC 6349 (TCP), RFC 3550 (jitter), RFC 4737 (reordering)",
    two_sided: true,
    load: true,
};

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let params = &trial.params;
    let ns = |id| params.u64(id);
    let direction = params.text("direction");
    let packet_bytes = params.size("packet_bytes");
    let task = Task {
        tcp: params.text("protocol") == "tcp",
        up: direction != "down",
        down: direction != "up",
        streams: params.size("streams"),
        send_bytes: params.size("send_bytes"),
        warmup_ns: ns("warmup_ns"),
        duration_ns: load::duration_ns(trial)?,
        interval_ns: ns("interval_ns"),
        packet_bytes,
        per_s: params.float("rate_bits_per_s") / 8.0 / packet_bytes as f64,
        wait_ns: ns("wait_ns"),
        press: None,
    };
    let peer = trial.session.read_peer(SPEC.id)?;
    if task.tcp {
        let both = client::streams(trial, &task, &peer)?;
        emit_streams(trial, &task, &both)
    } else {
        let both = client::datagrams(trial, &task, &peer)?;
        emit_datagrams(trial, &task, &both)
    }
}

pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value, ProbeError> {
    server::serve(trial, listen)
}

fn way(direction: &str) -> Factors {
    factors! {"direction": direction}
}

/// (name, sender, receiver) of each direction that was asked for.
fn ways<'a, T>(task: &Task, both: &'a Both<T>) -> Vec<(&'static str, &'a T, &'a T)> {
    let all =
        [(task.up, ("up", &both.near, &both.far)), (task.down, ("down", &both.far, &both.near))];
    all.into_iter().filter(|(wanted, _)| *wanted).map(|(_, way)| way).collect()
}

fn emit_streams(
    trial: &mut Trial,
    task: &Task,
    both: &Both<TcpTransferStats>,
) -> Result<(), ProbeError> {
    for (direction, sender, receiver) in ways(task, both) {
        trial.out.emit("goodput_bytes_per_s", receiver.rates.iter().sum(), way(direction))?;
        for (stream, rate) in receiver.rates.iter().enumerate() {
            let factors = factors! {"direction": direction, "stream": stream};
            trial.out.emit("stream_goodput_bytes_per_s", *rate, factors)?;
        }
        emit_intervals(
            trial,
            "interval_goodput_bytes_per_s",
            &receiver.intervals,
            &way(direction),
        )?;
        trial.out.emit("sent_bytes", sender.sent_bytes as f64, way(direction))?;
        let Some(info) = sender.info else { continue };
        let values = [
            ("retransmits_count", Some(info.retransmits as f64)),
            ("retransmitted_ratio", info.retransmitted_ratio()),
            ("tcp_rtt_ns", Some(info.rtt_ns as f64)),
            ("buffer_delay_ratio", info.buffer_delay_ratio()),
        ];
        emit_known(trial, &values, &way(direction))?;
    }
    emit_used_cpus(trial, both)
}

fn emit_datagrams(
    trial: &mut Trial,
    task: &Task,
    both: &Both<UdpTransferStats>,
) -> Result<(), ProbeError> {
    for (direction, sender, receiver) in ways(task, both) {
        let (sender, receiver) = (&sender.sent, &receiver.received);
        let values = [
            ("goodput_bytes_per_s", receiver.bytes_per_s),
            ("sent_count", Some(sender.packets as f64)),
            ("received_count", Some(receiver.packets as f64)),
            ("loss_ratio", datagrams::loss_ratio(sender, receiver)),
            ("sent_per_s", sender.per_s),
            ("jitter_ns", receiver.jitter_ns),
            ("duplicates_count", Some(receiver.duplicates as f64)),
            ("reordered_count", Some(receiver.reordered as f64)),
            ("late_sends_ratio", Some(sender.late_ratio)),
            ("strangers_count", Some(receiver.strangers as f64)),
            ("receiver_drops_count", receiver.drops.map(|drops| drops as f64)),
        ];
        emit_known(trial, &values, &way(direction))?;
        emit_intervals(
            trial,
            "interval_goodput_bytes_per_s",
            &receiver.intervals,
            &way(direction),
        )?;
    }
    emit_used_cpus(trial, both)
}
