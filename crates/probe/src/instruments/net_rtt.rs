//! # What it measures
//! The way between two machines as small datagrams see it: how long one takes there and back, how
//! many are lost, and on which way, how much their delay varies, and, where both sides share one
//! clock, how long each way takes.
//!
//! # How
//! The running side sends UDP datagrams at an even rate; when each is due is fixed before the first
//! one leaves (open loop), so that a slow answer delays nothing, and the round trip counts from the
//! moment when a datagram was due. The far side (`serve`) sends each back with both times at which
//! it had it. After the last one answers are awaited for `wait_ns`; what has not come by then is
//! lost: counted, and never a time. The far side tells its own counts over TCP, so that loss on the
//! way there and on the way back are told apart. Datagrams carry a number drawn from the token;
//! others are ignored and counted. Of a duplicate the first counts.
//!
//! `jitter_ns` is that of RFC 3550, in the order of arrival; `ipdv_ns` the difference of the delays of
//! two datagrams that follow one another (RFC 3393), without its sign; `pdv_ns` the delay minus the
//! least delay (RFC 5481), which sizes a de-jitter buffer. They use the times when datagrams were
//! really sent and need no common clock. `delay_ns`, one way, does: `same_clock` says that there is
//! one (one machine, or a synchronisation that is better than what is to be seen).
//!
//! # Known truth
//! Through a pair of virtual ports with a packet filter that drops at random, the counts of both sides
//! and of the filter agree, and the loss set lies in the Wilson interval. Through a delay line the
//! delay set is measured each way. The estimators give the figures of a worked example. Nothing that
//! was not sent arrives: other counts fail the trial.
//!
//! # Cross-check
//! `ping` (its round trip has no process on the far side and is a little shorter); sockperf, irtt.
//!
//! # Overhead
//! `rate_per_s` times `packet_bytes`, and 28 bytes of IP and UDP, each way. The sender looks at the
//! clock for `spin_ns` before each datagram: a share of a CPU of `rate_per_s` times that.
//!
//! # Caveats
//! Times are taken by the programs, and hold the waking up of both. The share of datagrams that left
//! more than 1 ms late is reported; above 1 % the sender, and not the network, was measured, and the
//! trial does not count. `receiver_drops_count` are datagrams that arrived and found a program that
//! was too slow; they are part of the loss.
use crate::error::ProbeError;
use crate::load;
use crate::net::rtt_client::{ask, RttConfig, RttResult};
use crate::net::rtt_server;
use crate::net::udp::packet::HEADER_BYTES;
use crate::trial::factors;
use crate::trial::{Factors, ListenConfig, Trial};
use nephoscope_wire::spec::{Metric, Param, Spec};
use serde_json::Value;

pub const SPEC: Spec = Spec {
    id: "net.rtt",
    summary: "Round trip, loss, jitter and one-way delay between two machines",
    params: &[
        Param::float("rate_per_s", 1000.0, 0.1..=2_000_000.0).doc("Datagrams a second."),
        Param::int("packet_bytes", 64, HEADER_BYTES as i64..=65_507)
            .doc("Bytes of each datagram, without the headers of UDP and IP."),
        load::DURATION,
        Param::int("wait_ns", 1_000_000_000, 0..=60_000_000_000)
            .doc("How long answers are awaited after the last datagram; then they are lost."),
        load::INTERVAL,
        Param::switch("same_clock", false)
            .doc("Whether both sides share one clock, so that one-way delays can be told."),
        Param::int("spin_ns", 50_000, 0..=10_000_000).doc(
            "How long before each datagram the sender looks at the clock instead of sleeping.",
        ),
    ],
    metrics: &[
        Metric::lower("rtt_ns")
            .histogram()
            .headline()
            .doc("Time from when a datagram was due until it was back."),
        Metric::lower("rtt_sent_ns")
            .histogram()
            .doc("Time from when a datagram was sent until it was back."),
        Metric::lower("rtt_sent_mean_ns")
            .doc("Mean of the same over one trial: what `ping` prints as avg."),
        Metric::lower("rtt_sent_max_ns")
            .doc("Longest of them: `ping`'s max. It grows with the number of datagrams."),
        Metric::lower("rtt_sent_stdev_ns").doc("Their standard deviation: `ping`'s mdev."),
        Metric::lower("interval_rtt_ns")
            .series()
            .doc("Median round trip of what came back in each interval, at its end."),
        Metric::lower("interval_rtt_max_ns")
            .series()
            .doc("Longest round trip of what came back in each interval, at its end."),
        Metric::lower("delay_ns")
            .histogram()
            .doc("Time of one way, by direction; only where the clocks are one."),
        Metric::lower("jitter_ns")
            .doc("Smoothed jitter of RFC 3550 after the last datagram, by direction."),
        Metric::lower("ipdv_mean_ns").doc(
            "Mean difference of the delays of two arrivals in a row, without sign, by direction.",
        ),
        Metric::lower("ipdv_ns")
            .histogram()
            .doc("Difference of the delays of neighbouring datagrams, without sign, by direction."),
        Metric::lower("pdv_ns").histogram().doc("Delay minus the least delay, by direction."),
        Metric::lower("loss_ratio")
            .doc("Lost out of sent, by direction; `both` is there and back."),
        Metric::neutral("sent_count").doc("Datagrams sent."),
        Metric::neutral("received_count").doc("Different datagrams that reached the far side."),
        Metric::neutral("returned_count").doc("Different datagrams that came back."),
        Metric::neutral("sent_per_s").doc("Datagrams sent a second."),
        Metric::lower("duplicates_count").doc("Datagrams that arrived again, by direction."),
        Metric::lower("reordered_count")
            .doc("Datagrams that arrived after a later one (RFC 4737), by direction."),
        Metric::lower("late_sends_ratio")
            .doc("Share of datagrams that left more than 1 ms after they were due."),
        Metric::neutral("strangers_count")
            .doc("Datagrams of others that were ignored, by direction."),
        Metric::lower("receiver_drops_count")
            .doc("Datagrams that arrived and found the receiver's buffer full, by direction."),
    ],
    overhead: "rate_per_s datagrams each way; rate_per_s times spin_ns of a CPU",
    source: "RFC 2681, RFC 3550, RFC 3393, RFC 5481, RFC 4737; irtt",
    two_sided: true,
    load: true,
};

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let ns = |id| trial.params.u64(id);
    let question = RttConfig {
        per_s: trial.params.float("rate_per_s"),
        packet_bytes: trial.params.size("packet_bytes"),
        duration_ns: load::duration_ns(trial)?,
        wait_ns: ns("wait_ns"),
        interval_ns: ns("interval_ns"),
        spin_ns: ns("spin_ns"),
        same_clock: trial.params.bool("same_clock"),
    };
    let peer = trial.session.read_peer(SPEC.id)?;
    let answer = ask(trial, &question, &peer)?;
    say_counts(trial, &answer)?;
    say_times(trial, &answer)?;
    say_variation(trial, &answer, question.same_clock)
}

pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value, ProbeError> {
    rtt_server::serve(trial, listen)
}

fn way(direction: &str) -> Factors {
    factors! {"direction": direction}
}

fn say_counts(trial: &mut Trial, answer: &RttResult) -> Result<(), ProbeError> {
    let (sent, back, far) = (&answer.sent, &answer.back, &answer.far.counts);
    let (received, returned) = (far.received, back.tracker.unique);
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
        if let Some(ratio) = ratio {
            trial.out.emit("loss_ratio", ratio, way(direction))?;
        }
    }
    let pairs = [
        ("duplicates_count", far.duplicates, back.tracker.duplicates),
        ("reordered_count", far.reordered, back.tracker.reordered),
        ("strangers_count", far.strangers, back.strangers),
    ];
    for (metric, up, down) in pairs {
        trial.out.emit(metric, up as f64, way("up"))?;
        trial.out.emit(metric, down as f64, way("down"))?;
    }
    for (direction, drops) in [("up", far.drops), ("down", answer.drops)] {
        if let Some(drops) = drops {
            trial.out.emit("receiver_drops_count", drops as f64, way(direction))?;
        }
    }
    if let Some(per_s) = sent.per_s() {
        trial.out.emit("sent_per_s", per_s, factors! {})?;
    }
    trial.out.emit("late_sends_ratio", sent.late_ratio(), factors! {})
}

fn say_times(trial: &mut Trial, answer: &RttResult) -> Result<(), ProbeError> {
    let back = &answer.back;
    if back.tracker.unique == 0 {
        trial.out.note("Nothing came back: there is no round trip to tell, and all of it is loss.");
    }
    trial.emit_histogram("rtt_ns", &back.rtt, &factors! {})?;
    trial.emit_histogram("rtt_sent_ns", &back.rtt_sent, &factors! {})?;
    if back.tracker.unique > 0 {
        let sent = &back.rtt_sent;
        trial.out.emit("rtt_sent_mean_ns", sent.mean(), factors! {})?;
        trial.out.emit("rtt_sent_max_ns", sent.max() as f64, factors! {})?;
        trial.out.emit("rtt_sent_stdev_ns", sent.stdev(), factors! {})?;
    }
    for (end_ns, median_ns, longest_ns) in &back.intervals {
        let at_ns = end_ns.saturating_sub(trial.started_ns());
        trial.out.emit_at("interval_rtt_ns", *median_ns as f64, 1, at_ns, factors! {})?;
        trial.out.emit_at("interval_rtt_max_ns", *longest_ns as f64, 1, at_ns, factors! {})?;
    }
    Ok(())
}

fn say_variation(
    trial: &mut Trial,
    answer: &RttResult,
    same_clock: bool,
) -> Result<(), ProbeError> {
    let (back, far) = (&answer.back.variation, &answer.far);
    let scalars = [
        ("jitter_ns", "up", far.jitter_ns),
        ("jitter_ns", "down", back.jitter.value_ns()),
        ("ipdv_mean_ns", "up", far.mean_difference_ns),
        ("ipdv_mean_ns", "down", back.jitter.mean_difference_ns()),
    ];
    for (metric, direction, value) in scalars {
        if let Some(value) = value {
            trial.out.emit(metric, value, way(direction))?;
        }
    }
    trial.out.emit_pairs("ipdv_ns", far.ipdv.iter().copied(), &way("up"))?;
    trial.out.emit_pairs("pdv_ns", far.pdv.iter().copied(), &way("up"))?;
    trial.emit_histogram("ipdv_ns", &back.ipdv, &way("down"))?;
    trial.emit_histogram("pdv_ns", &back.pdv(), &way("down"))?;
    if back.cut_off() || far.pdv_cut_off {
        trial.out.note("pdv_ns holds the first 1048576 datagrams of each direction.");
    }
    if !same_clock {
        return Ok(());
    }
    if answer.back.negative + far.counts.negative > 0 {
        trial.out.note("Datagrams arrived before they were sent: the clocks are not one, and no one-way delay is told.");
        return Ok(());
    }
    trial.out.emit_pairs("delay_ns", far.delay.iter().copied(), &way("up"))?;
    trial.emit_histogram("delay_ns", &answer.back.delay, &way("down"))
}
