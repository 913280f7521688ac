//! Samples and notes of every request generator.
use super::recorder::{Recorder, RequestInterval};
use super::{failures, EngineSettings, Pacing};
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::{factors, Factors, Trial};
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

/// A thread that uses more of its CPU than this may be the limit itself.
const BUSY_RATIO: f64 = 0.95;

/// Writes the series as intervals are completed, until all threads have ended.
pub fn emit_intervals(
    trial: &mut Trial,
    settings: &EngineSettings,
    start_ns: u64,
    intervals: &Receiver<RequestInterval>,
) -> Result<()> {
    let mut pending: BTreeMap<u64, (usize, RequestInterval)> = BTreeMap::new();
    while let Ok(interval) = intervals.recv() {
        let index = interval.index;
        let (threads, whole) =
            pending.entry(index).or_insert_with(|| (0, RequestInterval::new(index)));
        whole.add(&interval);
        *threads += 1;
        if *threads == settings.threads.len() {
            let end_ns = start_ns + (index + 1) * settings.interval_ns;
            let at_ns = end_ns.saturating_sub(trial.started_ns());
            emit_interval(trial, settings.interval_ns, &pending[&index].1, at_ns)?;
            pending.remove(&index);
        }
    }
    Ok(())
}

fn emit_interval(
    trial: &mut Trial,
    interval_ns: u64,
    interval: &RequestInterval,
    at_ns: u64,
) -> Result<()> {
    let per_s = interval.completed as f64 * 1e9 / interval_ns as f64;
    let latency = &interval.latency;
    let mut values =
        vec![("interval_requests_per_s", per_s), ("interval_errors_count", interval.failed as f64)];
    if !latency.is_empty() {
        let quantile = |q| latency.value_at_quantile(q) as f64;
        values.extend([
            ("interval_latency_p50_ns", quantile(0.5)),
            ("interval_latency_p99_ns", quantile(0.99)),
            ("interval_latency_max_ns", latency.max() as f64),
        ]);
    }
    for (metric, value) in values {
        trial.out.emit_at(metric, value, 1, at_ns, factors! {})?;
    }
    // Whoever watches sees an interval when it is over.
    trial.out.flush()
}

/// Writes the samples of a trial. classes: the factors of each class of requests.
pub fn emit(
    trial: &mut Trial,
    settings: &EngineSettings,
    recorder: &Recorder,
    classes: &[Factors],
) -> Result<()> {
    check_any_response(settings, recorder)?;
    let window = recorder.window;
    let seconds = window.end_ns.saturating_sub(window.warm_ns) as f64 / 1e9;
    let per_s = recorder.completed_in_window as f64 / seconds;
    trial.out.emit("requests_per_s", per_s, factors! {})?;
    for (times, class) in recorder.classes.iter().zip(classes) {
        trial.emit_histogram("latency_ns", &times.latency, class)?;
        trial.emit_histogram("unanswered_ns", &times.unanswered, class)?;
        trial.emit_histogram("service_time_ns", &times.service, class)?;
    }
    trial.emit_histogram("first_byte_ns", &recorder.first_byte, &factors! {})?;
    trial.emit_histogram("connect_ns", &recorder.connect, &factors! {})?;
    let scalars = [
        ("received_bytes_per_s", recorder.received_bytes as f64 / seconds),
        ("due_count", recorder.due_in_all() as f64),
        ("sent_count", recorder.sent as f64),
        ("completed_count", recorder.completed as f64),
        ("connections_count", recorder.connections as f64),
    ];
    for (metric, value) in scalars {
        trial.out.emit(metric, value, factors! {})?;
    }
    emit_failures(trial, recorder)?;
    emit_pacing(trial, settings, recorder, seconds)?;
    emit_generator(trial, settings, recorder, seconds)
}

/// A server that never answers as it should is no rate of 0.
fn check_any_response(settings: &EngineSettings, recorder: &Recorder) -> Result<()> {
    if recorder.completed_in_window > 0 {
        return Ok(());
    }
    let most = recorder.failures.iter().max_by_key(|(_, count)| **count);
    let why = match most {
        Some((kind, count)) => {
            let all = recorder.failed_in_all();
            format!("{count} of {all} requests failed because {}", failures::words(kind))
        }
        None => "none was due or completed in the measured time".to_owned(),
    };
    Err(ProbeError::new(
        FailureKind::Failed,
        "no_valid_response",
        format!("{} sent no valid response in the measured time: {why}.", settings.address),
        "Try one request by hand, check what was asked for and expected, or measure longer.",
    ))
}

fn emit_failures(trial: &mut Trial, recorder: &Recorder) -> Result<()> {
    let failed = recorder.failed_in_all();
    for (kind, count) in &recorder.failures {
        trial.out.emit("errors_count", *count as f64, factors! {"kind": kind})?;
    }
    trial.out.emit("errors_count", failed as f64, factors! {"kind": "any"})?;
    let all = failed + recorder.completed;
    trial.out.emit("error_ratio", failed as f64 / all as f64, factors! {})
}

fn emit_pacing(
    trial: &mut Trial,
    settings: &EngineSettings,
    recorder: &Recorder,
    seconds: f64,
) -> Result<()> {
    if matches!(settings.pacing, Pacing::Open(_)) {
        let offered_per_s = recorder.due as f64 / seconds;
        let values =
            [("offered_per_s", Some(offered_per_s)), ("pace_ratio", recorder.pace_ratio())];
        trial.out.emit_known(&values, &factors! {})?;
    }
    let timed = recorder.send_delay.len();
    if timed == 0 {
        return note_littles_law(trial, settings, recorder, seconds);
    }
    trial.out.emit("late_sends_ratio", recorder.late as f64 / timed as f64, factors! {})?;
    trial.emit_histogram("send_delay_ns", &recorder.send_delay, &factors! {})
}

/// Rate times mean latency is the number of requests in flight (Little's law).
fn note_littles_law(
    trial: &mut Trial,
    settings: &EngineSettings,
    recorder: &Recorder,
    seconds: f64,
) -> Result<()> {
    let latencies = recorder.classes.iter().map(|times| &times.latency);
    let total_ns: f64 = latencies.map(|latency| latency.mean() * latency.len() as f64).sum();
    let in_flight = total_ns / 1e9 / seconds;
    let wanted = (settings.connections * settings.depth) as f64;
    if recorder.failures.is_empty() && (in_flight / wanted - 1.0).abs() > 0.1 {
        trial.out.note(format!(
            "Rate times mean latency is {in_flight:.1} where {wanted} requests were in flight: \
             responses are too slow for the measured time, or connections were often closed."
        ));
    }
    Ok(())
}

fn emit_generator(
    trial: &mut Trial,
    settings: &EngineSettings,
    recorder: &Recorder,
    seconds: f64,
) -> Result<()> {
    let cpu_s = recorder.cpu_ns as f64 / 1e9;
    let completed = recorder.completed_in_window as f64;
    let threads = settings.threads.len() as f64;
    let wait = recorder.cpu_wait_ns.map(|ns| ns as f64 / 1e9 / seconds / threads);
    let values = [
        ("generator_cpus", Some(cpu_s / seconds)),
        ("generator_cpu_ns", Some(recorder.cpu_ns as f64 / completed)),
        ("generator_busy_ratio", Some(recorder.busiest_ratio)),
        ("generator_wait_ratio", wait),
    ];
    trial.out.emit_known(&values, &factors! {})?;
    if recorder.busiest_ratio > BUSY_RATIO {
        trial.out.note(
            "A thread of the generator used its whole CPU: its own limit may have been measured, and \
             not the server's. More `threads` tell.",
        );
    }
    Ok(())
}
