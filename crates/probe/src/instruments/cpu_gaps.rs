//! # What it measures
//! What share of a CPU a program really gets, and every moment in which it gets nothing: how long,
//! when, how often, and why, where the kernel knows. A scheduler, a quota, a neighbour and a
//! hypervisor all show in the same way: the program looks at the clock twice, and time is missing.
//!
//! # How
//! One loop per CPU, pinned to it, looks at the clock again and again. Two looks that lie at least
//! `threshold_ns` apart enclose a gap; all others are looks. Runs (end of a gap to the start of the
//! next), gaps and periods (gap start to gap start) stream into HDR histograms, the first
//! `events_max` gaps are kept with their start. The clock is the CPU's time-stamp counter where it
//! has a constant rate and the kernel itself tells the time by it (`tsc`, `kvm-clock`); its rate is
//! taken against CLOCK_MONOTONIC at the beginning and at the end of the very window. Elsewhere it
//! is CLOCK_MONOTONIC.
//!
//! Right after a gap the loop itself asks the kernel for the cause, in this order: `throttled`
//! (gaps from 1 ms; `nr_throttled` of the own control group or of one above it rose), `stolen`
//! (gaps from 8 ms; the steal time of this CPU in `/proc/stat` rose by at least half the gap),
//! `stopped` (the thread was put to sleep: stop signal, debugger, freezer), `preempted` (an
//! involuntary context switch), else `unexplained` (interrupt, firmware, a hypervisor that does not
//! tell). The time of asking belongs neither to runs nor to gaps; `asking_ratio` is its share. If
//! asking takes far longer than it did in the rehearsal, the excess is a gap of its own.
//!
//! `cpu_share_ratio` is 1 minus the gaps inside the window over the window's length. With
//! `processes_per_cpu` above 1 that many forked processes contend on each CPU in one common window.
//! With `sleep_ns` each loop sleeps so long after every `busy_ns`: what it is given right after a
//! sleep tells schedulers apart. Sleeps belong neither to runs nor to gaps nor to the time that
//! shares refer to; each is told with its start.
//!
//! # Known truth
//! The tests run it under SCHED_DEADLINE with 30 ms out of 40 ms (share 0.75), under a quota of
//! 50 ms and of 25 ms out of 100 ms (0.50 and 0.25), against a stop of known length and start, and
//! two processes on one CPU (one half each).
//!
//! # Cross-check
//! `thread_cpu_ratio` is the kernel's own account of the same time. Equal to the share: the kernel
//! took the time away. Larger: time went missing that the kernel believes to have given, as with a
//! hypervisor that does not report steal. `rtla osnoise` and `hwlatdetect` look for the same gaps
//! from inside the kernel.
//!
//! # Overhead
//! It occupies every CPU that it measures for `duration_ns`. Its own asking takes about 1 µs a
//! gap, a few more for gaps of 1 ms, some tens of µs for gaps of 8 ms; nothing wakes up meanwhile.
//!
//! # Caveats
//! A gap shorter than the threshold is invisible, and none can be seen below `look_floor_ns`.
//! A window cuts the first and the last cycle: with gaps in regular cycles of length P and a share
//! s, `cpu_share_ratio` over a window T is off by at most s(1-s)P/T, which is 1.25 points for
//! 50 of 100 ms in 2 s and 2.5 in 1 s. `cpu_share_cycles_ratio` counts whole cycles only, between
//! the first and the last start of a gap of at least 1/500 of the window; it exists from
//! three such gaps on, and says nothing about time outside of them. Loops that share one quota
//! cut its periods differently; `obtained_cycles_cpus` counts them all in one span of whole cycles.
//! Steal is counted in ticks of 10 ms, so that several short thefts before a long preemption can
//! pass for its cause. Under SCHED_DEADLINE threads can be neither created nor pinned: one loop
//! then runs on the calling thread, wherever the kernel puts it, and being held to the budget shows
//! as `preempted`. Where somebody else keeps the reservations and children begin without one, each
//! loop is a process of its own that waits until it has its own.
#[cfg(target_arch = "x86_64")]
use crate::clock::Tsc;
use crate::clock::{Monotonic, Ticks};
use crate::error::ProbeError;
use crate::gaps::{processes, record, start, watch, Record, Settings};
use crate::trial::{Factors, Trial};
use crate::{team, trial::factors};
pub use nephoscope_wire::specs::cpu_gaps::SPEC;

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    match start::reads_tsc(trial)? {
        #[cfg(target_arch = "x86_64")]
        true => run_with::<Tsc>(trial),
        _ => run_with::<Monotonic>(trial),
    }
}

fn run_with<C: Ticks>(trial: &mut Trial) -> Result<(), ProbeError> {
    let settings = Settings {
        duration_ns: trial.params.u64("duration_ns"),
        threshold_ns: trial.params.u64("threshold_ns"),
        events_max: trial.params.size("events_max"),
        sleep_ns: trial.params.u64("sleep_ns"),
        busy_ns: trial.params.u64("busy_ns"),
        ns_per_tick: start::calibrate::<C>(),
        session: trial.session,
    };
    let places = start::places(trial)?;
    let pin = trial.params.bool("pin") && !team::under_deadline();
    let contend = match team::under_deadline() {
        true => places.len() > 1,
        false => trial.params.int("processes_per_cpu") > 1,
    };
    let records = if contend {
        processes::run::<C>(trial, &settings, &places, pin)?
    } else {
        start::threads::<C>(trial, &settings, &places, pin)?
    };
    let beside = trial.counters();
    for record in &records {
        emit(trial, record)?;
        note_oddities(trial, record, &settings);
    }
    let obtained = records.iter().map(Record::share).sum();
    trial.out.emit("obtained_cpus", obtained, factors! {})?;
    let long_ns = (settings.duration_ns as f64 * watch::LONG_SHARE) as u64;
    if let Some(obtained) = record::obtained_over_cycles(&records, long_ns) {
        trial.out.emit("obtained_cycles_cpus", obtained, factors! {})?;
    }
    for metric in ["steal_ratio", "psi_cpu_some_ratio", "throttled_ratio"] {
        // A counter that this machine hides yields no sample: missing is not zero.
        if let Some(value) = beside[metric].as_f64() {
            trial.out.emit(metric, value, factors! {})?;
        }
    }
    Ok(())
}

fn of(record: &Record) -> Factors {
    match record.cpu {
        Some(cpu) => factors! {"cpu": cpu, "process": record.process},
        None => factors! {"cpu": "any", "process": record.process},
    }
}

fn emit(trial: &mut Trial, record: &Record) -> Result<(), ProbeError> {
    let seconds = record.window_ns / 1e9;
    let scalars = [
        ("cpu_share_ratio", Some(record.share())),
        ("cpu_share_cycles_ratio", record.cycles_share),
        ("thread_cpu_ratio", Some(record.thread_cpu_ratio)),
        ("gaps_per_s", Some(record.gaps as f64 / seconds)),
        ("gap_longest_ns", Some(record.longest_ns)),
        ("look_cost_ns", Some(record.look_cost_ns())),
        ("look_floor_ns", Some(record.look_floor_ns)),
        ("look_min_ns", Some(record.look_min_ns)),
        ("asking_ratio", Some(record.asking_ns / record.window_ns)),
        ("involuntary_switches_per_s", record.involuntary.map(|count| count as f64 / seconds)),
    ];
    for (metric, value) in scalars {
        if let Some(value) = value {
            trial.out.emit(metric, value, of(record))?;
        }
    }
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
        factors.insert("cause".to_owned(), event.cause.word().into());
        trial.out.emit_at("gap_event_ns", event.length as f64, 1, at_ns, factors)?;
    }
    for sleep in &record.sleeps {
        let at_ns = sleep.start.saturating_sub(trial.started_ns());
        trial.out.emit_at("sleep_event_ns", sleep.length as f64, 1, at_ns, of(record))?;
    }
    Ok(())
}

/// What a reader of these figures has to know.
fn note_oddities(trial: &mut Trial, record: &Record, settings: &Settings) {
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
