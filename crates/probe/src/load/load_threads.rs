//! The threads of a load and their counters: each does small bits of work as its duty says and adds
//! them up; the calling thread reads the sums once an interval and prints them.
use super::busy_time::Busy;
use super::duty_cycle::{CycleStep, DutyCycle};
use super::even_rate::Pacer;
use crate::error::Result;
use crate::threads::barriers::Latch;
use crate::threads::workers::{self, JoinedWorker};
use crate::trial::affinity;
use crate::trial::factors;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Longest sleep between two looks whether the load is to end.
const CHECK_INTERVAL_NS: u64 = 10_000_000;

/// Something to do, in bits of some microseconds, or operation by operation.
pub trait Work {
    /// Does a bit; how much of what is counted it was.
    fn bit(&mut self) -> Result<u64>;

    /// CPU time that other threads have used for it.
    fn others_cpu_ns(&self) -> u64 {
        0
    }

    /// What parts of the count become, beside the whole; at most [`PARTS`].
    const PARTS: &'static [CounterRate] = &[];

    /// How much of what was counted belongs to each part, since it began.
    fn parts(&self) -> [u64; PARTS] {
        [0; PARTS]
    }
}

/// Parts of a count that are told apart: what was written, what was read.
pub const PARTS: usize = 2;

/// What a load keeps, of which `intensity_ratio` is a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadTarget {
    /// The CPU time of a thread in each period: for work that computes.
    CpuTime,
    /// The time of a thread's bits in each period: for work that waits for something else.
    Time,
    /// Bits of all threads a second.
    Rate(f64),
}

#[derive(Clone, Copy, Debug)]
pub struct LoadSettings {
    pub target: LoadTarget,
    pub intensity_ratio: f64,
    pub period_ns: u64,
    pub interval_ns: u64,
    /// How long it runs; 0 until it is told to stop.
    pub duration_ns: u64,
}

impl LoadSettings {
    pub fn of(trial: &Trial, target: LoadTarget) -> Result<Self> {
        let ns = |id| trial.params.u64(id);
        Ok(Self {
            target,
            intensity_ratio: trial.params.float("intensity_ratio"),
            period_ns: ns("period_ns"),
            interval_ns: ns("interval_ns"),
            duration_ns: super::duration_ns(trial)?,
        })
    }
}

/// A metric that a load's counter becomes.
#[derive(Clone, Copy, Debug)]
pub struct CounterRate {
    /// Scalar: over the whole time.
    pub total: &'static str,
    /// Series: the same in each interval.
    pub interval: &'static str,
    /// What one of the counted is worth.
    pub each: f64,
}

/// Counters of one thread; written by it alone. A line of its own, so that threads do not slow
/// each other down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCounters {
    work: AtomicU64,
    parts: [AtomicU64; PARTS],
    bits: AtomicU64,
    cpu_ns: AtomicU64,
    busy: Busy,
}

/// All counters at one time.
#[derive(Clone, Copy, Debug)]
struct Sum {
    at_ns: u64,
    work: u64,
    parts: [u64; PARTS],
    bits: u64,
    cpu_ns: u64,
    busy_ns: u64,
}

impl Sum {
    fn of(worker_counters: &[WorkerCounters]) -> Self {
        let at_ns = clock::monotonic_ns();
        let sum = |of: fn(&WorkerCounters) -> &AtomicU64| {
            worker_counters
                .iter()
                .map(|own_counters| of(own_counters).load(Ordering::Relaxed))
                .sum()
        };
        Self {
            at_ns,
            work: sum(|t| &t.work),
            parts: std::array::from_fn(|part| {
                worker_counters
                    .iter()
                    .map(|own_counters| own_counters.parts[part].load(Ordering::Relaxed))
                    .sum()
            }),
            bits: sum(|t| &t.bits),
            cpu_ns: sum(|t| &t.cpu_ns),
            busy_ns: worker_counters.iter().map(|own_counters| own_counters.busy.ns(at_ns)).sum(),
        }
    }

    /// The rates of the whole and of its parts, each with what was counted since `from`.
    fn rates<'a>(
        &'a self,
        from: &'a Self,
        (whole, parts): (&'a [CounterRate], &'a [CounterRate]),
    ) -> impl Iterator<Item = (&'a CounterRate, f64)> + 'a {
        let whole = whole.iter().map(|rate| (rate, (self.work - from.work) as f64));
        let part = |at: usize| (self.parts[at] - from.parts[at]) as f64;
        whole.chain(parts.iter().enumerate().map(move |(at, rate)| (rate, part(at))))
    }

    /// What the load got of what it is to keep at full intensity, since `from`.
    fn intensity(&self, from: &Self, target: LoadTarget, threads: usize) -> f64 {
        let ns = self.at_ns.saturating_sub(from.at_ns).max(1) as f64;
        let since = |of: fn(&Self) -> u64| of(self).saturating_sub(of(from)) as f64;
        match target {
            LoadTarget::CpuTime => since(|sum| sum.cpu_ns) / ns / threads as f64,
            LoadTarget::Time => since(|sum| sum.busy_ns) / ns / threads as f64,
            LoadTarget::Rate(per_s) => since(|sum| sum.bits) * 1e9 / ns / per_s,
        }
    }
}

/// Runs a load, one thread on each of `placement` (`None` leaves it to the scheduler), until its time is
/// over or it is told to stop.
pub fn run<W: Work>(
    trial: &mut Trial,
    settings: &LoadSettings,
    placement: &[Option<usize>],
    rates: &[CounterRate],
    prepare: impl Fn(usize) -> Result<W> + Sync,
) -> Result<()> {
    let session = trial.session;
    let worker_counters: Vec<_> = placement.iter().map(|_| WorkerCounters::default()).collect();
    let (latch, over) = (Latch::new(session, placement.len()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let thread = |(number, pinned_cpu): (usize, &Option<usize>)| {
            let (pinned_cpu, own_counters, latch, over, prepare) =
                (*pinned_cpu, &worker_counters[number], &latch, &over, &prepare);
            let work = move || -> Result<()> {
                let prepared =
                    pinned_cpu.map_or(Ok(()), affinity::pin).and_then(|()| prepare(number));
                if prepared.is_err() {
                    latch.give_up();
                }
                let mut work = prepared?;
                if !latch.wait() {
                    return Ok(());
                }
                let done = worker_loop(&mut work, settings, placement.len(), own_counters, over);
                if done.is_err() {
                    over.store(true, Ordering::Relaxed);
                }
                done
            };
            workers::start(scope, None, work).inspect_err(|_| latch.give_up())
        };
        let threads: Vec<_> = placement.iter().enumerate().map(thread).collect();
        let watched = latch.open_behind(|| trial.prepared()).and_then(|opened| match opened {
            Some(()) => watch(trial, settings, &worker_counters, (rates, W::PARTS), &over),
            None => Ok(()),
        });
        over.store(true, Ordering::Relaxed);
        latch.give_up();
        for thread in threads {
            thread.and_then(JoinedWorker::join)?;
        }
        watched
    })
}

/// What tells a thread when to work.
enum WorkSchedule {
    Duty(DutyCycle),
    Beat(Pacer),
}

/// Works as its clockwork says until the load is over.
fn worker_loop<W: Work>(
    work: &mut W,
    settings: &LoadSettings,
    threads: usize,
    own_counters: &WorkerCounters,
    over: &AtomicBool,
) -> Result<()> {
    // Sleeps end up to 50 µs late by default: much of a short period.
    scheduling::minimise_timer_slack();
    let cpu_ns = |work: &W| clock::thread_cpu_ns() + work.others_cpu_ns();
    let (first_ns, first_cpu_ns) = (clock::monotonic_ns(), cpu_ns(work));
    let mut work_schedule = match settings.target {
        LoadTarget::CpuTime | LoadTarget::Time => WorkSchedule::Duty(DutyCycle::begin(
            settings.intensity_ratio,
            settings.period_ns,
            first_ns,
            0,
        )),
        LoadTarget::Rate(per_s) => {
            let per_s = per_s * settings.intensity_ratio / threads as f64;
            WorkSchedule::Beat(Pacer::begin(per_s, settings.interval_ns, first_ns))
        }
    };
    let (mut done, mut bits, mut busy_ns) = (0, 0, 0);
    while !over.load(Ordering::Relaxed) {
        let now_ns = clock::monotonic_ns();
        let used_ns = cpu_ns(work).saturating_sub(first_cpu_ns);
        own_counters.cpu_ns.store(used_ns, Ordering::Relaxed);
        let step = match &mut work_schedule {
            WorkSchedule::Duty(duty_cycle) if settings.target == LoadTarget::Time => {
                duty_cycle.next(now_ns, busy_ns)
            }
            WorkSchedule::Duty(duty_cycle) => duty_cycle.next(now_ns, used_ns),
            WorkSchedule::Beat(pacer) => pacer.next(now_ns),
        };
        match step {
            CycleStep::Work => {
                own_counters.busy.begin(now_ns);
                done += work.bit()?;
                bits += 1;
                busy_ns = own_counters.busy.end(clock::monotonic_ns());
                own_counters.work.store(done, Ordering::Relaxed);
                for (counter, part) in own_counters.parts.iter().zip(work.parts()) {
                    counter.store(part, Ordering::Relaxed);
                }
                own_counters.bits.store(bits, Ordering::Relaxed);
            }
            // In pieces: the load may be over before a long period is.
            CycleStep::SleepUntil(at_ns) => {
                nap(at_ns.saturating_sub(now_ns).min(CHECK_INTERVAL_NS))
            }
        }
    }
    Ok(())
}

/// Prints what the threads do, interval by interval, then the whole.
fn watch(
    trial: &mut Trial,
    settings: &LoadSettings,
    worker_counters: &[WorkerCounters],
    rates: (&[CounterRate], &[CounterRate]),
    ended: &AtomicBool,
) -> Result<()> {
    let first = Sum::of(worker_counters);
    let mut last = first;
    let end_ns = match settings.duration_ns {
        0 => u64::MAX,
        duration_ns => first.at_ns + duration_ns,
    };
    let mut due_ns = first.at_ns + settings.interval_ns;
    loop {
        trial.session.check()?;
        let now_ns = clock::monotonic_ns();
        let over = trial.session.is_stopped() || now_ns >= end_ns || ended.load(Ordering::Relaxed);
        // A last piece that is too short for a rate stays out of the series.
        if now_ns >= due_ns || over && now_ns - last.at_ns >= settings.interval_ns / 2 {
            let sum = Sum::of(worker_counters);
            interval(trial, settings, &last, &sum, worker_counters.len(), rates)?;
            last = sum;
            while due_ns <= now_ns {
                due_ns += settings.interval_ns;
            }
        }
        if over {
            break;
        }
        nap((due_ns.min(end_ns) - now_ns).min(CHECK_INTERVAL_NS));
    }
    let sum = Sum::of(worker_counters);
    let seconds = (sum.at_ns - first.at_ns).max(1) as f64 / 1e9;
    for (rate, counted) in sum.rates(&first, rates) {
        trial.out.emit(rate.total, counted * rate.each / seconds, factors! {})?;
    }
    trial.out.emit("load_cpus", sum.cpu_ns as f64 / 1e9 / seconds, factors! {})?;
    let intensity = sum.intensity(&first, settings.target, worker_counters.len());
    trial.out.emit("load_intensity_ratio", intensity, factors! {})
}

fn interval(
    trial: &mut Trial,
    settings: &LoadSettings,
    from: &Sum,
    to: &Sum,
    threads: usize,
    rates: (&[CounterRate], &[CounterRate]),
) -> Result<()> {
    let ns = (to.at_ns - from.at_ns).max(1) as f64;
    let at_ns = to.at_ns.saturating_sub(trial.started_ns());
    for (rate, counted) in to.rates(from, rates) {
        let value = counted * rate.each * 1e9 / ns;
        trial.out.emit_at(rate.interval, value, 1, at_ns, factors! {})?;
    }
    let intensity = to.intensity(from, settings.target, threads);
    trial.out.emit_at("interval_intensity_ratio", intensity, 1, at_ns, factors! {})
}

fn nap(ns: u64) {
    if ns > 0 {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}
