//! The gap meter beside a trial: a thread on a CPU that the trial does not use. It wakes up a
//! thousand times a second and keeps by how much it came late, and a few times a second it looks
//! at the clock for some milliseconds on end and keeps what it missed.
//!
//! Late awakenings are the stops of the whole CPU: a machine that was paused, a budget that was
//! spent. Only the looks see somebody who wants the CPU too: schedulers prefer a task that has
//! slept, so that one that only wakes up never meets the others
//! (docs/decisions/0016-gap-meter.md has the figures). Together that takes a hundredth of a CPU.
//! A stop of length G between two looks is seen as G minus up to a millisecond.
mod place;

use crate::trial::affinity;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
use nephoscope_linux::signals::without_signals;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::Spec;
use serde_json::{json, Map, Value};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Time between two awakenings.
const PERIOD_NS: u64 = 1_000_000;
/// Longer than this is a gap; timers and idle states take less.
const GAP_NS: u64 = 1_000_000;
/// How long it looks: longer than the slice after which somebody else gets the CPU.
const WATCH_NS: u64 = 5_000_000;
/// From one look to the next; the first begins with the trial.
const WATCH_EVERY_NS: u64 = 500_000_000;
/// It calls little; the default would map 2 MiB.
const STACK_BYTES: usize = 64 << 10;

/// What the one meter of this process saw; written by its thread alone.
struct MeterCounts {
    began_ns: AtomicU64,
    /// When the next awakening is due; 0 while it does not watch.
    due_ns: AtomicU64,
    gaps: AtomicU64,
    /// By how much awakenings came late.
    late_ns: AtomicU64,
    watched_ns: AtomicU64,
    /// What was missed while it looked.
    missed_ns: AtomicU64,
    longest_ns: AtomicU64,
    voluntary: AtomicI64,
    involuntary: AtomicI64,
    cpu_ns: AtomicU64,
    stop: AtomicBool,
}

static METER: MeterCounts = MeterCounts {
    began_ns: AtomicU64::new(0),
    due_ns: AtomicU64::new(0),
    gaps: AtomicU64::new(0),
    late_ns: AtomicU64::new(0),
    watched_ns: AtomicU64::new(0),
    missed_ns: AtomicU64::new(0),
    longest_ns: AtomicU64::new(0),
    voluntary: AtomicI64::new(0),
    involuntary: AtomicI64::new(0),
    cpu_ns: AtomicU64::new(0),
    stop: AtomicBool::new(false),
};

/// Nanoseconds of CPU time that this process has used, without the meter.
#[inline]
pub fn benchmark_cpu_ns() -> u64 {
    clock::process_cpu_ns().saturating_sub(cpu_ns())
}

#[inline]
fn cpu_ns() -> u64 {
    METER.cpu_ns.load(Ordering::Relaxed)
}

/// Voluntary and involuntary switches of the meter, which are none of the benchmark's.
pub fn switches() -> (i64, i64) {
    (METER.voluntary.load(Ordering::Relaxed), METER.involuntary.load(Ordering::Relaxed))
}

/// The meter of one trial, or why there is none.
pub struct IdleCpuMonitor {
    meter: Result<MeterThread, String>,
}

struct MeterThread {
    cpu: usize,
    thread: Option<JoinHandle<()>>,
    tid: i32,
}

impl IdleCpuMonitor {
    /// No meter, for this reason.
    pub fn missing(reason: impl Into<String>) -> Self {
        Self { meter: Err(reason.into()) }
    }

    /// Makes the meter ready on a CPU that the trial leaves free. allowed: the CPUs that the
    /// process could use before the trial pinned anything.
    pub fn prepare(spec: &Spec, params: &Params, allowed: &[usize]) -> Self {
        let cpu = match place::free_cpu(spec, params, allowed) {
            Ok(cpu) => cpu,
            Err(reason) => return Self::missing(reason),
        };
        match start(cpu) {
            Ok((thread, tid)) => Self { meter: Ok(MeterThread { cpu, thread: Some(thread), tid }) },
            Err(reason) => Self::missing(reason),
        }
    }

    /// From now on it watches.
    pub fn begin(&self) {
        if self.meter.is_ok() {
            METER.began_ns.store(clock::monotonic_ns(), Ordering::Release);
        }
    }

    /// Ends the thread; what it saw stays.
    pub fn end(&mut self) {
        if let Ok(MeterThread { thread, .. }) = &mut self.meter {
            METER.stop.store(true, Ordering::Release);
            if let Some(thread) = thread.take() {
                // It cannot panic; and if it did, its counters are still what it saw.
                let _ = thread.join();
            }
        }
    }

    /// Its keys of the `counters` object.
    pub fn report(&self) -> Map<String, Value> {
        let load = |value: &AtomicU64| value.load(Ordering::Acquire);
        let (mut figures, mut missing) = ((None, None, None, None), None);
        match &self.meter {
            Err(reason) => missing = Some(reason.as_str()),
            Ok(_) if load(&METER.began_ns) == 0 => missing = Some("the trial did not begin"),
            Ok(meter) => {
                let now_ns = clock::monotonic_ns();
                let window_ns = now_ns.saturating_sub(load(&METER.began_ns)).max(1);
                let (mut all_late_ns, mut gaps) = (load(&METER.late_ns), load(&METER.gaps));
                let mut longest_ns = load(&METER.longest_ns);
                let late_ns = match load(&METER.due_ns) {
                    0 => 0,
                    due_ns => now_ns.saturating_sub(due_ns),
                };
                // A gap that goes on while we ask.
                if late_ns >= GAP_NS && !place::own_thread_runs_on(meter.cpu, meter.tid) {
                    all_late_ns += late_ns;
                    gaps += 1;
                    longest_ns = longest_ns.max(late_ns);
                }
                let late = all_late_ns as f64 / window_ns as f64;
                let missed = load(&METER.missed_ns) as f64 / load(&METER.watched_ns).max(1) as f64;
                let ratio = late.max(missed).min(1.0);
                figures = (Some(meter.cpu), Some(ratio), Some(gaps), Some(longest_ns));
            }
        }
        let (cpu, ratio, gaps, longest_ns) = figures;
        let values = json!({
            "spare_cpu": cpu,
            "spare_gap_ratio": ratio,
            "spare_gaps_count": gaps,
            "spare_gap_longest_ns": longest_ns,
            "spare_missing": missing,
        });
        values.as_object().cloned().unwrap_or_default()
    }
}

/// The thread, asleep on its CPU until it is told to begin, and its number.
fn start(cpu: usize) -> Result<(JoinHandle<()>, i32), String> {
    let (sender, started) = std::sync::mpsc::channel();
    let builder = std::thread::Builder::new().name("spare".to_owned()).stack_size(STACK_BYTES);
    // A signal has to reach the thread that measures: it may wait in a call that must come back.
    let thread = without_signals(|| builder.spawn(move || watch(cpu, &sender)))
        .map_err(|error| format!("its thread could not be started: {error}"))?;
    match started.recv() {
        Ok(Ok(tid)) => Ok((thread, tid)),
        Ok(Err(reason)) => Err(reason),
        Err(_) => Err("its thread ended".to_owned()),
    }
}

fn watch(cpu: usize, started: &std::sync::mpsc::Sender<Result<i32, String>>) {
    // SAFETY: asks for the number of this thread.
    let tid = unsafe { libc::gettid() };
    if let Err(error) = affinity::bind(cpu) {
        let _ = started.send(Err(error.message));
        return;
    }
    scheduling::minimise_timer_slack();
    let _ = started.send(Ok(tid));
    let stopped = || METER.stop.load(Ordering::Acquire);
    while METER.began_ns.load(Ordering::Acquire) == 0 && !stopped() {
        // To be woken up costs the thread that does it tens of microseconds of its trial.
        sleep_until(clock::monotonic_ns() + PERIOD_NS);
    }
    let start = clock::usage(libc::RUSAGE_THREAD);
    let mut watch_at_ns = 0;
    let mut due_ns = clock::monotonic_ns();
    while !stopped() {
        if clock::monotonic_ns() >= watch_at_ns {
            watch_at_ns = clock::monotonic_ns() + WATCH_EVERY_NS;
            watch_clock(cpu, tid);
            due_ns = clock::monotonic_ns() + PERIOD_NS;
        }
        METER.due_ns.store(due_ns, Ordering::Release);
        sleep_until(due_ns);
        let now_ns = clock::monotonic_ns();
        let late_ns = now_ns.saturating_sub(due_ns);
        METER.due_ns.store(0, Ordering::Release);
        if late_ns >= GAP_NS && !stopped() && !place::own_thread_runs_on(cpu, tid) {
            record_gap(late_ns, &METER.late_ns);
        }
        if let (Some(now), Some(start)) = (clock::usage(libc::RUSAGE_THREAD), start) {
            METER.voluntary.store(now.ru_nvcsw - start.ru_nvcsw, Ordering::Relaxed);
            METER.involuntary.store(now.ru_nivcsw - start.ru_nivcsw, Ordering::Relaxed);
        }
        METER.cpu_ns.store(clock::thread_cpu_ns(), Ordering::Relaxed);
        due_ns = if late_ns < PERIOD_NS { due_ns } else { clock::monotonic_ns() } + PERIOD_NS;
    }
}

/// Looks at the clock for a while, and keeps what lies between two looks.
fn watch_clock(cpu: usize, tid: i32) {
    let start_ns = clock::monotonic_ns();
    let mut last_ns = start_ns;
    while last_ns < start_ns + WATCH_NS && !METER.stop.load(Ordering::Relaxed) {
        let now_ns = clock::monotonic_ns();
        let missed_ns = now_ns - last_ns;
        if missed_ns >= GAP_NS && !place::own_thread_runs_on(cpu, tid) {
            record_gap(missed_ns, &METER.missed_ns);
        }
        last_ns = now_ns;
    }
    METER.watched_ns.fetch_add(last_ns - start_ns, Ordering::Relaxed);
}

fn record_gap(length_ns: u64, sum_ns: &AtomicU64) {
    METER.gaps.fetch_add(1, Ordering::Relaxed);
    sum_ns.fetch_add(length_ns, Ordering::Relaxed);
    METER.longest_ns.fetch_max(length_ns, Ordering::Relaxed);
}

fn sleep_until(at_ns: u64) {
    let at = clock::timespec(at_ns);
    // SAFETY: one valid timespec; nothing is written back for an absolute time.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const at,
            std::ptr::null_mut(),
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One meter a process: the tests of a process share it, so this is the only one that starts it.
    #[test]
    fn it_sees_a_cpu_that_is_held_and_leaves_little_trace() {
        let allowed = affinity::allowed();
        let cpu = *allowed.last().unwrap();
        let (thread, tid) = start(cpu).unwrap();
        let mut spare =
            IdleCpuMonitor { meter: Ok(MeterThread { cpu, thread: Some(thread), tid }) };
        assert!(!spare.report()["spare_missing"].is_null());
        spare.begin();
        std::thread::sleep(std::time::Duration::from_millis(300));
        spare.end();
        let report = spare.report();
        assert_eq!(report["spare_cpu"], cpu);
        let ratio = report["spare_gap_ratio"].as_f64().unwrap();
        assert!((0.0..1.0).contains(&ratio), "{report:?}");
        // 300 awakenings of some microseconds; a busy machine's caches make them longer.
        assert!(cpu_ns() < 30_000_000, "{} ns", cpu_ns());
        assert!(switches().0 > 0);
    }
}
