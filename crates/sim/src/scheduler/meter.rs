//! One loop that looks at a clock in a simulated machine, and what it saw.
use super::gaps::{Emit, Look};
use super::workload::LOOK;
use crate::tally::Times;
use crate::Nanos;
use serde_json::{json, Value};

/// Gaps of at least this share of the duration bound the cycles.
pub const LONG_SHARE: f64 = 0.002;

/// A gap or a sleep: when it began, since the window did, and its length.
pub type Event = (Nanos, Nanos);

/// What one loop saw.
#[derive(Clone, Debug)]
pub struct Record {
    /// The virtual CPU.
    pub cpu: usize,
    /// Number of the loop among those of its CPU.
    pub process: usize,
    /// Length of the window.
    pub window: Nanos,
    /// Gaps inside the window, added up.
    pub lost: Nanos,
    /// Sleeps inside the window, added up.
    pub slept: Nanos,
    /// Gaps, all of them.
    pub gaps: u64,
    /// Beginning of the window, on the host's clock.
    pub began: Nanos,
    /// The first gaps, one by one.
    pub events: Vec<Event>,
    /// Every sleep.
    pub sleeps: Vec<Event>,
    /// Share over whole cycles between the first and the last long gap.
    pub cycles_share: Option<f64>,
    lengths: Times,
    runs: Times,
    periods: Times,
    longest: Nanos,
}

/// A loop that looks.
#[derive(Clone, Debug)]
pub struct Meter {
    look: Look,
    /// The window begins when it runs first after that; with several loops of a CPU just then.
    begins: Nanos,
    common: bool,
    from: Option<Nanos>,
    last: Nanos,
    run_start: Nanos,
    last_gap_start: Option<Nanos>,
    busy_until: Nanos,
    done: bool,
    long: Vec<(Nanos, Nanos)>,
    record: Record,
}

impl Meter {
    /// A loop that begins then. `common`: all loops begin at that moment, whether they run or not.
    pub fn new(look: &Look, cpu: usize, process: usize, begins: Nanos, common: bool) -> Self {
        let times = Times::default;
        let record = Record {
            cpu,
            process,
            window: look.duration_ns,
            lost: 0,
            slept: 0,
            gaps: 0,
            began: begins,
            events: Vec::new(),
            sleeps: Vec::new(),
            cycles_share: None,
            lengths: times(),
            runs: times(),
            periods: times(),
            longest: LOOK,
        };
        Self {
            look: look.clone(),
            begins,
            common,
            from: None,
            last: begins,
            run_start: begins,
            last_gap_start: None,
            busy_until: Nanos::MAX,
            done: false,
            long: Vec::new(),
            record,
        }
    }

    fn end(&self) -> Nanos {
        self.record.began + self.look.duration_ns
    }

    /// It ran; stretches come in order.
    pub fn ran(&mut self, from: Nanos, to: Nanos) {
        if self.done || to <= self.begins {
            return;
        }
        let from = from.max(self.begins);
        if self.from.is_none() {
            self.begin(from);
        }
        if from > self.last {
            if self.last >= self.busy_until {
                self.slept(from);
            } else {
                self.missed(from);
            }
        }
        self.last = to;
        self.done = to >= self.end();
    }

    fn begin(&mut self, from: Nanos) {
        let start = if self.common { self.begins } else { from };
        self.from = Some(start);
        (self.last, self.run_start, self.record.began) = (start, start, start);
        if self.look.sleep_ns > 0 {
            self.busy_until = start + self.look.busy_ns;
        }
    }

    fn inside(&self, from: Nanos, to: Nanos) -> Nanos {
        to.min(self.end()).saturating_sub(from.min(self.end()))
    }

    fn slept(&mut self, now: Nanos) {
        self.record.slept += self.inside(self.last, now);
        self.record.sleeps.push((self.last - self.record.began, now - self.last));
        self.run_start = now;
        // No run and no cycle reaches over a sleep.
        self.last_gap_start = None;
        self.busy_until = now + self.look.busy_ns;
    }

    fn missed(&mut self, now: Nanos) {
        let (from, length) = (self.last, now - self.last);
        self.record.longest = self.record.longest.max(length);
        if length < self.look.threshold_ns {
            return;
        }
        let lost_before = self.record.lost;
        if length as f64 >= self.look.duration_ns as f64 * LONG_SHARE {
            self.long.push((from, lost_before));
        }
        self.record.gaps += 1;
        self.record.lost += self.inside(from, now);
        self.record.lengths.add(length as f64);
        if let Some(last) = self.last_gap_start.replace(from) {
            // The first run began before the window: its length is not known.
            self.record.runs.add((from - self.run_start) as f64);
            self.record.periods.add((from - last) as f64);
        }
        self.run_start = now;
        if self.record.events.len() < self.look.events_max {
            self.record.events.push((from - self.record.began, length));
        }
    }

    /// What it saw until `end`, where the simulation ended; a pause that is not over by then ends
    /// there.
    pub fn record(mut self, end: Nanos) -> Record {
        if !self.done && end > self.last && self.last < self.busy_until {
            if self.from.is_none() {
                self.from = Some(self.begins);
            }
            self.missed(end);
        }
        if let (Some(first), Some(last)) = (self.long.first(), self.long.last()) {
            let whole = (last.0 - first.0) as f64;
            let cycles = self.long.len() >= 3 && self.record.slept == 0;
            self.record.cycles_share = cycles.then(|| 1.0 - (last.1 - first.1) as f64 / whole);
        }
        self.record
    }
}

impl Record {
    /// Share of the CPU that the loop had.
    pub fn share(&self) -> f64 {
        let awake = self.window.saturating_sub(self.slept).max(1);
        (1.0 - self.lost as f64 / awake as f64).max(0.0)
    }

    /// Its samples. `known`: its kernel knows what it was not given.
    pub fn samples(&self, factors: &[(&str, Value)], known: bool, emit: Emit<'_>) {
        let scalars = [
            ("cpu_share_ratio", Some(self.share())),
            ("cpu_share_cycles_ratio", self.cycles_share),
            ("thread_cpu_ratio", Some(if known { self.share() } else { 1.0 })),
            ("gaps_per_s", Some(self.gaps as f64 / (self.window as f64 / 1e9))),
            ("gap_longest_ns", Some(self.longest as f64)),
            ("look_cost_ns", Some(LOOK as f64)),
            ("look_floor_ns", Some(LOOK as f64)),
            ("look_min_ns", Some(LOOK as f64)),
            ("asking_ratio", Some(0.0)),
        ];
        for (metric, value) in scalars {
            if let Some(value) = value {
                emit(metric, factors, value, 1, None);
            }
        }
        let histograms = [
            ("gap_length_ns", &self.lengths),
            ("run_length_ns", &self.runs),
            ("gap_period_ns", &self.periods),
        ];
        for (metric, times) in histograms {
            for (value, count) in times.pairs() {
                emit(metric, factors, value, count, None);
            }
        }
        let mut caused = factors.to_vec();
        caused.push(("cause", json!("unexplained")));
        for (at, length) in &self.events {
            emit("gap_event_ns", &caused, *length as f64, 1, Some(*at));
        }
        for (at, length) in &self.sleeps {
            emit("sleep_event_ns", factors, *length as f64, 1, Some(*at));
        }
    }
}

/// CPUs that all loops together had over whole cycles: between the ends of the first and the last
/// long gap of the loop that has most of them. None below three, when gaps were left out, and for
/// loops that slept.
pub fn obtained_over_cycles(records: &[Record], long: Nanos) -> Option<f64> {
    let cut = |one: &Record| one.gaps > one.events.len() as u64 || one.slept > 0;
    if records.iter().any(cut) {
        return None;
    }
    let ends = |one: &Record| -> Vec<Nanos> {
        let long = one.events.iter().filter(|(_, length)| *length >= long);
        long.map(|(at, length)| one.began + at + length).collect()
    };
    let refills = records.iter().map(ends).max_by_key(Vec::len)?;
    let (from, to) = (*refills.first()?, *refills.last()?);
    if refills.len() < 3 || to <= from {
        return None;
    }
    let share = |one: &Record| {
        let lost = |(at, length): &Event| {
            let (start, end) = (one.began + at, one.began + at + length);
            end.min(to).saturating_sub(start.max(from)) as f64
        };
        1.0 - one.events.iter().map(lost).sum::<f64>() / (to - from) as f64
    };
    Some(records.iter().map(share).sum())
}
