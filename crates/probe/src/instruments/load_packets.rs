//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. It sends small datagrams
//! between two machines at full speed, for a share of the time or at a fixed rate: few bytes, but
//! work for every port, switch and kernel on the path. It counts them, so that its presence is
//! verified.
//!
//! # How
//! The running side sends (`send`) or receives (`receive`) UDP datagrams of `packet_bytes`, the
//! serving side does the opposite. One thread sends up to 64 datagrams per system call; each is
//! numbered, so that the receiver counts it once. Shares, rates and ends are those of `load.net`.
//!
//! # Known truth
//! The counters of a port agree with the number sent. A fixed rate is kept within 2 % if the sender
//! can. The share of time is `intensity_ratio` within 2 points. More received than sent fails the
//! trial.
//!
//! # Cross-check
//! iperf3 over UDP with datagrams of the same size; the counters of the ports.
//!
//! # Overhead
//! At full intensity one CPU at either side.
//!
//! # Caveats
//! Datagrams dropped at the receiver's socket (`receiver_drops_count`) crossed the whole path and
//! loaded it: `sent_packets_per_s` includes them. On loopback both sides share one machine, and the
//! sender's time includes the receiving.
use crate::error::Result;
use crate::load::{self, DURATION, INTERVAL, PERIOD};
use crate::net::goodput::background_load::{
    self, Names, DIRECTION, DROPS, INTENSITY, LOSS, USED_CPUS,
};
use crate::net::goodput::client;
pub use crate::net::goodput::server::serve;
use crate::net::udp::packet::HEADER_BYTES;
use crate::trial::Trial;
use nephoscope_wire::meaning::{Aggressor, Contended, Literal};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "load.packets",
    summary: "Verified network load: many small datagrams between two machines",
    params: &[
        DIRECTION,
        Param::float("packets_per_s", 0.0, 0.0..=1e8)
            .doc("Datagrams per second; 0 for full speed."),
        Param::int("packet_bytes", 64, HEADER_BYTES as i64..=1472)
            .doc("Bytes per datagram without UDP and IP headers."),
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_packets_per_s")
            .headline()
            .doc("Different datagrams received per second."),
        Metric::neutral("sent_packets_per_s").doc("Datagrams sent per second."),
        load::intensity("Share of the time the sender sends; or of packets_per_s."),
        LOSS,
        DROPS,
        USED_CPUS,
        Metric::neutral("interval_packets_per_s")
            .series()
            .doc("Datagrams received per second in each interval, at its end."),
        load::interval_intensity("Load level reached in each interval, at its end."),
    ],
    overhead: "one CPU on either side at full intensity; few bytes on the link",
    source: "packet rates of RFC 2544's smallest frames, from one socket",
    two_sided: true,
    load: true,
    aggressor_for: &[Aggressor {
        resource: Contended::Packets,
        params: &[("direction", Literal::Text("send"))],
    }],
    ..Spec::about(Resource::Network)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let rate = trial.params.float("packets_per_s");
    let task = background_load::task(trial, false, trial.params.size("packet_bytes"), rate)?;
    let peer = trial.session.read_peer(SPEC.id)?;
    let sides = client::datagrams(trial, &task, peer)?;
    let names = Names {
        rate_metric: "load_packets_per_s",
        interval: "interval_packets_per_s",
        sent: "sent_packets_per_s",
        each: 1.0,
    };
    background_load::emit_datagrams(trial, &task, &sides, rate, &names)
}
