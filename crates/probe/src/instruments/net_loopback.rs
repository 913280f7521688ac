//! # What it measures
//! What this machine's own network stack costs: bytes a second through TCP connections on 127.0.0.1,
//! and the time of a small message there and back. No wire takes part, so this is the most that any
//! network can give between programs here, and the least that a request can take.
//!
//! # How
//! Both ends are threads of this process, on a port that the kernel chooses; the accepting end takes
//! only the peer that has our own address and presents 16 random bytes. Throughput: each of `streams`
//! connections has one sender that writes `send_bytes` at a time and one receiver that reads up to as
//! many; bytes are counted at the receiver, from the first read after a warm-up of a tenth of
//! `duration_ns` to the first read at least `duration_ns` later, and the streams' rates add up. Round trip:
//! one message of `message_bytes` at a time goes there and back (`TCP_NODELAY`), each timed on the
//! sending side. Socket buffers are the system's own.
//!
//! # Known truth
//! All bytes that were sent arrive: a difference between both ends fails the trial. Messages go one at
//! a time, so their rate times their mean time is 1. The kernel's own counters of the loopback
//! interface agree with the bytes received.
//!
//! # Cross-check
//! `benchmarks/net_loopback_vs_iperf3.py` runs iperf3 beside it, interleaved, one stream.
//!
//! # Overhead
//! Two threads for each stream at 100 % for 1.1 times `duration_ns`, for each part. Nothing listens
//! beyond loopback.
//!
//! # Caveats
//! Copies between the two ends use the same caches and CPUs: with fewer than two free CPUs a stream,
//! sender and receiver take turns. Where the scheduler puts them decides much; `pin` takes that
//! decision. The load is a closed loop, labelled as such.
use crate::error::ProbeError;
use crate::net::loopback::{round_trips, throughput, Pins};
use crate::trial::Trial;
use crate::{affinity, trial::factors};
use nephoscope_wire::spec::{Metric, Param, Spec};

pub const SPEC: Spec = Spec {
    id: "net.loopback",
    summary: "TCP throughput and small-message round trip inside this machine",
    params: &[
        Param::choices("part", &["throughput", "round_trip"])
            .doc("What to measure, one after the other; empty means both."),
        Param::int("duration_ns", 300_000_000, 1_000_000..=3_600_000_000_000)
            .doc("How long each part is counted, after a warm-up of a tenth of it."),
        Param::count("streams", 1, 1..=64).doc("Connections that carry the throughput."),
        Param::int("send_bytes", 128 << 10, 1..=16 << 20)
            .doc("Bytes of one write, and at most of one read, of the throughput."),
        Param::int("message_bytes", 64, 1..=1 << 20).doc("Bytes of one message of the round trip."),
        Param::choice("pin", "none", &["none", "same", "apart"])
            .doc("Leave both ends to the scheduler, or pin them to the same or to different CPUs."),
    ],
    metrics: &[
        Metric::higher("loopback_bytes_per_s")
            .headline()
            .doc("Bytes received a second, over all streams."),
        Metric::lower("loopback_round_trip_ns")
            .histogram()
            .headline()
            .doc("Time of one message there and back."),
        Metric::higher("loopback_round_trips_per_s")
            .doc("Messages there and back a second, one at a time."),
    ],
    overhead: "two threads a stream at 100 % for 1.1 times duration_ns, twice",
    source: "iperf3 (throughput) and netperf's TCP_RR (round trip)",
    ..Spec::EMPTY
};

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
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
