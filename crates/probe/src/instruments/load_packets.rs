//! # What it measures
//! Nothing about the way by itself: it is a load, to be run beside other benchmarks. It sends small
//! datagrams between two machines, as many as go, during a set share of the time or at a set rate:
//! few bytes, but work for every port, switch and kernel on the way. It counts them, so that it can
//! be proved afterwards that the load was there all the time.
//!
//! # How
//! The running side sends (`send`) or receives (`receive`) UDP datagrams of `packet_bytes`; the
//! serving side does the other. One thread sends up to 64 of them with one system call; each carries
//! its number, so that the receiver counts every one once. Shares, rates and ends are those of
//! `load.net`.
//!
//! # Known truth
//! The counters of a port show as many as were sent. A set rate is kept within 2 %, where the sender
//! can do it. The share of time is `intensity_ratio` within 2 points. None arrives that was not sent,
//! or the trial fails.
//!
//! # Cross-check
//! iperf3 over UDP with datagrams of the same size; the counters of the ports.
//!
//! # Overhead
//! A CPU at the sending side, at full intensity, and one at the receiving side.
//!
//! # Caveats
//! A receiver that is too slow drops at its socket (`receiver_drops_count`); what it dropped has come
//! all the way and was a load on it: `sent_packets_per_s` counts that too. On loopback both sides
//! share one machine, and the sender's own time does the receiving.
use crate::error::ProbeError;
use crate::load::network_loads::{self, Names, DIRECTION, DROPS, INTENSITY, LOSS, USED_CPUS};
use crate::load::{self, DURATION, INTERVAL, PERIOD};
use crate::net::goodput::{client, server};
use crate::net::udp::packet::HEADER_BYTES;
use crate::trial::{ListenConfig, Trial};
use nephoscope_wire::spec::{Metric, Param, Spec};
use serde_json::Value;

pub const SPEC: Spec = Spec {
    id: "load.packets",
    summary: "A load that sends many small datagrams between two machines, and proves it",
    params: &[
        DIRECTION,
        Param::float("packets_per_s", 0.0, 0.0..=1e8).doc("Datagrams a second; 0 is as many as go."),
        Param::int("packet_bytes", 64, HEADER_BYTES as i64..=1472).doc("Bytes of a datagram, without the headers of UDP and IP."),
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_packets_per_s").headline().doc("Different datagrams that the receiving program got a second."),
        Metric::neutral("sent_packets_per_s").doc("Datagrams sent a second."),
        load::intensity(
            "Time of the sender with something under way over its time; with a set rate, datagrams \
             sent over that rate.",
        ),
        LOSS,
        DROPS,
        USED_CPUS,
        Metric::neutral("interval_packets_per_s").series().doc("Datagrams that arrived a second in each interval, at its end."),
        load::interval_intensity("The intensity in each interval, at its end."),
    ],
    overhead: "one CPU on either side at full intensity; few bytes on the link",
    source: "packet rates of RFC 2544's smallest frames, from one socket",
    two_sided: true,
    load: true,
};

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let rate = trial.params.float("packets_per_s");
    let task = network_loads::task(trial, false, trial.params.size("packet_bytes"), rate)?;
    let peer = trial.session.read_peer(SPEC.id)?;
    let both = client::datagrams(trial, &task, &peer)?;
    let names = Names {
        carried: "load_packets_per_s",
        interval: "interval_packets_per_s",
        sent: "sent_packets_per_s",
        each: 1.0,
    };
    network_loads::emit_datagrams(trial, &task, &both, rate, &names)
}

pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value, ProbeError> {
    server::serve(trial, listen)
}
