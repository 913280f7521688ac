//! A closed loop's completions, counted: a warm-up, then a rate and a latency histogram that belong
//! together.
use crate::error::{FailureKind, ProbeError, Result};
use hdrhistogram::Histogram;

/// What a closed loop saw.
#[derive(Debug)]
pub struct ClosedLoopResult {
    pub operations_per_s: f64,
    /// Latency of each counted operation.
    pub latency: Histogram<u64>,
}

/// An empty latency histogram, 1 ns to 1 h in 3 digits, that never grows. All its memory is there:
/// no value of a trial has to wait for a page.
pub fn latency_histogram() -> Histogram<u64> {
    let empty = Histogram::new_with_bounds(1, 3_600_000_000_000, 3);
    // Not seen through: zeros over memory that is known to be zero would be left out.
    let mut histogram = std::hint::black_box(empty).expect("valid bounds and digits");
    histogram.reset();
    histogram
}

/// The (value, count) of each recorded bucket of a histogram; the value is the bucket's middle.
pub fn buckets(histogram: &Histogram<u64>) -> impl Iterator<Item = (u64, u64)> + '_ {
    histogram.iter_recorded().map(|bucket| {
        let value = histogram.median_equivalent(bucket.value_iterated_to());
        (value, bucket.count_since_last_iteration())
    })
}

/// The middle one of some values, or the mean of the two in the middle.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

/// The same as samples.
pub fn pairs(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    buckets(histogram).map(|(value, count)| (value as f64, count)).collect()
}

/// Counts the completions of one worker. The first tenth of the time warms up (queues fill, clocks
/// rise); the completion that ends it starts the count and is not part of it, so that the counted
/// operations and the counted time belong together: n completions, n intervals.
#[derive(Debug)]
pub struct CompletionWindow {
    warm_until_ns: u64,
    duration_ns: u64,
    first_ns: u64,
    last_ns: u64,
    histogram: Histogram<u64>,
}

impl CompletionWindow {
    /// A window of `duration_ns`, after a warm-up of a tenth of it from `now_ns` on.
    pub fn open(now_ns: u64, duration_ns: u64) -> Self {
        let histogram = latency_histogram();
        let warm_until_ns = now_ns + duration_ns / 10;
        Self { warm_until_ns, duration_ns, first_ns: 0, last_ns: 0, histogram }
    }

    /// Moves the window: its warm-up begins at `now_ns`. Nothing may have been counted yet.
    pub fn begin(&mut self, now_ns: u64) {
        debug_assert!(self.first_ns == 0);
        self.warm_until_ns = now_ns + self.duration_ns / 10;
    }

    /// Counts a completion seen at `now_ns`; false when the time is over and at least one counted.
    /// What was under way then may still be counted.
    #[inline]
    pub fn completed(&mut self, now_ns: u64, latency_ns: u64) -> bool {
        if self.first_ns == 0 {
            if now_ns >= self.warm_until_ns {
                self.first_ns = now_ns;
            }
            return true;
        }
        self.last_ns = now_ns;
        self.histogram.saturating_record(latency_ns.max(1));
        now_ns - self.first_ns < self.duration_ns
    }

    /// What the workers saw together. Their queues are independent, so their rates add up.
    pub fn outcome(windows: impl IntoIterator<Item = Self>) -> Result<ClosedLoopResult> {
        let mut latency = latency_histogram();
        let mut operations_per_s = 0.0;
        for window in windows {
            let elapsed_ns = window.last_ns.saturating_sub(window.first_ns);
            if window.histogram.is_empty() || elapsed_ns == 0 {
                return Err(ProbeError::new(
                    FailureKind::Failed,
                    "too_short",
                    "No operation was counted.",
                    "Set a longer `duration_ns`.",
                ));
            }
            operations_per_s += window.histogram.len() as f64 * 1e9 / elapsed_ns as f64;
            latency.add(&window.histogram).expect("all windows have the same bounds");
        }
        Ok(ClosedLoopResult { operations_per_s, latency })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_train_of_completions_gives_its_rate_exactly() {
        let mut window = CompletionWindow::open(77_000, 1_000_000);
        let start = 77_000;
        // One completion every 1000 ns, each 4000 ns under way: depth 4.
        let mut completions = 1;
        while window.completed(start + completions * 1000, 4000) {
            completions += 1;
        }
        let outcome = CompletionWindow::outcome([window]).unwrap();
        assert!((outcome.operations_per_s - 1e6).abs() < 1e-6);
        assert_eq!(outcome.latency.len(), 1000);
        let depth = outcome.operations_per_s * outcome.latency.mean() / 1e9;
        // The histogram rounds to 3 digits.
        assert!((depth - 4.0).abs() < 0.004, "{depth}");
    }

    #[test]
    fn an_operation_slower_than_the_window_still_counts_once() {
        let mut window = CompletionWindow::open(0, 1000);
        let start = 100;
        assert!(window.completed(start + 5_000_000, 1));
        assert!(!window.completed(start + 15_000_000, 10_000_000));
        let outcome = CompletionWindow::outcome([window]).unwrap();
        assert!((outcome.operations_per_s - 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn nothing_counted_is_an_error_and_not_a_zero() {
        assert_eq!(
            CompletionWindow::outcome([CompletionWindow::open(0, 1)]).unwrap_err().name,
            "too_short"
        );
    }
}
