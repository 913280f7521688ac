//! # What it measures
//! The cost of this machine's network stack: bytes per second over TCP on 127.0.0.1, and the
//! round-trip time of a small message. It is the upper bound of any network between programs here.
//!
//! # How
//! Both ends are threads of this process on a free port; the accepting end takes only the peer with
//! our own address and 16 random bytes. Throughput: each of `streams` connections has a sender that
//! writes `send_bytes` at a time and a receiver that reads up to as many; the receiver counts from
//! the first read after a warm-up of a tenth of `duration_ns` to the first read at least
//! `duration_ns` later; stream rates add up. Round trip: one message of `message_bytes` at a time
//! (`TCP_NODELAY`), timed at the sender. Socket buffers are the system's.
//!
//! # Known truth
//! All sent bytes arrive, or the trial fails. Message rate times mean round-trip time is 1. The
//! kernel's counters of the loopback interface agree with the bytes.
//!
//! # Cross-check
//! `benchmarks/net_loopback_vs_iperf3.py` alternates with iperf3, one stream.
//!
//! # Overhead
//! Two threads per stream at 100 % for 1.1 times `duration_ns`, for each part. Nothing listens
//! beyond loopback.
//!
//! # Caveats
//! Both ends share caches and CPUs: with fewer than two free CPUs per stream they take turns.
//! Placement matters; `pin` fixes it. The load is a closed loop.
use crate::error::Result;
use crate::net::loopback::{round_trips, throughput, Pins};
use crate::trial::affinity;
use crate::trial::factors;
use crate::trial::Trial;
use nephoscope_wire::meaning::{ClosedLoop, Headline};
use nephoscope_wire::spec::{Metric, Param, RequestLoop, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "net.loopback",
    summary: "TCP throughput and round trip of small messages over loopback",
    params: &[
        Param::choices("part", &["throughput", "round_trip"])
            .doc("Parts to measure one after the other; an empty list takes both."),
        Param::int("duration_ns", 300_000_000, 1_000_000..=3_600_000_000_000)
            .doc("Measured time of each part, after a warm-up of a tenth of it."),
        Param::count("streams", 1, 1..=64).doc("Number of connections of the throughput part."),
        Param::int("send_bytes", 128 << 10, 1..=16 << 20)
            .doc("Bytes per write, and maximum bytes per read, of the throughput part."),
        Param::int("message_bytes", 64, 1..=1 << 20)
            .doc("Bytes per message of the round-trip part."),
        Param::choice("pin", "none", &["none", "same", "apart"])
            .doc("CPUs of the two ends: chosen by the scheduler, the same CPU, or different CPUs."),
    ],
    metrics: &[
        Metric::higher("loopback_bytes_per_s")
            .headline()
            .in_summary(Headline::of("Loopback throughput"))
            .doc("Bytes received per second, all streams."),
        Metric::lower("loopback_round_trip_ns")
            .histogram()
            .headline()
            .doc("Round-trip time of a message."),
        Metric::higher("loopback_round_trips_per_s").doc("Round trips per second, one at a time."),
    ],
    overhead: "two threads per stream at 100 % for 1.1 times duration_ns, twice",
    source: "iperf3 (throughput) and netperf's TCP_RR (round trip)",
    request_loop: RequestLoop::Closed,
    closed_loops: &[ClosedLoop {
        rate: "loopback_round_trips_per_s",
        latency: "loopback_round_trip_ns",
        depth: "",
    }],
    ..Spec::about(Resource::Network)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let duration_ns = trial.params.u64("duration_ns");
    let pins = pins(trial);
    let session = trial.session;
    for part in trial.params.words(&SPEC, "part") {
        if part == "throughput" {
            let send_bytes = trial.params.size("send_bytes");
            let streams = trial.params.size("streams");
            let gate = || trial.prepared();
            let rate = throughput(session, streams, send_bytes, duration_ns, pins, gate)?;
            trial.out.emit("loopback_bytes_per_s", rate, factors! {})?;
        } else {
            let bytes = trial.params.size("message_bytes");
            let outcome = round_trips(session, bytes, duration_ns, pins, || trial.prepared())?;
            let rate = outcome.operations_per_s;
            trial.out.emit("loopback_round_trips_per_s", rate, factors! {})?;
            trial.emit_histogram("loopback_round_trip_ns", &outcome.latency, &factors! {})?;
        }
    }
    Ok(())
}

fn pins(trial: &mut Trial) -> Pins {
    let cpus = affinity::spread(2);
    let (first, second) = (cpus[0], cpus[1]);
    match trial.params.text("pin") {
        "same" => Pins { sender: Some(first), receiver: Some(first) },
        "apart" => {
            if first == second {
                trial.out.note("Only one CPU may be used, so both ends are pinned to it.");
            }
            Pins { sender: Some(first), receiver: Some(second) }
        }
        _ => Pins { sender: None, receiver: None },
    }
}
