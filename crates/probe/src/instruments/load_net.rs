//! # What it measures
//! Nothing about the way by itself: it is a load, to be run beside other benchmarks. It sends bytes
//! between two machines in bulk, as fast as they go, during a set share of the time or at a set rate,
//! and counts what arrived, so that it can be proved afterwards that the load was there all the time.
//!
//! # How
//! The running side sends (`send`) or receives (`receive`); the serving side does the other. Over TCP
//! each of `streams` connections has a thread at either end and carries bytes that do not compress.
//! Over UDP one thread sends datagrams of `packet_bytes`.
//!
//! With `rate_bits_per_s` 0 a sender writes as fast as the way takes it. With less than full
//! intensity it then writes for `intensity_ratio` of each period, waits until all of it has left (of
//! TCP: is acknowledged), which counts as part of its share, and is silent for the rest; what was too
//! much is taken from the next periods. Otherwise it writes at `intensity_ratio` times that rate, in
//! small pieces on an even beat; what is late by more than `interval_ns` is lost (of UDP: is sent
//! late). It ends after `duration_ns`, or when it is told to stop, and in both cases with all its
//! samples.
//!
//! # Known truth
//! Of TCP both sides count the same bytes, or the trial fails; the counters of the ports agree. A set
//! rate is kept within 2 % where the way carries it. The share of time is `intensity_ratio` within 2
//! points, and through a limit on the way half of the time carries half of the bytes.
//!
//! # Cross-check
//! iperf3 beside it, TCP and UDP at the same rate; `net.throughput` with the same parameters.
//!
//! # Overhead
//! A thread for each stream on either side, and the link: that is what it is for.
//!
//! # Caveats
//! The share is of the sender's time: a queue on the way may still be emptying in the rest of it.
//! Datagrams sent faster than the receiver takes them are lost at its socket; `load_bytes_per_s`
//! counts what arrived, `sent_bytes_per_s` what left.
use crate::error::ProbeError;
use crate::load::network_loads::{self, Names, DIRECTION, DROPS, INTENSITY, LOSS, USED_CPUS};
use crate::load::{self, DURATION, INTERVAL, PERIOD};
use crate::net::goodput::{client, server};
use crate::net::udp::packet::HEADER_BYTES;
use crate::trial::{ListenConfig, Trial};
use nephoscope_wire::spec::{Metric, Param, Spec};
use serde_json::Value;

pub const SPEC: Spec = Spec {
    id: "load.net",
    summary: "A load that sends bulk between two machines, and proves it",
    params: &[
        Param::choice("protocol", "tcp", &["tcp", "udp"]).doc("Streams of TCP, or datagrams."),
        DIRECTION,
        Param::float("rate_bits_per_s", 0.0, 0.0..=400e9)
            .doc("Payload of all streams a second; 0 is as much as goes."),
        Param::count("streams", 1, 1..=128).doc("TCP connections."),
        Param::int("send_bytes", 128 << 10, 1..=16 << 20)
            .doc("Bytes of one write, and at most of one read, of TCP; at a set rate at most."),
        Param::int("packet_bytes", 1400, HEADER_BYTES as i64..=65_507)
            .doc("Bytes of a UDP datagram, without the headers of UDP and IP."),
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_bytes_per_s")
            .headline()
            .doc("Payload bytes that the receiver got a second."),
        Metric::neutral("sent_bytes_per_s")
            .doc("Payload bytes that left the sender a second; of TCP those that arrived."),
        load::intensity(
            "Time of a sender with something under way over its time, mean of the streams; with a \
             set rate, what TCP carried or UDP sent over that rate.",
        ),
        LOSS,
        DROPS,
        USED_CPUS,
        Metric::neutral("interval_bytes_per_s")
            .series()
            .doc("Payload bytes that arrived a second in each interval, at its end."),
        load::interval_intensity("The intensity in each interval, at its end."),
    ],
    overhead: "a thread for each stream on either side; the chosen share of the link",
    source: "iperf3 under a duty cycle",
    two_sided: true,
    load: true,
};

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let tcp = trial.params.text("protocol") == "tcp";
    let packet_bytes = trial.params.size("packet_bytes");
    let bytes_per_s = trial.params.float("rate_bits_per_s") / 8.0;
    let rate = if tcp { bytes_per_s } else { bytes_per_s / packet_bytes as f64 };
    let mut task = network_loads::task(trial, tcp, packet_bytes, rate)?;
    task.streams = trial.params.size("streams");
    task.send_bytes = trial.params.size("send_bytes");
    let peer = trial.session.read_peer(SPEC.id)?;
    if tcp {
        let both = client::streams(trial, &task, &peer)?;
        return network_loads::emit_streams(trial, &task, &both, rate);
    }
    let both = client::datagrams(trial, &task, &peer)?;
    let names = Names {
        carried: "load_bytes_per_s",
        interval: "interval_bytes_per_s",
        sent: "sent_bytes_per_s",
        each: packet_bytes as f64,
    };
    network_loads::emit_datagrams(trial, &task, &both, rate, &names)
}

pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value, ProbeError> {
    server::serve(trial, listen)
}
