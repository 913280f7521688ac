//! The samples of probes that go there and back.
use super::ProbingResult;
use crate::error::Result;
use crate::net::round_trips::RoundTrips;
use crate::net::udp::losses::wilson;
use crate::trial::{factors, Trial};
use nephoscope_wire::spec::Metric;

/// The metrics of probes that go there and back.
pub const METRICS: [Metric; 22] = [
    Metric::lower("rtt_ns")
        .histogram()
        .headline()
        .doc("Round-trip time from the scheduled sending time of a probe."),
    Metric::lower("rtt_sent_ns")
        .histogram()
        .doc("Round-trip time from the actual sending time of a probe."),
    Metric::lower("rtt_kernel_ns").histogram().doc(
        "Round-trip time from the actual sending time to the kernel's reception of the answer.",
    ),
    Metric::lower("rtt_sent_mean_ns").doc("Mean of rtt_sent_ns over a trial (avg of `ping`)."),
    Metric::lower("rtt_sent_max_ns")
        .doc("Maximum of rtt_sent_ns (max of `ping`); grows with the number of probes."),
    Metric::lower("rtt_sent_stdev_ns").doc("Standard deviation of rtt_sent_ns (mdev of `ping`)."),
    Metric::lower("interval_rtt_ns")
        .series()
        .doc("Median round-trip time in each interval, at its end."),
    Metric::lower("interval_rtt_max_ns")
        .series()
        .doc("Maximum round-trip time in each interval, at its end."),
    Metric::neutral("interval_sent_count")
        .series()
        .doc("Number of probes due in each interval, at its scheduled end."),
    Metric::lower("interval_lost_count")
        .series()
        .doc("Number of probes due in each interval that were never answered."),
    Metric::lower("probe_rtt_ns")
        .series()
        .doc("Round-trip time of each answered probe, at its scheduled sending time."),
    Metric::lower("lost_run_count")
        .series()
        .doc("Number of probes lost one after the other, at the sending time of the first."),
    Metric::lower("late_count").doc("Number of answers that took longer than late_after_ns."),
    Metric::lower("loss_ratio")
        .share()
        .doc("Share of lost datagrams, by direction; `both` is the round trip."),
    Metric::lower("loss_low_ratio")
        .share()
        .doc("Lower end of the 95 % Wilson interval of the round trips' loss."),
    Metric::lower("loss_high_ratio")
        .share()
        .doc("Upper end of the 95 % Wilson interval of the round trips' loss."),
    Metric::lower("loss_episode_ratio")
        .share()
        .doc("Share of the time in loss episodes (Badabing's frequency)."),
    Metric::lower("loss_episode_ns").doc("Mean duration of a loss episode (Badabing)."),
    Metric::neutral("sent_count").doc("Number of datagrams sent."),
    Metric::neutral("returned_count").doc("Number of different datagrams that came back."),
    Metric::neutral("sent_per_s").doc("Datagrams sent per second."),
    Metric::lower("late_sends_ratio").share().doc("Share of datagrams sent more than 1 ms late."),
];

/// All samples of probes that no far side of ours counts.
pub fn emit_all(trial: &mut Trial, result: &ProbingResult, per_s: f64) -> Result<()> {
    let (sent, trips) = (result.sent, &result.trips);
    let returned = trips.tracker.unique;
    trial.out.emit("sent_count", sent as f64, factors! {})?;
    trial.out.emit("returned_count", returned as f64, factors! {})?;
    if sent > 0 {
        let lost = (sent - returned) as f64 / sent as f64;
        trial.out.emit("loss_ratio", lost, factors! {"direction": "both"})?;
        let late = result.late_sends as f64 / sent as f64;
        trial.out.emit("late_sends_ratio", late, factors! {})?;
    }
    if let Some(per_s) = result.per_s {
        trial.out.emit("sent_per_s", per_s, factors! {})?;
    }
    emit_times(trial, trips)?;
    emit(trial, trips, sent, per_s)
}

/// Distributions and intervals.
pub fn emit_times(trial: &mut Trial, trips: &RoundTrips) -> Result<()> {
    if trips.tracker.unique == 0 {
        trial.out.note("Nothing came back, so there is no round-trip time; every probe is lost.");
    }
    trial.emit_histogram("rtt_ns", &trips.rtt, &factors! {})?;
    let sent = &trips.rtt_sent;
    trial.emit_histogram("rtt_sent_ns", sent, &factors! {})?;
    if !sent.is_empty() {
        trial.out.emit("rtt_sent_mean_ns", sent.mean(), factors! {})?;
        trial.out.emit("rtt_sent_max_ns", sent.max() as f64, factors! {})?;
        trial.out.emit("rtt_sent_stdev_ns", sent.stdev(), factors! {})?;
    }
    trial.emit_histogram("rtt_kernel_ns", &trips.rtt_kernel, &factors! {})?;
    for (end_ns, median_ns, longest_ns) in &trips.intervals {
        let at_ns = end_ns.saturating_sub(trial.started_ns());
        trial.out.emit_at("interval_rtt_ns", *median_ns as f64, 1, at_ns, factors! {})?;
        trial.out.emit_at("interval_rtt_max_ns", *longest_ns as f64, 1, at_ns, factors! {})?;
    }
    Ok(())
}

/// Losses, and what was recorded probe by probe. per_s: rate of the schedule; 0 without one.
pub fn emit(trial: &mut Trial, trips: &RoundTrips, sent: u64, per_s: f64) -> Result<()> {
    trial.out.emit("late_count", trips.late as f64, factors! {})?;
    if let Some((low, high)) = wilson(sent.saturating_sub(trips.tracker.unique), sent) {
        trial.out.emit("loss_low_ratio", low, factors! {})?;
        trial.out.emit("loss_high_ratio", high, factors! {})?;
    }
    for (due_ns, rtt_ns) in &trips.probes {
        let at_ns = due_ns.saturating_sub(trial.started_ns());
        trial.out.emit_at("probe_rtt_ns", *rtt_ns as f64, 1, at_ns, factors! {})?;
    }
    if per_s == 0.0 {
        return Ok(());
    }
    emit_losses(trial, trips, sent, 1e9 / per_s)
}

fn emit_losses(trial: &mut Trial, trips: &RoundTrips, sent: u64, slot_ns: f64) -> Result<()> {
    trips.losses(sent).emit(trial, slot_ns, &factors! {})?;
    let per_interval = (trips.interval_ns() as f64 / slot_ns).round().max(1.0) as u64;
    for (index, (due, lost)) in trips.lost_by_interval(sent, per_interval).iter().enumerate() {
        let at_ns = ((index as u64 + 1) * per_interval) as f64 * slot_ns;
        trial.out.emit_at("interval_sent_count", *due as f64, 1, at_ns as u64, factors! {})?;
        trial.out.emit_at("interval_lost_count", *lost as f64, 1, at_ns as u64, factors! {})?;
    }
    Ok(())
}
