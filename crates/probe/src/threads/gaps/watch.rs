//! The loop itself: it looks at the clock again and again, and what lies between two looks is
//! either the cost of a look or a gap.
use super::cause::{Cause, Causes};
use super::read_intervals::ReadIntervals;
use super::record::{histogram, GapEvent, Record};
use super::{GapMeterSettings, LoopPlacement};
use crate::error::Result;
use crate::timing::closed_loop::buckets;
use crate::timing::ticks::{TickReading, Ticks};
use crate::trial::affinity;
use hdrhistogram::Histogram;
use nephoscope_linux::clock;
use nephoscope_wire::gap_cycles::LONG_SHARE;

/// A loop with its memory, ready to look.
pub struct Watch {
    settings: GapMeterSettings,
    place: LoopPlacement,
    pin_refused: Option<String>,
    threshold: u64,
    long: u64,
    causes: Causes,
    intervals: ReadIntervals,
    counts: LoopCounts,
    runs: Histogram<u64>,
    lengths: Histogram<u64>,
    periods: Histogram<u64>,
    events: Vec<GapEvent>,
    sleeps: Vec<GapEvent>,
    began: Moment,
    ended: Moment,
}

/// What was counted; times in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct LoopCounts {
    start: u64,
    end: u64,
    gaps: u64,
    gap_ticks: u64,
    asking: u64,
    slept: u64,
    longest: u64,
    run_start: u64,
    last_gap_start: Option<u64>,
    long_gaps: u64,
    /// Start of the first long gap, and the ticks lost before it.
    first_long: (u64, u64),
    last_long: (u64, u64),
    left_out: u64,
}

/// Clocks and counters at one end of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    pair: TickReading,
    cpu_ns: u64,
    involuntary: Option<i64>,
}

impl Watch {
    /// Pins this thread, allocates, touches and practises: nothing in [`Self::look`] then allocates
    /// or faults.
    pub fn prepare<C: Ticks>(settings: &GapMeterSettings, place: LoopPlacement) -> Self {
        let pinned = place.cpu.map_or(Ok(()), affinity::pin);
        // A loop that could not be pinned is known by its number among all.
        let place = match pinned {
            Ok(()) => place,
            Err(_) => LoopPlacement { cpu: None, process: place.number, ..place },
        };
        let ticks = |ns: f64| (ns / settings.ns_per_tick).round() as u64;
        let empty = GapEvent { start: 1, length: 1, cause: Cause::Unexplained };
        let mut watch = Self {
            settings: settings.clone(),
            place,
            pin_refused: pinned.err().map(|error| error.message),
            threshold: ticks(settings.threshold_ns as f64).max(1),
            long: ticks(settings.duration_ns as f64 * LONG_SHARE),
            causes: Causes::open(place.cpu),
            intervals: ReadIntervals::default(),
            counts: LoopCounts::default(),
            runs: histogram(),
            lengths: histogram(),
            periods: histogram(),
            // Not zero, so that every page is written.
            events: vec![empty; settings.events_max],
            sleeps: vec![empty; settings.sleeps_max()],
            began: Moment::default(),
            ended: Moment::default(),
        };
        watch.causes.rehearse::<C>();
        watch.rehearse::<C>(ticks(1e6));
        watch
    }

    /// A millisecond in which every look counts as a gap: walks through all code and memory.
    fn rehearse<C: Ticks>(&mut self, ticks: u64) {
        self.events.clear();
        self.sleeps.clear();
        let threshold = std::mem::replace(&mut self.threshold, 0);
        let start = C::now();
        self.watch::<C>(start, start + ticks, u64::MAX);
        self.threshold = threshold;
        self.began = self.moment::<C>();
        self.intervals.clear();
        self.events.clear();
        for histogram in [&mut self.runs, &mut self.lengths, &mut self.periods] {
            histogram.reset();
        }
    }

    /// Looks for the whole duration, from `start_ns` on the monotonic clock or from now on.
    pub fn watch_clock<C: Ticks>(&mut self, start_ns: Option<u64>) {
        let per_tick = self.settings.ns_per_tick;
        let ticks = |ns: u64| (ns as f64 / per_tick) as u64;
        self.causes.restart();
        self.began = self.moment::<C>();
        let start = start_ns.map_or_else(C::now, |ns| {
            let TickReading { ticks: now, monotonic_ns } = self.began.pair;
            let start = now + ticks(ns.saturating_sub(monotonic_ns));
            // With a common start the loops of one CPU contend already when the window opens.
            while C::now() < start && !self.settings.session.is_cancelled() {}
            start
        });
        let busy = match self.settings.sleep_ns {
            0 => u64::MAX,
            _ => ticks(self.settings.busy_ns),
        };
        self.watch::<C>(start, start + ticks(self.settings.duration_ns), busy);
        self.ended = self.moment::<C>();
    }

    /// Looks from `start` to `end`, asleep now and then after `busy` ticks.
    fn watch<C: Ticks>(&mut self, start: u64, end: u64, busy: u64) {
        self.counts = LoopCounts { start, end, run_start: start, ..LoopCounts::default() };
        let threshold = self.threshold;
        let mut last = start;
        loop {
            let until = last.saturating_add(busy).min(end);
            while last < until && !self.settings.session.is_cancelled() {
                let now = C::now();
                // Unpinned, a loop may come to a CPU whose counter is a few ticks behind.
                let length = now.saturating_sub(last);
                if length >= threshold {
                    last = self.gap::<C>(last, now);
                } else {
                    self.intervals.count(length);
                    last = now;
                }
            }
            if last >= end || self.settings.session.is_cancelled() {
                return;
            }
            last = self.sleep::<C>(last);
        }
    }

    /// Sleeps, at most to the end of the window. Gives the moment at which looking goes on.
    #[cold]
    #[inline(never)]
    fn sleep<C: Ticks>(&mut self, from: u64) -> u64 {
        let left_ns = self.counts.end.saturating_sub(from) as f64 * self.settings.ns_per_tick;
        clock::nap(self.settings.sleep_ns.min(left_ns as u64));
        self.causes.forget_own_sleep();
        let after = C::now();
        let counts = &mut self.counts;
        counts.slept += after.min(counts.end).saturating_sub(from.min(counts.end));
        counts.run_start = after;
        // No run and no cycle reaches over a sleep.
        counts.last_gap_start = None;
        if self.sleeps.len() < self.sleeps.capacity() {
            let length = after.saturating_sub(from);
            self.sleeps.push(GapEvent { start: from, length, cause: Cause::Stopped });
        }
        after
    }

    /// Keeps one gap and asks for its cause. Gives the moment at which looking goes on.
    #[cold]
    #[inline(never)]
    fn gap<C: Ticks>(&mut self, from: u64, to: u64) -> u64 {
        let (mut from, mut to) = (from, to);
        loop {
            let usual = self.record_gap(from, to);
            let after = C::now();
            let asking_ticks = after.saturating_sub(to);
            if asking_ticks < 4 * usual + self.threshold {
                self.counts.asking += asking_ticks;
                self.counts.run_start = after;
                return after;
            }
            // Asking took far longer than it does: a gap fell into it.
            self.counts.asking += usual;
            self.counts.run_start = to;
            (from, to) = (to + usual, after);
        }
    }

    /// Keeps one gap; gives the ticks that asking for its cause should have taken.
    fn record_gap(&mut self, from: u64, to: u64) -> u64 {
        let scale = self.settings.ns_per_tick;
        let ns = |ticks: u64| ((ticks as f64 * scale).round() as u64).max(1);
        let length = to - from;
        let counts = &mut self.counts;
        if length >= self.long {
            counts.last_long = (from, counts.gap_ticks);
            if counts.long_gaps == 0 {
                counts.first_long = counts.last_long;
            }
            counts.long_gaps += 1;
        }
        counts.gaps += 1;
        counts.longest = counts.longest.max(length);
        // Only what lies inside the window counts as lost.
        counts.gap_ticks += to.min(counts.end).saturating_sub(from.min(counts.end));
        self.lengths.saturating_record(ns(length));
        if let Some(last) = counts.last_gap_start {
            // The first run began before the window: its length is not known.
            self.runs.saturating_record(ns(from.saturating_sub(counts.run_start)));
            self.periods.saturating_record(ns(from - last));
        }
        counts.last_gap_start = Some(from);
        let cause = self.causes.find(ns(length));
        if self.events.len() < self.settings.events_max {
            self.events.push(GapEvent { start: from, length, cause });
        } else {
            self.counts.left_out += 1;
        }
        self.causes.usual_ticks(ns(length))
    }

    fn moment<C: Ticks>(&self) -> Moment {
        let cpu_ns = clock::thread_cpu_ns();
        Moment { pair: C::pair(), cpu_ns, involuntary: self.causes.involuntary() }
    }

    /// What was seen, in nanoseconds by the rate of the counter over the window itself.
    pub fn record(self) -> Result<Record> {
        self.settings.session.check()?;
        let (counts, began, ended) = (self.counts, self.began, self.ended);
        let scale = ended.pair.ns_per_tick(&began.pair);
        let ns = |ticks: u64| ticks as f64 * scale;
        let wall_ns = ended.pair.monotonic_ns - began.pair.monotonic_ns;
        let moment_ns = |at: u64| began.pair.monotonic_ns + ns(at - began.pair.ticks) as u64;
        let event = |event: &GapEvent| GapEvent {
            start: moment_ns(event.start),
            length: ns(event.length).round() as u64,
            ..*event
        };
        let involuntary = ended.involuntary.zip(began.involuntary);
        let awake_ns = (wall_ns as f64 - ns(counts.slept)).max(1.0);
        Ok(Record {
            cpu: self.place.cpu,
            process: self.place.process,
            pin_refused: self.pin_refused,
            start_ns: moment_ns(counts.start),
            window_ns: ns(counts.end - counts.start),
            gaps_ns: ns(counts.gap_ticks),
            asking_ns: ns(counts.asking),
            thread_cpu_ratio: (ended.cpu_ns - began.cpu_ns) as f64 / awake_ns,
            slept_ns: ns(counts.slept),
            sleeps: self.sleeps.iter().map(event).collect(),
            cycles_share: cycles_share(&counts),
            clock_reads: self.intervals.total() + counts.gaps,
            gaps: counts.gaps,
            look_min_ns: ns(self.intervals.shortest().unwrap_or(counts.longest)),
            look_floor_ns: ns(self.intervals.quantile(0.999).unwrap_or(counts.longest)),
            longest_ns: ns(self.intervals.longest().max(counts.longest)),
            involuntary: involuntary.and_then(|(now, then)| u64::try_from(now - then).ok()),
            rate_drift: scale / self.settings.ns_per_tick - 1.0,
            events: self.events.iter().map(event).collect(),
            events_left_out: counts.left_out,
            runs: buckets(&self.runs).collect(),
            lengths: buckets(&self.lengths).collect(),
            periods: buckets(&self.periods).collect(),
        })
    }
}

/// Share between the first and the last start of a long gap: whole cycles of gap and run only, so
/// that the part of a cycle that the window cuts off does not count. Needs three long gaps, that
/// is, two cycles.
fn cycles_share(counts: &LoopCounts) -> Option<f64> {
    let ((first, lost_before), (last, lost_after)) = (counts.first_long, counts.last_long);
    let whole = last.saturating_sub(first) as f64;
    (counts.long_gaps >= 3 && whole > 0.0 && counts.slept == 0)
        .then(|| 1.0 - lost_after.saturating_sub(lost_before) as f64 / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::ticks::Monotonic;

    fn watch(duration_ns: u64) -> Watch {
        let (threshold_ns, events_max, ns_per_tick) = (100_000, 3, 1.0);
        let settings = GapMeterSettings {
            duration_ns,
            threshold_ns,
            events_max,
            sleep_ns: 0,
            busy_ns: 0,
            ns_per_tick,
            session: crate::trial::session::Session::detached(),
        };
        Watch::prepare::<Monotonic>(&settings, LoopPlacement { cpu: None, process: 0, number: 0 })
    }

    /// 30 run, 10 off, and a window that cuts the cycles: the share over whole cycles is exact
    /// where the plain one is off by the part that was cut.
    #[test]
    fn whole_cycles_have_no_edges() {
        let mut watch = watch(205_000_000);
        let base = 1_000_000_000;
        watch.counts = LoopCounts { start: base, end: base + 205_000_000, ..LoopCounts::default() };
        watch.counts.run_start = base;
        for cycle in 0..6 {
            let from = base + 5_000_000 + cycle * 40_000_000;
            watch.record_gap(from, from + 10_000_000);
            watch.counts.run_start = from + 10_000_000;
        }
        let share = cycles_share(&watch.counts).unwrap();
        assert!((share - 0.75).abs() < 1e-12, "{share}");
        // The sixth gap began as the window ended.
        assert_eq!(watch.counts.gap_ticks, 50_000_000);
        assert_eq!((watch.events.len(), watch.counts.left_out), (3, 3));
        let near = |pairs: Vec<(u64, u64)>, length: f64| {
            assert_eq!(pairs.iter().map(|(_, count)| count).sum::<u64>(), 5);
            let close = |(value, _): &(u64, u64)| (*value as f64 / length - 1.0).abs() < 1e-3;
            assert!(pairs.iter().all(close), "{pairs:?}");
        };
        near(buckets(&watch.runs).collect(), 30e6);
        near(buckets(&watch.periods).collect(), 40e6);
    }

    #[test]
    fn sleeps_belong_neither_to_runs_nor_to_gaps() {
        let mut watch = watch(60_000_000);
        watch.settings.sleep_ns = 10_000_000;
        watch.settings.busy_ns = 10_000_000;
        watch.sleeps = Vec::with_capacity(watch.settings.sleeps_max());
        watch.watch_clock::<Monotonic>(None);
        let record = watch.record().unwrap();
        // Busy, asleep, busy, asleep, busy, asleep; each may be longer on a busy machine.
        assert!((1..=3).contains(&record.sleeps.len()), "{:?}", record.sleeps);
        // The end of the window cuts a sleep that it finds.
        let (_, whole) = record.sleeps.split_last().unwrap();
        assert!(whole.iter().all(|sleep| sleep.length >= 9_900_000), "{:?}", record.sleeps);
        let slept: u64 = record.sleeps.iter().map(|sleep| sleep.length).sum();
        assert!(record.slept_ns <= slept as f64 + 1e3, "{record:?}");
        assert!((record.awake_ns() + record.slept_ns - record.window_ns).abs() < 1.0);
        assert!(record.cycles_share.is_none());
    }

    #[test]
    fn a_window_adds_up() {
        let mut watch = watch(20_000_000);
        watch.watch_clock::<Monotonic>(None);
        let record = watch.record().unwrap();
        assert!((record.window_ns - 20e6).abs() < 2e3, "{record:?}");
        assert!(record.clock_reads > 1000, "{record:?}");
        assert_eq!(record.gaps, record.lengths.iter().map(|(_, count)| count).sum::<u64>());
        assert_eq!(record.gaps, record.events.len() as u64 + record.events_left_out);
        assert!(record.look_min_ns <= record.look_floor_ns, "{record:?}");
        assert!((0.0..=1.0).contains(&record.share()));
    }
}
