//! # What it measures
//! The share of a CPU that a program obtains, and each gap in which it does not run: length, time,
//! frequency and, if the kernel knows it, cause. Schedulers, quotas, neighbours and hypervisors
//! cause gaps in the same way.
//!
//! # How
//! One loop per CPU, pinned to it, reads the clock continuously. Two reads at least `threshold_ns`
//! apart enclose a gap. Runs (end of a gap to the start of the next), gaps and periods (start to
//! start) are recorded in HDR histograms; the first `events_max` gaps are reported one by one. The
//! clock is the time-stamp counter if its rate is constant and the kernel uses it itself (`tsc`,
//! `kvm-clock`), calibrated against CLOCK_MONOTONIC over the window; otherwise CLOCK_MONOTONIC.
//!
//! After a gap the loop asks the kernel for its cause, in this order: `throttled` (gaps from 1 ms;
//! `nr_throttled` of its cgroup or an ancestor rose), `stolen` (gaps from 8 ms; the CPU's steal
//! time rose by at least half the gap), `stopped` (stop signal, debugger, freezer), `preempted` (an
//! involuntary context switch), else `unexplained` (interrupt, firmware, a hypervisor that reports
//! no steal). The time of asking belongs neither to runs nor to gaps; `asking_ratio` is its share.
//! Unusually long asking is a gap of its own.
//!
//! `cpu_share_ratio` is 1 minus the gaps over the window. With `processes_per_cpu` above 1 that
//! many processes contend for each CPU in a common window. With `sleep_ns` each loop sleeps after
//! every `busy_ns`: what it obtains after a sleep distinguishes schedulers. Sleeps are excluded
//! from all shares.
//!
//! # Known truth
//! SCHED_DEADLINE with 30 of 40 ms (share 0.75), quotas of 50 and 25 of 100 ms (0.50 and 0.25), a
//! stop of known length and start, and two processes on one CPU (one half each).
//!
//! # Cross-check
//! `thread_cpu_ratio` is the kernel's account of the same time. If it equals the share, the kernel
//! took the time; if it is larger, the kernel did not notice, as with a hypervisor that reports no
//! steal. `rtla osnoise` and `hwlatdetect` look for the same gaps from inside the kernel.
//!
//! # Overhead
//! Every measured CPU for `duration_ns`. Asking takes about 1 µs per gap, tens of µs for gaps from
//! 8 ms.
//!
//! # Caveats
//! Gaps shorter than the threshold or than `look_floor_ns` are invisible. A window cuts the first
//! and the last cycle: for cycles of length P and a share s, `cpu_share_ratio` over a window T is
//! off by at most s(1-s)P/T (1.25 points for 50 of 100 ms in 2 s). `cpu_share_cycles_ratio` counts
//! whole cycles only, between the first and the last start of a gap of at least 1/500 of the
//! window; it needs three of them. Loops that share a quota cut its periods differently;
//! `obtained_cycles_cpus` counts them all in one span of whole cycles. Steal is counted in ticks of
//! 10 ms, so that several short thefts may pass for the cause of a long preemption. Under
//! SCHED_DEADLINE threads can be neither created nor pinned: one loop runs on the calling thread,
//! and throttling shows as `preempted`; if children start without a reservation, each loop is a
//! process that waits for its own.
use crate::error::Result;
use crate::threads::gaps::{processes, record, start, GapMeterSettings, Record};
#[cfg(target_arch = "x86_64")]
use crate::timing::ticks::Tsc;
use crate::timing::ticks::{Monotonic, Ticks};
use crate::trial::factors;
use crate::trial::{Factors, Trial};
use nephoscope_linux::scheduling;
use nephoscope_wire::gap_cycles::LONG_SHARE;
pub use nephoscope_wire::specs::cpu_gaps::SPEC;
use serde_json::json;

pub fn run(trial: &mut Trial) -> Result<()> {
    match start::reads_tsc(trial)? {
        #[cfg(target_arch = "x86_64")]
        true => run_with::<Tsc>(trial),
        _ => run_with::<Monotonic>(trial),
    }
}

fn run_with<C: Ticks>(trial: &mut Trial) -> Result<()> {
    let settings = GapMeterSettings {
        duration_ns: trial.params.u64("duration_ns"),
        threshold_ns: trial.params.u64("threshold_ns"),
        events_max: trial.params.size("events_max"),
        sleep_ns: trial.params.u64("sleep_ns"),
        busy_ns: trial.params.u64("busy_ns"),
        ns_per_tick: start::calibrate::<C>(),
        session: trial.session,
    };
    let places = start::places(trial)?;
    let contend = match scheduling::is_reserved() {
        true => places.len() > 1,
        false => trial.params.int("processes_per_cpu") > 1,
    };
    let records = if contend {
        processes::run::<C>(trial, &settings, &places)?
    } else {
        start::threads::<C>(trial, &settings, &places)?
    };
    let counters = trial.counters();
    for record in &records {
        emit(trial, record)?;
        note_limitations(trial, record, &settings);
    }
    let long_ns = (settings.duration_ns as f64 * LONG_SHARE) as u64;
    let obtained = [
        ("obtained_cpus", Some(records.iter().map(Record::share).sum())),
        ("obtained_cycles_cpus", record::obtained_over_cycles(&records, long_ns)),
    ];
    trial.out.emit_known(&obtained, &factors! {})?;
    let known = ["steal_ratio", "psi_cpu_some_ratio", "throttled_ratio"]
        .map(|metric| (metric, counters[metric].as_f64()));
    trial.out.emit_known(&known, &factors! {})
}

fn of(record: &Record) -> Factors {
    match record.cpu {
        Some(cpu) => factors! {"cpu": cpu, "process": record.process},
        None => factors! {"cpu": "any", "process": record.process},
    }
}

fn emit(trial: &mut Trial, record: &Record) -> Result<()> {
    let seconds = record.window_ns / 1e9;
    let scalars = [
        ("cpu_share_ratio", Some(record.share())),
        ("cpu_share_cycles_ratio", record.cycles_share),
        ("thread_cpu_ratio", Some(record.thread_cpu_ratio)),
        ("gaps_per_s", Some(record.gaps as f64 / seconds)),
        ("gap_longest_ns", Some(record.longest_ns)),
        ("look_cost_ns", Some(record.mean_read_ns())),
        ("look_floor_ns", Some(record.look_floor_ns)),
        ("look_min_ns", Some(record.look_min_ns)),
        ("asking_ratio", Some(record.asking_ns / record.window_ns)),
        ("involuntary_switches_per_s", record.involuntary.map(|count| count as f64 / seconds)),
    ];
    trial.out.emit_known(&scalars, &of(record))?;
    let histograms = [
        ("gap_length_ns", &record.lengths),
        ("run_length_ns", &record.runs),
        ("gap_period_ns", &record.periods),
    ];
    for (metric, pairs) in histograms {
        trial.emit_histogram(metric, &record::from_pairs(pairs), &of(record))?;
    }
    for event in &record.events {
        let at_ns = event.start.saturating_sub(trial.started_ns());
        let mut factors = of(record);
        factors.insert("cause".to_owned(), json!(event.cause));
        trial.out.emit_at("gap_event_ns", event.length as f64, 1, at_ns, factors)?;
    }
    for sleep in &record.sleeps {
        let at_ns = sleep.start.saturating_sub(trial.started_ns());
        trial.out.emit_at("sleep_event_ns", sleep.length as f64, 1, at_ns, of(record))?;
    }
    Ok(())
}

/// What a reader of these figures has to know.
fn note_limitations(trial: &mut Trial, record: &Record, settings: &GapMeterSettings) {
    let name = match record.cpu {
        Some(cpu) => format!("CPU {cpu}, loop {}", record.process),
        None => format!("Loop {}", record.process),
    };
    if let Some(reason) = &record.pin_refused {
        trial.out.note(format!("{name}: left unpinned. {reason}"));
    }
    if record.events_left_out > 0 {
        trial.out.note(format!(
            "{name}: {} gaps beyond the {} kept one by one; the histograms hold all.",
            record.events_left_out, settings.events_max
        ));
    }
    if record.look_floor_ns >= settings.threshold_ns as f64 / 2.0 {
        trial.out.note(format!(
            "{name}: the loop's floor of {:.0} ns is close to the threshold of {} ns; ordinary \
             looks may count as gaps.",
            record.look_floor_ns, settings.threshold_ns
        ));
    }
    // A thousandth is the resolution of the histograms.
    if record.rate_drift.abs() > 1e-3 {
        trial.out.note(format!(
            "{name}: the rate of the clock changed by {:+.2} % during the trial, as after a move \
             to another host.",
            record.rate_drift * 100.0
        ));
    }
}
