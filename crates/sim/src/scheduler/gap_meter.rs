//! A loop that reads a clock in a simulated machine, and records the gaps between its reads.
use super::gaps::GapConfig;
use super::workload::CLOCK_READ;
use crate::samples::{FactorPairs, Sink};
use crate::statistics::Durations;
use crate::Nanos;
use nephoscope_wire::gap_cycles::{self, LoopGaps, LONG_SHARE};
use serde_json::json;

/// Start of a gap or a sleep, since that of the window, and its length.
type GapSpan = (Nanos, Nanos);

/// What one loop recorded.
#[derive(Clone, Debug, Default)]
pub struct GapRecord {
    cpu: usize,
    /// Number of the loop among those of its CPU.
    process: usize,
    window: Nanos,
    /// Start of the window on the host's clock.
    start: Nanos,
    /// Sum of the gaps within the window.
    lost: Nanos,
    /// Sum of the sleeps within the window.
    slept: Nanos,
    gap_count: u64,
    /// The first gaps, one by one.
    gaps: Vec<GapSpan>,
    sleeps: Vec<GapSpan>,
    /// CPU share over whole cycles between the first and the last long gap.
    cycles_share: Option<f64>,
    gap_lengths: Durations,
    run_lengths: Durations,
    periods: Durations,
    longest: Nanos,
}

/// A loop that reads a clock.
#[derive(Clone, Debug)]
pub struct GapMeter {
    config: GapConfig,
    /// The window starts when the loop runs first after this time; with several loops on a CPU
    /// exactly then (`has_common_start`).
    earliest_start: Nanos,
    has_common_start: bool,
    has_started: bool,
    last_read: Nanos,
    run_start: Nanos,
    last_gap_start: Option<Nanos>,
    busy_until: Nanos,
    is_done: bool,
    /// Start of each long gap, and the time lost before it.
    long_gaps: Vec<(Nanos, Nanos)>,
    record: GapRecord,
}

impl GapMeter {
    pub fn new(
        config: &GapConfig,
        cpu: usize,
        process: usize,
        earliest_start: Nanos,
        has_common_start: bool,
    ) -> Self {
        let record = GapRecord {
            cpu,
            process,
            window: config.duration_ns,
            start: earliest_start,
            longest: CLOCK_READ,
            ..GapRecord::default()
        };
        Self {
            config: config.clone(),
            earliest_start,
            has_common_start,
            has_started: false,
            last_read: earliest_start,
            run_start: earliest_start,
            last_gap_start: None,
            busy_until: Nanos::MAX,
            is_done: false,
            long_gaps: Vec::new(),
            record,
        }
    }

    fn end(&self) -> Nanos {
        self.record.start + self.config.duration_ns
    }

    /// Accounts for a run interval; they come in order.
    pub fn add_run(&mut self, from: Nanos, to: Nanos) {
        if self.is_done || to <= self.earliest_start {
            return;
        }
        let from = from.max(self.earliest_start);
        if !self.has_started {
            self.start(if self.has_common_start { self.earliest_start } else { from });
        }
        if from > self.last_read {
            if self.last_read >= self.busy_until {
                self.add_sleep(from);
            } else {
                self.add_gap(from);
            }
        }
        self.last_read = to;
        self.is_done = to >= self.end();
    }

    fn start(&mut self, time: Nanos) {
        self.has_started = true;
        (self.last_read, self.run_start, self.record.start) = (time, time, time);
        if self.config.sleep_ns > 0 {
            self.busy_until = time + self.config.busy_ns;
        }
    }

    /// Returns the part of an interval that lies within the window.
    fn within_window(&self, from: Nanos, to: Nanos) -> Nanos {
        to.min(self.end()).saturating_sub(from.min(self.end()))
    }

    fn add_sleep(&mut self, now: Nanos) {
        self.record.slept += self.within_window(self.last_read, now);
        self.record.sleeps.push((self.last_read - self.record.start, now - self.last_read));
        self.run_start = now;
        // No run and no cycle extends over a sleep.
        self.last_gap_start = None;
        self.busy_until = now + self.config.busy_ns;
    }

    fn add_gap(&mut self, now: Nanos) {
        let (from, length) = (self.last_read, now - self.last_read);
        self.record.longest = self.record.longest.max(length);
        if length < self.config.threshold_ns {
            return;
        }
        if length as f64 >= self.config.duration_ns as f64 * LONG_SHARE {
            self.long_gaps.push((from, self.record.lost));
        }
        self.record.gap_count += 1;
        self.record.lost += self.within_window(from, now);
        self.record.gap_lengths.add(length as f64);
        if let Some(last) = self.last_gap_start.replace(from) {
            // The first run started before the window: its length is unknown.
            self.record.run_lengths.add((from - self.run_start) as f64);
            self.record.periods.add((from - last) as f64);
        }
        self.run_start = now;
        if self.record.gaps.len() < self.config.events_max {
            self.record.gaps.push((from - self.record.start, length));
        }
    }

    /// Returns the record; a gap that is not over at `end`, the end of the simulation, ends there.
    pub fn into_record(mut self, end: Nanos) -> GapRecord {
        if !self.is_done && end > self.last_read && self.last_read < self.busy_until {
            self.add_gap(end);
        }
        if let (Some(first), Some(last)) = (self.long_gaps.first(), self.long_gaps.last()) {
            let duration = (last.0 - first.0) as f64;
            let has_cycles = self.long_gaps.len() >= 3 && self.record.slept == 0;
            let share = || 1.0 - (last.1 - first.1) as f64 / duration;
            self.record.cycles_share = has_cycles.then(share);
        }
        self.record
    }
}

impl GapRecord {
    /// Returns the share of the CPU that the loop had.
    pub fn share(&self) -> f64 {
        let awake = self.window.saturating_sub(self.slept).max(1);
        (1.0 - self.lost as f64 / awake as f64).max(0.0)
    }

    /// Emits its samples. sees_loss: its kernel knows what it was not given.
    pub fn emit(&self, sees_loss: bool, sink: &mut Sink<'_>) {
        let factors: &FactorPairs<'_> =
            &[("cpu", json!(self.cpu)), ("process", json!(self.process))];
        sink.scalar("cpu_share_ratio", factors, self.share());
        sink.scalar("cpu_share_cycles_ratio", factors, self.cycles_share);
        sink.scalar("thread_cpu_ratio", factors, if sees_loss { self.share() } else { 1.0 });
        sink.scalar("gaps_per_s", factors, self.gap_count as f64 / (self.window as f64 / 1e9));
        sink.scalar("gap_longest_ns", factors, self.longest as f64);
        for metric in ["look_cost_ns", "look_floor_ns", "look_min_ns"] {
            sink.scalar(metric, factors, CLOCK_READ as f64);
        }
        sink.scalar("asking_ratio", factors, 0.0);
        sink.histogram("gap_length_ns", factors, self.gap_lengths.pairs());
        sink.histogram("run_length_ns", factors, self.run_lengths.pairs());
        sink.histogram("gap_period_ns", factors, self.periods.pairs());
        let unexplained = [factors, &[("cause", json!("unexplained"))]].concat();
        for (time, length) in &self.gaps {
            sink.event("gap_event_ns", &unexplained, *length as f64, *time);
        }
        for (time, length) in &self.sleeps {
            sink.event("sleep_event_ns", factors, *length as f64, *time);
        }
    }
}

/// Returns the CPUs that all loops together had over whole cycles ([`gap_cycles::obtained`]). None if
/// gaps were left out, and for loops that slept.
pub fn obtained_over_cycles(records: &[GapRecord], long: Nanos) -> Option<f64> {
    let is_incomplete =
        |record: &GapRecord| record.gap_count > record.gaps.len() as u64 || record.slept > 0;
    if records.iter().any(is_incomplete) {
        return None;
    }
    let gaps = |GapRecord { start, window, gaps, .. }: &GapRecord| LoopGaps {
        window: *start..=start + window,
        gaps: gaps.iter().map(|(time, length)| (start + time, start + time + length)).collect(),
    };
    gap_cycles::obtained(&records.iter().map(gaps).collect::<Vec<_>>(), long)
}
