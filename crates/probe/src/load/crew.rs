//! The threads of a load and their counters: each does small bits of work as its duty says and adds
//! them up; the calling thread reads the sums once an interval and prints them.
use super::duty::{Duty, Step};
use crate::error::{Kind, ProbeError};
use crate::together::Latch;
use crate::trial::Trial;
use crate::{affinity, cancel, clock, control, factors};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Longest sleep between two looks whether the load is to end.
const LOOK_AROUND_NS: u64 = 10_000_000;

/// Something to do, in bits of some microseconds.
pub trait Work {
    /// Does a bit; how much of what is counted it was.
    fn bit(&mut self) -> u64;
}

/// How a load works.
#[derive(Clone, Copy, Debug)]
pub struct Shift {
    /// Share of each period that each thread works.
    pub intensity_ratio: f64,
    /// Length of a period.
    pub period_ns: u64,
    /// Length of an interval of the series.
    pub interval_ns: u64,
    /// How long it runs; 0 until it is told to stop.
    pub duration_ns: u64,
}

impl Shift {
    /// From the parameters that all loads have.
    pub fn of(trial: &Trial) -> Result<Self, ProbeError> {
        let ns = |id| trial.params.int(id).cast_unsigned();
        Ok(Self {
            intensity_ratio: trial.params.float("intensity_ratio"),
            period_ns: ns("period_ns"),
            interval_ns: ns("interval_ns"),
            duration_ns: super::duration_ns(trial)?,
        })
    }
}

/// The metrics that a load's counters become; of what it counts, by the second.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Scalar: what was counted over the whole time.
    pub rate: &'static str,
    /// Series: the same in each interval.
    pub interval_rate: &'static str,
}

/// Counters of one thread; written by it alone. A line of its own, so that threads do not slow
/// each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Tally {
    work: AtomicU64,
    cpu_ns: AtomicU64,
}

/// All counters at one time.
#[derive(Clone, Copy, Debug)]
struct Sum {
    at_ns: u64,
    work: u64,
    cpu_ns: u64,
}

impl Sum {
    fn of(tallies: &[Tally]) -> Self {
        let sum = |of: fn(&Tally) -> &AtomicU64| {
            tallies.iter().map(|tally| of(tally).load(Ordering::Relaxed)).sum()
        };
        Self { at_ns: clock::monotonic_ns(), work: sum(|t| &t.work), cpu_ns: sum(|t| &t.cpu_ns) }
    }
}

/// Runs a load on `cpus`, one thread each, until its time is over or it is told to stop.
///
/// # Errors
/// A thread cannot be had or prepared; the trial is cancelled.
pub fn run<W: Work>(
    trial: &mut Trial,
    shift: &Shift,
    cpus: &[usize],
    names: Names,
    prepare: impl Fn(usize) -> Result<W, ProbeError> + Sync,
) -> Result<(), ProbeError> {
    let tallies: Vec<_> = cpus.iter().map(|_| Tally::default()).collect();
    let (latch, over) = (Latch::new(cpus.len()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let thread = |(number, cpu): (usize, &usize)| {
            let (cpu, tally, latch, over, prepare) =
                (*cpu, &tallies[number], &latch, &over, &prepare);
            let work = move || -> Result<(), ProbeError> {
                let prepared = affinity::pin(cpu).and_then(|()| prepare(number));
                if prepared.is_err() {
                    latch.give_up();
                }
                let mut work = prepared?;
                if latch.wait() {
                    toil(&mut work, shift, tally, over);
                }
                Ok(())
            };
            let builder = std::thread::Builder::new().stack_size(256 << 10);
            builder.spawn_scoped(scope, work).map_err(|error| {
                latch.give_up();
                no_threads(cpus.len(), &error)
            })
        };
        let threads: Vec<_> = cpus.iter().enumerate().map(thread).collect();
        let watched = match latch.all_arrived() {
            true => trial.prepared().and_then(|()| {
                latch.open();
                watch(trial, shift, &tallies, names)
            }),
            false => cancel::check(),
        };
        over.store(true, Ordering::Relaxed);
        latch.give_up();
        for thread in threads {
            thread?.join().expect("a thread of a load does not panic")?;
        }
        watched
    })
}

/// Works as its duty says until the load is over.
fn toil<W: Work>(work: &mut W, shift: &Shift, tally: &Tally, over: &AtomicBool) {
    // Sleeps end up to 50 µs late by default: much of a short period.
    // SAFETY: sets a property of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let first_cpu_ns = clock::thread_cpu_ns();
    let now_ns = clock::monotonic_ns();
    let mut duty = Duty::begin(shift.intensity_ratio, shift.period_ns, now_ns, first_cpu_ns);
    let mut done = 0;
    while !over.load(Ordering::Relaxed) {
        let (now_ns, cpu_ns) = (clock::monotonic_ns(), clock::thread_cpu_ns());
        tally.cpu_ns.store(cpu_ns - first_cpu_ns, Ordering::Relaxed);
        match duty.next(now_ns, cpu_ns) {
            Step::Work => {
                done += work.bit();
                tally.work.store(done, Ordering::Relaxed);
            }
            Step::SleepUntil(at_ns) => nap(at_ns.saturating_sub(now_ns)),
        }
    }
}

/// Prints what the threads do, interval by interval, then the whole.
fn watch(
    trial: &mut Trial,
    shift: &Shift,
    tallies: &[Tally],
    names: Names,
) -> Result<(), ProbeError> {
    let first = Sum::of(tallies);
    let mut last = first;
    let end_ns = match shift.duration_ns {
        0 => u64::MAX,
        duration_ns => first.at_ns + duration_ns,
    };
    let mut due_ns = first.at_ns + shift.interval_ns;
    loop {
        cancel::check()?;
        let now_ns = clock::monotonic_ns();
        let over = control::stopped() || now_ns >= end_ns;
        // A last piece that is too short for a rate stays out of the series.
        if now_ns >= due_ns || over && now_ns - last.at_ns >= shift.interval_ns / 2 {
            let sum = Sum::of(tallies);
            interval(trial, &last, &sum, tallies.len(), names)?;
            last = sum;
            while due_ns <= now_ns {
                due_ns += shift.interval_ns;
            }
        }
        if over {
            break;
        }
        nap((due_ns.min(end_ns) - now_ns).min(LOOK_AROUND_NS));
    }
    let sum = Sum::of(tallies);
    let seconds = (sum.at_ns - first.at_ns).max(1) as f64 / 1e9;
    let cpus = sum.cpu_ns as f64 / 1e9 / seconds;
    trial.emit(names.rate, sum.work as f64 / seconds, factors! {})?;
    trial.emit("load_cpus", cpus, factors! {})?;
    trial.emit("load_intensity_ratio", cpus / tallies.len() as f64, factors! {})
}

fn interval(
    trial: &mut Trial,
    from: &Sum,
    to: &Sum,
    threads: usize,
    names: Names,
) -> Result<(), ProbeError> {
    let ns = (to.at_ns - from.at_ns).max(1) as f64;
    let at_ns = to.at_ns.saturating_sub(trial.started_ns());
    let rate = (to.work - from.work) as f64 * 1e9 / ns;
    trial.emit_at(names.interval_rate, rate, 1, at_ns, factors! {})?;
    let intensity = (to.cpu_ns - from.cpu_ns) as f64 / ns / threads as f64;
    trial.emit_at("interval_intensity_ratio", intensity, 1, at_ns, factors! {})
}

fn nap(ns: u64) {
    if ns > 0 {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

fn no_threads(threads: usize, error: &std::io::Error) -> ProbeError {
    ProbeError::new(
        Kind::Lacks,
        "no_threads",
        format!("The load needs {threads} threads and cannot have them: {error}."),
        "Set fewer `threads`, or raise the limit on processes.",
    )
}
