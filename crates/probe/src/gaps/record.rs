//! What one loop saw.
use super::cause::Cause;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// One gap.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Event {
    /// When it began, in ticks while the loop runs, on the monotonic clock in a [`Record`].
    pub start: u64,
    /// Its length, in the same unit.
    pub length: u64,
    /// What the kernel knows about it.
    pub cause: Cause,
}

/// What one loop saw; times in nanoseconds. Crosses the pipe from a forked loop as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The CPU that it was pinned to.
    pub cpu: Option<usize>,
    /// Number of the loop among those of its CPU.
    pub process: usize,
    /// Why it is not pinned although that was asked for.
    pub pin_refused: Option<String>,
    /// Length of the window.
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
    pub looks: u64,
    /// Gaps.
    pub gaps: u64,
    /// Shortest look.
    pub look_min_ns: f64,
    /// 99.9th percentile of the looks below the threshold.
    pub look_floor_ns: f64,
    /// Longest look, gaps among them.
    pub longest_ns: f64,
    /// Involuntary context switches in the window; `None` where the kernel hides them.
    pub involuntary: Option<u64>,
    /// Relative difference between the short calibration and the one over the window.
    pub rate_drift: f64,
    /// The first gaps, one by one.
    pub events: Vec<Event>,
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
        (1.0 - self.gaps_ns / self.window_ns).max(0.0)
    }

    /// Mean time of one look while nothing disturbed.
    pub fn look_cost_ns(&self) -> f64 {
        let undisturbed = self.window_ns - self.gaps_ns - self.asking_ns;
        undisturbed.max(0.0) / self.looks.saturating_sub(self.gaps).max(1) as f64
    }
}

/// Longest time that a histogram holds: the longest trial.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// An empty histogram whose memory is all there: recording neither allocates nor faults.
pub fn histogram() -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are in order");
    // Writes every count, and so touches every page.
    histogram.reset();
    histogram
}

/// (value, count) of every recorded bucket; the value is the bucket's middle.
pub fn pairs(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let pair = |bucket: hdrhistogram::iterators::IterationValue<u64>| {
        let value = histogram.median_equivalent(bucket.value_iterated_to());
        (value, bucket.count_since_last_iteration())
    };
    histogram.iter_recorded().map(pair).collect()
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

    #[test]
    fn pairs_survive_the_way_there_and_back() {
        let mut histogram = histogram();
        for value in [1, 24, 999, 123_456, 50_000_000, LONGEST_NS, 123_456] {
            histogram.saturating_record(value);
        }
        let sent = pairs(&histogram);
        assert_eq!(sent.iter().map(|(_, count)| count).sum::<u64>(), 7);
        assert_eq!(pairs(&from_pairs(&sent)), sent);
    }
}
