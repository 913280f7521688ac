//! # What it measures
//! Goodput of TCP connections between two machines, one or many, up, down or both at once; or the
//! delivery of a fixed rate of UDP datagrams.
//!
//! # How
//! Goodput is measured at the receiver by its own clock: payload bytes from the first read after
//! `warmup_ns` to the first read at least `duration_ns` later, per stream; stream rates add up.
//! Slow start lies in the warm-up. Senders write `send_bytes` of incompressible data at a time.
//! Retransmissions come from the kernel (`TCP_INFO`) when the last byte is acknowledged. UDP
//! datagrams leave at even intervals fixed in advance; the receiver counts what arrives. With
//! `duration_ns` 0 it runs until stopped. `up` is from the running to the serving side.
//!
//! # Known truth
//! TCP loses nothing: the bytes of both sides agree, or the trial fails. A rate limit on a pair of
//! virtual ports is reported, less the headers that it counts. Random drops of a packet filter lie
//! in the Wilson interval, and its own count agrees.
//!
//! # Cross-check
//! iperf3, interleaved; the kernel's counters of the ports.
//!
//! # Overhead
//! A thread per stream on either side; the link, full or at `rate_bits_per_s`.
//!
//! # Caveats
//! Many providers allow a burst before they limit: a short trial shows the burst. One stream over a
//! long path is bound by the socket buffers, which are the system's. Few CPUs may be the limit: see
//! `used_cpus` of both sides.
use crate::error::ProbeError;
use crate::net::goodput::client::{self, Both};
use crate::net::goodput::datagrams::{self, UdpTransferStats};
use crate::net::goodput::samples::{emit_intervals, emit_known, emit_used_cpus};
use crate::net::goodput::tcp_streams::TcpTransferStats;
use crate::net::goodput::{server, Task};
use crate::net::goodput::{PACKET_BYTES, RATE_BITS_PER_S_MAX, SEND_BYTES, STREAMS, WAIT, WARMUP};
use crate::trial::{Factors, ListenConfig, Trial};
use crate::{load, trial::factors};
use nephoscope_wire::spec::{Metric, Param, Spec};
use serde_json::Value;

pub const SPEC: Spec = Spec {
    id: "net.throughput",
    summary: "TCP goodput, or UDP delivery at a fixed rate, between two machines",
    params: &[
        Param::choice("protocol", "tcp", &["tcp", "udp"])
            .doc("TCP at full speed, or UDP at rate_bits_per_s."),
        Param::choice("direction", "up", &["up", "down", "both"])
            .doc("up: from the running to the serving side; down: the opposite; or both at once."),
        STREAMS.doc("Number of TCP connections in each direction."),
        SEND_BYTES.doc("Bytes per TCP write, and maximum bytes per read."),
        WARMUP.doc("Warm-up of a TCP stream after its first byte, not measured."),
        load::DURATION,
        load::INTERVAL,
        Param::float("rate_bits_per_s", 10e6, 1000.0..=RATE_BITS_PER_S_MAX)
            .doc("Offered UDP payload rate in each direction."),
        PACKET_BYTES.doc("Bytes per UDP datagram without UDP and IP headers."),
        WAIT.doc("Time to wait for the last UDP datagrams; later ones count as lost."),
    ],
    metrics: &[
        Metric::higher("goodput_bytes_per_s")
            .headline()
            .doc("Payload bytes received per second, all streams, by direction."),
        Metric::higher("stream_goodput_bytes_per_s")
            .doc("Payload bytes received per second by each TCP stream."),
        Metric::higher("interval_goodput_bytes_per_s")
            .series()
            .doc("Payload bytes received per second in each interval, including warm-up."),
        Metric::neutral("sent_bytes")
            .doc("Payload bytes sent over TCP, including warm-up; all arrived."),
        Metric::lower("retransmits_count").doc("Number of retransmitted TCP segments."),
        Metric::lower("retransmitted_ratio")
            .doc("Share of retransmitted bytes; 1 minus the TCP efficiency of RFC 6349."),
        Metric::lower("tcp_rtt_ns")
            .doc("Smoothed round-trip time of TCP at the end; maximum of the streams."),
        Metric::lower("buffer_delay_ratio").doc(
            "Increase of the TCP round-trip time over its minimum, relative to it (RFC 6349).",
        ),
        Metric::lower("used_cpus").doc("CPU time of the probe per elapsed time, by side."),
        Metric::neutral("sent_count").doc("Number of datagrams sent."),
        Metric::neutral("received_count").doc("Number of different datagrams that arrived."),
        Metric::lower("loss_ratio").doc("Share of lost datagrams."),
        Metric::neutral("sent_per_s").doc("Datagrams sent per second."),
        Metric::lower("jitter_ns").doc("Interarrival jitter (RFC 3550) after the last datagram."),
        Metric::lower("duplicates_count").doc("Number of duplicate datagrams."),
        Metric::lower("reordered_count").doc("Number of reordered datagrams (RFC 4737)."),
        Metric::lower("late_sends_ratio").doc("Share of datagrams sent more than 1 ms late."),
        Metric::neutral("strangers_count").doc("Number of ignored datagrams of other programs."),
        Metric::lower("receiver_drops_count")
            .doc("Number of datagrams dropped at a full receive buffer."),
    ],
    overhead: "a thread per stream on either side; the link, full or at rate_bits_per_s",
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
