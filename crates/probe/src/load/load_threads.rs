//! The threads of a load and their counters: each does small bits of work as its duty says and adds
//! them up; the calling thread reads the sums once an interval and prints them.
use super::busy_time::Busy;
use super::duty_cycle::{Duty, Step};
use super::even_rate::Beat;
use crate::error::Result;
use crate::threads::barriers::Latch;
use crate::threads::workers::{self, Worker};
use crate::trial::affinity;
use crate::trial::factors;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Longest sleep between two looks whether the load is to end.
const LOOK_AROUND_NS: u64 = 10_000_000;

/// Something to do, in bits of some microseconds, or operation by operation.
pub trait Work {
    /// Does a bit; how much of what is counted it was.
    fn bit(&mut self) -> Result<u64>;

    /// CPU time that other threads have used for it.
    fn others_cpu_ns(&self) -> u64 {
        0
    }

    /// What parts of the count become, beside the whole; at most [`PARTS`].
    const PARTS: &'static [Rate] = &[];

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
    pub keeps: LoadTarget,
    pub intensity_ratio: f64,
    pub period_ns: u64,
    pub interval_ns: u64,
    /// How long it runs; 0 until it is told to stop.
    pub duration_ns: u64,
}

impl LoadSettings {
    pub fn of(trial: &Trial, keeps: LoadTarget) -> Result<Self> {
        let ns = |id| trial.params.u64(id);
        Ok(Self {
            keeps,
            intensity_ratio: trial.params.float("intensity_ratio"),
            period_ns: ns("period_ns"),
            interval_ns: ns("interval_ns"),
            duration_ns: super::duration_ns(trial)?,
        })
    }
}

/// A metric that a load's counter becomes.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
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
struct Tally {
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
    fn of(tallies: &[Tally]) -> Self {
        let at_ns = clock::monotonic_ns();
        let sum = |of: fn(&Tally) -> &AtomicU64| {
            tallies.iter().map(|tally| of(tally).load(Ordering::Relaxed)).sum()
        };
        Self {
            at_ns,
            work: sum(|t| &t.work),
            parts: std::array::from_fn(|part| {
                tallies.iter().map(|tally| tally.parts[part].load(Ordering::Relaxed)).sum()
            }),
            bits: sum(|t| &t.bits),
            cpu_ns: sum(|t| &t.cpu_ns),
            busy_ns: tallies.iter().map(|tally| tally.busy.ns(at_ns)).sum(),
        }
    }

    /// The rates of the whole and of its parts, each with what was counted since `from`.
    fn rates<'a>(
        &'a self,
        from: &'a Self,
        (whole, parts): (&'a [Rate], &'a [Rate]),
    ) -> impl Iterator<Item = (&'a Rate, f64)> + 'a {
        let whole = whole.iter().map(|rate| (rate, (self.work - from.work) as f64));
        let part = |at: usize| (self.parts[at] - from.parts[at]) as f64;
        whole.chain(parts.iter().enumerate().map(move |(at, rate)| (rate, part(at))))
    }

    /// What the load got of what it is to keep at full intensity, since `from`.
    fn intensity(&self, from: &Self, keeps: LoadTarget, threads: usize) -> f64 {
        let ns = self.at_ns.saturating_sub(from.at_ns).max(1) as f64;
        let since = |of: fn(&Self) -> u64| of(self).saturating_sub(of(from)) as f64;
        match keeps {
            LoadTarget::CpuTime => since(|sum| sum.cpu_ns) / ns / threads as f64,
            LoadTarget::Time => since(|sum| sum.busy_ns) / ns / threads as f64,
            LoadTarget::Rate(per_s) => since(|sum| sum.bits) * 1e9 / ns / per_s,
        }
    }
}

/// Runs a load, one thread on each of `seats` (`None` leaves it to the scheduler), until its time is
/// over or it is told to stop.
pub fn run<W: Work>(
    trial: &mut Trial,
    shift: &LoadSettings,
    seats: &[Option<usize>],
    rates: &[Rate],
    prepare: impl Fn(usize) -> Result<W> + Sync,
) -> Result<()> {
    let session = trial.session;
    let tallies: Vec<_> = seats.iter().map(|_| Tally::default()).collect();
    let (latch, over) = (Latch::new(session, seats.len()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let thread = |(number, seat): (usize, &Option<usize>)| {
            let (seat, tally, latch, over, prepare) =
                (*seat, &tallies[number], &latch, &over, &prepare);
            let work = move || -> Result<()> {
                let prepared = seat.map_or(Ok(()), affinity::pin).and_then(|()| prepare(number));
                if prepared.is_err() {
                    latch.give_up();
                }
                let mut work = prepared?;
                if !latch.wait() {
                    return Ok(());
                }
                let done = worker_loop(&mut work, shift, seats.len(), tally, over);
                if done.is_err() {
                    over.store(true, Ordering::Relaxed);
                }
                done
            };
            workers::start(scope, None, work).inspect_err(|_| latch.give_up())
        };
        let threads: Vec<_> = seats.iter().enumerate().map(thread).collect();
        let watched = latch.open_behind(|| trial.prepared()).and_then(|opened| match opened {
            Some(()) => watch(trial, shift, &tallies, (rates, W::PARTS), &over),
            None => Ok(()),
        });
        over.store(true, Ordering::Relaxed);
        latch.give_up();
        for thread in threads {
            thread.and_then(Worker::join)?;
        }
        watched
    })
}

/// What tells a thread when to work.
enum Clockwork {
    Duty(Duty),
    Beat(Beat),
}

/// Works as its clockwork says until the load is over.
fn worker_loop<W: Work>(
    work: &mut W,
    shift: &LoadSettings,
    threads: usize,
    tally: &Tally,
    over: &AtomicBool,
) -> Result<()> {
    // Sleeps end up to 50 µs late by default: much of a short period.
    scheduling::minimise_timer_slack();
    let cpu_ns = |work: &W| clock::thread_cpu_ns() + work.others_cpu_ns();
    let (first_ns, first_cpu_ns) = (clock::monotonic_ns(), cpu_ns(work));
    let mut clockwork = match shift.keeps {
        LoadTarget::CpuTime | LoadTarget::Time => {
            Clockwork::Duty(Duty::begin(shift.intensity_ratio, shift.period_ns, first_ns, 0))
        }
        LoadTarget::Rate(per_s) => {
            let per_s = per_s * shift.intensity_ratio / threads as f64;
            Clockwork::Beat(Beat::begin(per_s, shift.interval_ns, first_ns))
        }
    };
    let (mut done, mut bits, mut busy_ns) = (0, 0, 0);
    while !over.load(Ordering::Relaxed) {
        let now_ns = clock::monotonic_ns();
        let used_ns = cpu_ns(work).saturating_sub(first_cpu_ns);
        tally.cpu_ns.store(used_ns, Ordering::Relaxed);
        let step = match &mut clockwork {
            Clockwork::Duty(duty) if shift.keeps == LoadTarget::Time => duty.next(now_ns, busy_ns),
            Clockwork::Duty(duty) => duty.next(now_ns, used_ns),
            Clockwork::Beat(beat) => beat.next(now_ns),
        };
        match step {
            Step::Work => {
                tally.busy.begin(now_ns);
                done += work.bit()?;
                bits += 1;
                busy_ns = tally.busy.end(clock::monotonic_ns());
                tally.work.store(done, Ordering::Relaxed);
                for (counter, part) in tally.parts.iter().zip(work.parts()) {
                    counter.store(part, Ordering::Relaxed);
                }
                tally.bits.store(bits, Ordering::Relaxed);
            }
            // In pieces: the load may be over before a long period is.
            Step::SleepUntil(at_ns) => nap(at_ns.saturating_sub(now_ns).min(LOOK_AROUND_NS)),
        }
    }
    Ok(())
}

/// Prints what the threads do, interval by interval, then the whole.
fn watch(
    trial: &mut Trial,
    shift: &LoadSettings,
    tallies: &[Tally],
    rates: (&[Rate], &[Rate]),
    ended: &AtomicBool,
) -> Result<()> {
    let first = Sum::of(tallies);
    let mut last = first;
    let end_ns = match shift.duration_ns {
        0 => u64::MAX,
        duration_ns => first.at_ns + duration_ns,
    };
    let mut due_ns = first.at_ns + shift.interval_ns;
    loop {
        trial.session.check()?;
        let now_ns = clock::monotonic_ns();
        let over = trial.session.is_stopped() || now_ns >= end_ns || ended.load(Ordering::Relaxed);
        // A last piece that is too short for a rate stays out of the series.
        if now_ns >= due_ns || over && now_ns - last.at_ns >= shift.interval_ns / 2 {
            let sum = Sum::of(tallies);
            interval(trial, shift, &last, &sum, tallies.len(), rates)?;
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
    for (rate, counted) in sum.rates(&first, rates) {
        trial.out.emit(rate.total, counted * rate.each / seconds, factors! {})?;
    }
    trial.out.emit("load_cpus", sum.cpu_ns as f64 / 1e9 / seconds, factors! {})?;
    let intensity = sum.intensity(&first, shift.keeps, tallies.len());
    trial.out.emit("load_intensity_ratio", intensity, factors! {})
}

fn interval(
    trial: &mut Trial,
    shift: &LoadSettings,
    from: &Sum,
    to: &Sum,
    threads: usize,
    rates: (&[Rate], &[Rate]),
) -> Result<()> {
    let ns = (to.at_ns - from.at_ns).max(1) as f64;
    let at_ns = to.at_ns.saturating_sub(trial.started_ns());
    for (rate, counted) in to.rates(from, rates) {
        let value = counted * rate.each * 1e9 / ns;
        trial.out.emit_at(rate.interval, value, 1, at_ns, factors! {})?;
    }
    let intensity = to.intensity(from, shift.keeps, threads);
    trial.out.emit_at("interval_intensity_ratio", intensity, 1, at_ns, factors! {})
}

fn nap(ns: u64) {
    if ns > 0 {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}
