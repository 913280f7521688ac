//! What one loop saw.
use super::cause::Cause;
use crate::timing::closed_loop::latency_histogram;
use hdrhistogram::Histogram;
use nephoscope_wire::gap_cycles::{self, LoopGaps};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct GapEvent {
    /// When it began, in ticks while the loop runs, on the monotonic clock in a [`Record`].
    pub start: u64,
    /// Its length, in the same unit.
    pub length: u64,
    pub cause: Cause,
}

/// What one loop saw; times in nanoseconds. Crosses the pipe from a forked loop as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub cpu: Option<usize>,
    /// Number of the loop among those of its CPU.
    pub process: usize,
    /// Why it is not pinned although that was asked for.
    pub pin_refused: Option<String>,
    /// Start of the window on the monotonic clock.
    pub start_ns: u64,
    pub window_ns: f64,
    /// Gaps inside the window, added up.
    pub gaps_ns: f64,
    /// Time spent asking the kernel for causes.
    pub asking_ns: f64,
    /// CPU time over wall time, as the kernel has it.
    pub thread_cpu_ratio: f64,
    /// Share of the CPU over whole cycles, from the first long gap's start to the last one's.
    pub cycles_share: Option<f64>,
    /// Looks, gaps among them.
    pub clock_reads: u64,
    pub gaps: u64,
    pub look_min_ns: f64,
    /// 99.9th percentile of the looks below the threshold.
    pub look_floor_ns: f64,
    /// Longest look, gaps among them.
    pub longest_ns: f64,
    /// Involuntary context switches in the window; `None` where the kernel hides them.
    pub involuntary: Option<u64>,
    /// Relative difference between the short calibration and the one over the window.
    pub rate_drift: f64,
    /// Time that the loop slept because it was told to.
    pub slept_ns: f64,
    /// Every sleep, one by one; the cause says nothing.
    pub sleeps: Vec<GapEvent>,
    /// The first gaps, one by one.
    pub events: Vec<GapEvent>,
    /// Gaps that did not fit into `events`.
    pub events_left_out: u64,
    /// Lengths of complete runs, as (value, count).
    pub runs: Vec<(u64, u64)>,
    /// Lengths of gaps, as (value, count).
    pub lengths: Vec<(u64, u64)>,
    /// Times from gap start to gap start, as (value, count).
    pub periods: Vec<(u64, u64)>,
}

impl Record {
    /// Share of the CPU that the loop had.
    pub fn share(&self) -> f64 {
        (1.0 - self.gaps_ns / self.awake_ns()).max(0.0)
    }

    /// End of the window on the monotonic clock. The last gap may end later.
    fn end_ns(&self) -> u64 {
        self.start_ns + self.window_ns as u64
    }

    /// The window without the sleeps.
    pub fn awake_ns(&self) -> f64 {
        (self.window_ns - self.slept_ns).max(1.0)
    }

    /// Mean time of one look while nothing disturbed.
    pub fn mean_read_ns(&self) -> f64 {
        let undisturbed = self.awake_ns() - self.gaps_ns - self.asking_ns;
        undisturbed.max(0.0) / self.clock_reads.saturating_sub(self.gaps).max(1) as f64
    }
}

/// CPUs that all loops together had over whole cycles ([`gap_cycles::obtained`]); `None` when gaps were
/// left out, and for loops that slept.
pub fn obtained_over_cycles(records: &[Record], long_ns: u64) -> Option<f64> {
    if records.iter().any(|record| record.events_left_out > 0 || record.slept_ns > 0.0) {
        return None;
    }
    let gaps = |record: &Record| LoopGaps {
        window: record.start_ns..=record.end_ns(),
        gaps: record.events.iter().map(|gap| (gap.start, gap.start + gap.length)).collect(),
    };
    gap_cycles::obtained(&records.iter().map(gaps).collect::<Vec<_>>(), long_ns)
}

/// An empty histogram whose memory is all there: recording neither allocates nor faults.
pub fn histogram() -> Histogram<u64> {
    let mut histogram = latency_histogram();
    // Writes every count, and so touches every page.
    histogram.reset();
    histogram
}

/// The histogram that has these pairs.
pub fn from_pairs(pairs: &[(u64, u64)]) -> Histogram<u64> {
    let mut histogram = histogram();
    for (value, count) in pairs {
        histogram.saturating_record_n(*value, *count);
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::closed_loop::buckets;

    fn record(gaps: &[(u64, u64)]) -> Record {
        let event =
            |gap: &(u64, u64)| GapEvent { start: gap.0, length: gap.1, cause: Cause::Preempted };
        Record {
            cpu: None,
            process: 0,
            pin_refused: None,
            start_ns: 0,
            window_ns: 1000.0,
            gaps_ns: 0.0,
            asking_ns: 0.0,
            thread_cpu_ratio: 1.0,
            cycles_share: None,
            clock_reads: 1,
            gaps: gaps.len() as u64,
            look_min_ns: 1.0,
            look_floor_ns: 1.0,
            longest_ns: 1.0,
            involuntary: None,
            rate_drift: 0.0,
            slept_ns: 0.0,
            sleeps: Vec::new(),
            events: gaps.iter().map(event).collect(),
            events_left_out: 0,
            runs: Vec::new(),
            lengths: Vec::new(),
            periods: Vec::new(),
        }
    }

    /// 150 in 100 for two loops, refilled at 30, 130, …: each window of either loop alone would
    /// count unequal numbers of periods.
    #[test]
    fn what_loops_obtain_together_counts_whole_periods_for_both() {
        let early = [(10, 20), (100, 30), (200, 30), (300, 30), (400, 30)];
        let late = [(110, 20), (210, 20), (310, 20), (410, 20)];
        let records = [record(&early), record(&late)];
        let obtained = obtained_over_cycles(&records, 10).unwrap();
        assert!((obtained - 1.5).abs() < 1e-12, "{obtained}");
        assert!(obtained_over_cycles(&records, 25).is_some());
        assert!(obtained_over_cycles(&records, 31).is_none(), "no gap is that long");
        let slept = Record { slept_ns: 5.0, ..record(&early) };
        assert!(obtained_over_cycles(&[slept], 10).is_none());
        let cut = Record { events_left_out: 1, ..record(&early) };
        assert!(obtained_over_cycles(&[cut], 10).is_none());
    }

    /// The first loop waits for its refill at 530 when the windows end; the second, which would run
    /// out at 520, is still running then.
    #[test]
    fn what_loops_obtain_together_ends_with_the_first_window() {
        let waits = [(100, 30), (200, 30), (300, 30), (400, 30), (480, 50)];
        let runs = [(120, 10), (220, 10), (320, 10), (420, 10)];
        let records =
            [&waits[..], &runs[..]].map(|gaps| Record { window_ns: 500.0, ..record(gaps) });
        let obtained = obtained_over_cycles(&records, 10).unwrap();
        assert!((obtained - 1.6).abs() < 1e-12, "{obtained}");
    }

    #[test]
    fn pairs_survive_the_way_there_and_back() {
        let mut histogram = histogram();
        for value in [1, 24, 999, 123_456, 50_000_000, 3_600_000_000_000, 123_456] {
            histogram.saturating_record(value);
        }
        let pairs = |histogram: &Histogram<u64>| buckets(histogram).collect::<Vec<_>>();
        let sent = pairs(&histogram);
        assert_eq!(sent.iter().map(|(_, count)| count).sum::<u64>(), 7);
        assert_eq!(pairs(&from_pairs(&sent)), sent);
    }
}
