//! What the loads share: how much of each period to work, the threads that do it, and the counters
//! that prove afterwards that they did.
pub mod busy_time;
pub mod duty_cycle;
pub mod even_rate;
pub mod load_threads;
pub mod usable_cache;

use crate::error::{ProbeError, Result};
use crate::threads::team;
use crate::trial::affinity;
use crate::trial::Trial;
use nephoscope_wire::spec::{Metric, Param};

pub const THREADS: Param =
    Param::count("threads", 0, 0..=1024).doc("Number of threads; 0 takes one per allowed CPU.");

pub const CPUS: Param = Param::ints("cpus", &[], 0..=1023)
    .doc("CPUs to pin the threads to, round robin; an empty list takes all allowed CPUs.");

pub const INTENSITY: Param = Param::float("intensity_ratio", 1.0, 0.0..=1.0)
    .doc("Load level: share of each period in which each thread works; 0 is an idle load.");

pub const PERIOD: Param = Param::int("period_ns", 10_000_000, 100_000..=10_000_000_000)
    .doc("Length of a period of work and sleep.");

pub const INTERVAL: Param = Param::int("interval_ns", 100_000_000, 10_000_000..=60_000_000_000)
    .doc("Length of the reporting intervals.");

pub const DURATION: Param = Param::int("duration_ns", 1_000_000_000, 0..=86_400_000_000_000)
    .doc("Run time; 0 runs until stopped.");

pub const LOAD_CPUS: Metric =
    Metric::neutral("load_cpus").doc("CPUs used: CPU time of all threads per elapsed time.");

/// Intensity of a load that uses CPU time; that of a load with a rate may exceed 1.
pub const THREAD_INTENSITY: Metric =
    intensity("CPU time of a thread per elapsed time, mean of the threads.").share();

pub const INTERVAL_THREAD_INTENSITY: Metric =
    interval_intensity("CPU time of a thread per interval, mean of the threads, at its end.")
        .share();

pub const fn intensity(doc: &'static str) -> Metric {
    Metric::neutral("load_intensity_ratio").doc(doc)
}

pub const fn interval_intensity(doc: &'static str) -> Metric {
    Metric::neutral("interval_intensity_ratio").series().doc(doc)
}

/// Duration of a load; 0 only where somebody can tell it to stop.
pub fn duration_ns(trial: &Trial) -> Result<u64> {
    let duration_ns = trial.params.u64("duration_ns");
    if duration_ns == 0 && !trial.session.has_control() {
        let id = trial.spec().id;
        return Err(ProbeError::usage(
            format!("{id}: duration_ns 0 runs until it is told to stop, and nobody can tell it."),
            "Start it with --control, or set duration_ns.",
        ));
    }
    Ok(duration_ns)
}

pub fn placement(trial: &mut Trial) -> Result<Vec<usize>> {
    let cpus = match wanted_cpus(trial)? {
        wanted if wanted.is_empty() => affinity::allowed(),
        wanted => wanted,
    };
    let threads = match trial.params.size("threads") {
        0 => cpus.len(),
        threads => threads,
    };
    if threads > cpus.len() {
        let cpus = cpus.len();
        trial
            .out
            .note(format!("{threads} threads share {cpus} CPUs: they cannot all be busy at once."));
    }
    Ok((0..threads).map(|thread| cpus[thread % cpus.len()]).collect())
}

/// The same for [`load_threads::run`].
pub fn pinned(cpus: &[usize]) -> Vec<Option<usize>> {
    cpus.iter().copied().map(Some).collect()
}

/// The CPU of each of `threads` threads that mostly wait: none, unless the caller names CPUs.
pub fn places(trial: &Trial, threads: usize) -> Result<Vec<Option<usize>>> {
    let cpus = wanted_cpus(trial)?;
    Ok((0..threads).map(|thread| cpus.get(thread % cpus.len().max(1)).copied()).collect())
}

/// The CPUs that were named; that the load can have threads there is checked.
fn wanted_cpus(trial: &Trial) -> Result<Vec<usize>> {
    team::check_can_start_threads()?;
    affinity::named(trial.spec().id, &trial.params)
}
