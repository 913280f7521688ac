//! # What it measures
//! The path between two machines as small datagrams see it: round-trip time, loss by direction,
//! delay variation and, if both sides share one clock, one-way delay.
//!
//! # How
//! The running side sends UDP datagrams at an even rate; sending times are fixed in advance (open
//! loop), so that a slow answer delays nothing, and the round trip counts from the scheduled time.
//! The far side (`serve`) returns each datagram with its receive and send times. Answers not
//! received within `wait_ns` after the last datagram are lost: counted, and never a time. The far
//! side reports its counts over TCP, so that losses of both directions are separate. Datagrams
//! carry a number derived from the token; others are ignored and counted. Of duplicates the first
//! counts. An answer that takes longer than `late_after_ns` is late, and counts all the same.
//!
//! `protocol` icmp or tcp needs no far side: `host` names any machine. ICMP goes through the kernel's
//! ping socket where it is permitted, else through a raw socket. A TCP probe is a connection,
//! established and reset. With `rate_per_s` 0 the loop is closed: each probe leaves when the one
//! before was answered or `wait_ns` has passed. `rtt_kernel_ns` ends when the kernel has received the
//! answer, and so leaves out the wake-up of the program, as `ping` does.
//!
//! `jitter_ns` follows RFC 3550 in the order of arrival; `ipdv_ns` is the absolute delay difference
//! of successive datagrams (RFC 3393); `pdv_ns` is the delay minus the minimum delay (RFC 5481),
//! which sizes a de-jitter buffer. They use actual sending times and need no common clock.
//! `delay_ns` does: `same_clock` states that there is one.
//!
//! # Known truth
//! Through virtual ports with a packet filter that drops at random, the counts of both sides and of
//! the filter agree, and the configured loss lies in the Wilson interval. A delay line's delay is
//! measured in each direction. The estimators give the results of a worked example. More received
//! than sent fails the trial.
//!
//! # Cross-check
//! `ping` (slightly shorter: no process at the far side); sockperf, irtt.
//!
//! # Overhead
//! `rate_per_s` times `packet_bytes` and 28 bytes of headers in each direction; `rate_per_s` times
//! `spin_ns` of a CPU for busy waiting.
//!
//! # Caveats
//! Times are taken by the programs and include their wake-ups. If more than 1 % of the datagrams
//! left more than 1 ms late (`late_sends_ratio`), the sender was measured, and the trial is
//! invalid. `receiver_drops_count` (full receive buffer) is part of the loss.
use crate::error::{ProbeError, Result};
use crate::http::requests::spec::AUTHORISED_HOSTS;
use crate::load;
use crate::net::probing::icmp::IcmpProber;
use crate::net::probing::one_socket_each::{OneSocketEach, ProbeExchange};
use crate::net::probing::{
    self, probe_samples, ProbingConfig, HOST, LATE_AFTER, STORED_PROBES, WAIT,
};
use crate::net::rtt_client::{ask, RttConfig, RttResult};
pub use crate::net::rtt_server::serve;
use crate::net::udp::packet::HEADER_BYTES;
use crate::trial::factors;
use crate::trial::{Factors, Trial};
use nephoscope_wire::meaning::{Contended, Literal, Victim};
use nephoscope_wire::spec::{joined, Metric, Param, RequestLoop, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "net.rtt",
    summary: "Round trip, loss, jitter and one-way delay between two machines",
    params: &[
        Param::choice("protocol", "udp", &["udp", "icmp", "tcp"]).doc(
            "UDP datagrams that the far side returns, ICMP echo requests, or TCP connections.",
        ),
        HOST.doc("Name or address of any host to probe by icmp or tcp, instead of a far side."),
        AUTHORISED_HOSTS.doc("Hosts beyond this machine that are yours to send more than 100 probes per second, by name or address."),
        Param::int("port", 0, 0..=65_535)
            .doc("TCP port to connect to; 0 takes that of the far side."),
        Param::float("rate_per_s", 1000.0, 0.0..=2_000_000.0)
            .doc("Probes per second; 0 sends each when the one before was answered."),
        Param::int("packet_bytes", 64, HEADER_BYTES as i64..=65_507)
            .doc("Bytes per datagram or echo request without UDP, ICMP and IP headers."),
        load::DURATION,
        WAIT,
        load::INTERVAL,
        Param::switch("same_clock", false)
            .doc("Assume that both sides share one clock, and report one-way delays."),
        Param::int("spin_ns", 50_000, 0..=10_000_000)
            .doc("Time of busy waiting before each datagram, for precise sending."),
        LATE_AFTER,
        STORED_PROBES,
    ],
    metrics: &joined::<_, 32>(&[
        &probe_samples::METRICS,
        &[
            Metric::lower("delay_ns")
                .histogram()
                .doc("One-way delay by direction; only with same_clock."),
            Metric::lower("jitter_ns")
                .doc("Interarrival jitter (RFC 3550) after the last datagram, by direction."),
            Metric::lower("ipdv_mean_ns")
                .doc("Mean absolute delay difference of successive arrivals, by direction."),
            Metric::lower("ipdv_ns")
                .histogram()
                .doc("Absolute delay difference of successive datagrams (RFC 3393), by direction."),
            Metric::lower("pdv_ns")
                .histogram()
                .doc("Delay minus the minimum delay (RFC 5481), by direction."),
            Metric::neutral("received_count")
                .doc("Number of different datagrams that reached the far side."),
            Metric::lower("duplicates_count").doc("Number of duplicate datagrams, by direction."),
            Metric::lower("reordered_count")
                .doc("Number of reordered datagrams (RFC 4737), by direction."),
            Metric::neutral("strangers_count")
                .doc("Number of ignored datagrams of other programs, by direction."),
            Metric::lower("receiver_drops_count")
                .doc("Number of datagrams dropped at a full receive buffer, by direction."),
        ],
    ]),
    overhead: "rate_per_s datagrams in each direction; rate_per_s times spin_ns of a CPU",
    source: "RFC 2681, RFC 3550, RFC 3393, RFC 5481, RFC 4737; irtt",
    two_sided: true,
    load: true,
    request_loop: RequestLoop::Open,
    victim_for: &[Victim {
        resource: Contended::Packets,
        metric: "rtt_ns",
        params: &[
            ("rate_per_s", Literal::Float(1000.0)),
            ("duration_ns", Literal::Int(300_000_000)),
            ("wait_ns", Literal::Int(100_000_000)),
        ],
    }],
    ..Spec::about(Resource::Network)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let host = trial.params.text("host").to_owned();
    let protocol = trial.params.text("protocol").to_owned();
    let config = ProbingConfig::of(trial)?;
    if protocol != "udp" {
        return run_without_far_side(trial, &protocol, &host, &config);
    }
    if !host.is_empty() {
        return Err(ProbeError::usage(
            "net.rtt: a host without a far side of Nephoscope answers ICMP and TCP only.",
            "Set protocol to icmp or tcp, or name a peer instead of a host.",
        ));
    }
    let question = RttConfig {
        probing: config,
        packet_bytes: trial.params.size("packet_bytes"),
        spin_ns: trial.params.u64("spin_ns"),
        same_clock: trial.params.bool("same_clock"),
    };
    let peer = trial.session.read_peer(SPEC.id)?;
    let answer = ask(trial, &question, &peer)?;
    say_counts(trial, &answer)?;
    probe_samples::emit_times(trial, &answer.back.trips)?;
    probe_samples::emit(trial, &answer.back.trips, answer.sent.packets, config.per_s)?;
    say_variation(trial, &answer, question.same_clock)
}

/// Measures toward any host, by what its kernel answers.
fn run_without_far_side(
    trial: &mut Trial,
    protocol: &str,
    host: &str,
    config: &ProbingConfig,
) -> Result<()> {
    let port = trial.params.u64("port") as u16;
    let is_tcp = protocol == "tcp";
    if is_tcp && port == 0 && !host.is_empty() {
        return Err(ProbeError::usage(
            format!("net.rtt: connections to {host} need a port."),
            "Set port to one on which a server listens there, such as 22, 80 or 443.",
        ));
    }
    let mut to = probing::destination(trial, host, port, config.per_s)?;
    let result = if is_tcp {
        if port > 0 {
            to.set_port(port);
        }
        let mut prober = OneSocketEach::new(to, ProbeExchange::Connect)?;
        probing::run(trial, config, &mut prober)?
    } else {
        let mut prober = IcmpProber::open(to.ip(), trial.params.size("packet_bytes"))?;
        probing::run(trial, config, &mut prober)?
    };
    probe_samples::emit_all(trial, &result, config.per_s)
}

fn direction_factors(direction: &str) -> Factors {
    factors! {"direction": direction}
}

fn say_counts(trial: &mut Trial, answer: &RttResult) -> Result<()> {
    let (sent, back, far) = (&answer.sent, &answer.back, &answer.far.counts);
    let (received, returned) = (far.received, back.trips.tracker.unique);
    trial.out.emit("sent_count", sent.packets as f64, factors! {})?;
    trial.out.emit("received_count", received as f64, factors! {})?;
    trial.out.emit("returned_count", returned as f64, factors! {})?;
    let of = |lost: u64, sent: u64| (sent > 0).then(|| lost as f64 / sent as f64);
    let losses = [
        ("up", of(sent.packets - received, sent.packets)),
        ("down", of(received - returned, received)),
        ("both", of(sent.packets - returned, sent.packets)),
    ];
    for (direction, ratio) in losses {
        trial.out.emit_known(&[("loss_ratio", ratio)], &direction_factors(direction))?;
    }
    let pairs = [
        ("duplicates_count", far.duplicates, back.trips.tracker.duplicates),
        ("reordered_count", far.reordered, back.trips.tracker.reordered),
        ("strangers_count", far.unauthenticated_peers, back.unauthenticated_peers),
    ];
    for (metric, up, down) in pairs {
        trial.out.emit(metric, up as f64, direction_factors("up"))?;
        trial.out.emit(metric, down as f64, direction_factors("down"))?;
    }
    for (direction, drops) in [("up", far.drops), ("down", answer.drops)] {
        let drops = drops.map(|drops| drops as f64);
        trial.out.emit_known(&[("receiver_drops_count", drops)], &direction_factors(direction))?;
    }
    let pace = [("sent_per_s", sent.per_s()), ("late_sends_ratio", Some(sent.late_ratio()))];
    trial.out.emit_known(&pace, &factors! {})
}

fn say_variation(trial: &mut Trial, answer: &RttResult, same_clock: bool) -> Result<()> {
    let (back, far) = (&answer.back.variation, &answer.far);
    let scalars = [
        ("jitter_ns", "up", far.jitter_ns),
        ("jitter_ns", "down", back.jitter.value_ns()),
        ("ipdv_mean_ns", "up", far.mean_difference_ns),
        ("ipdv_mean_ns", "down", back.jitter.mean_difference_ns()),
    ];
    for (metric, direction, value) in scalars {
        trial.out.emit_known(&[(metric, value)], &direction_factors(direction))?;
    }
    trial.out.emit_pairs("ipdv_ns", far.ipdv.iter().copied(), &direction_factors("up"))?;
    trial.out.emit_pairs("pdv_ns", far.pdv.iter().copied(), &direction_factors("up"))?;
    trial.emit_histogram("ipdv_ns", &back.ipdv, &direction_factors("down"))?;
    trial.emit_histogram("pdv_ns", &back.pdv(), &direction_factors("down"))?;
    if back.cut_off() || far.pdv_cut_off {
        trial.out.note("pdv_ns holds the first 1048576 datagrams of each direction.");
    }
    if !same_clock {
        return Ok(());
    }
    if answer.back.negative + far.counts.negative > 0 {
        trial.out.note("Datagrams arrived before they were sent: the sides do not share one clock, so no one-way delay is reported.");
        return Ok(());
    }
    trial.out.emit_pairs("delay_ns", far.delay.iter().copied(), &direction_factors("up"))?;
    trial.emit_histogram("delay_ns", &answer.back.delay, &direction_factors("down"))
}
