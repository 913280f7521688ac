//! Statistics that are updated as a simulation runs: sums and histograms, never lists.
use crate::Nanos;
use hdrhistogram::Histogram;

/// Count, mean, variance and range of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Sum of the squared deviations from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    /// Adds a value (Welford's update).
    #[inline]
    pub fn add(&mut self, value: f64) {
        if self.count == 0 {
            (self.min, self.max) = (value, value);
        }
        self.count += 1;
        let deviation = value - self.mean;
        self.mean += deviation / self.count as f64;
        self.squares += deviation * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds the same value `count` times.
    #[inline]
    pub fn add_many(&mut self, value: f64, count: u64) {
        self.merge(&Self { count, mean: value, squares: 0.0, min: value, max: value });
    }

    /// Adds all values of `other`.
    /// Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm" (1979).
    #[inline]
    pub fn merge(&mut self, more: &Self) {
        if self.count == 0 || more.count == 0 {
            *self = if self.count == 0 { *more } else { *self };
            return;
        }
        let count = self.count + more.count;
        let (deviation, share) = (more.mean - self.mean, more.count as f64 / count as f64);
        self.mean += deviation * share;
        self.squares += more.squares + deviation * deviation * share * self.count as f64;
        self.count = count;
        self.min = self.min.min(more.min);
        self.max = self.max.max(more.max);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Returns the sample variance; None for fewer than two values.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }

    /// Returns minimum and maximum.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.count > 0).then_some((self.min, self.max))
    }
}

/// Durations in nanoseconds: exact moments, and an HDR histogram of 3 significant digits.
#[derive(Clone, Debug)]
pub struct Durations {
    moments: Moments,
    histogram: Histogram<u64>,
}

impl Default for Durations {
    fn default() -> Self {
        let histogram = Histogram::new(3).expect("3 digits are allowed");
        Self { moments: Moments::default(), histogram }
    }
}

impl Durations {
    #[inline]
    pub fn add(&mut self, duration_ns: f64) {
        self.moments.add(duration_ns);
        self.histogram.record(duration_ns.round() as u64).expect("an unbounded histogram grows");
    }

    /// Adds a duration `count` times to the histogram alone; [`Durations::add_moments`] adds the
    /// moments of many durations at once.
    #[inline]
    pub fn count_many(&mut self, duration_ns: f64, count: u64) {
        // Not the saturating kind, which would clamp instead of growing; cheaper than rounding.
        let duration_ns = (duration_ns + 0.5) as u64;
        self.histogram.record_n(duration_ns, count).expect("an unbounded histogram grows");
    }

    pub fn add_moments(&mut self, moments: &Moments) {
        self.moments.merge(moments);
    }

    pub fn merge(&mut self, more: &Self) {
        self.moments.merge(&more.moments);
        self.histogram.add(&more.histogram).expect("an unbounded histogram grows");
    }

    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Returns the middle of each bucket of the histogram with its count, ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.histogram.iter_recorded().map(|bucket| {
            let middle = self.histogram.median_equivalent(bucket.value_iterated_to());
            (middle as f64, bucket.count_at_value())
        })
    }
}

/// A number that changes over time, such as the requests in a system, with its time-weighted mean.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeWeighted {
    start: Nanos,
    last_change: Nanos,
    value: u64,
    area: u128,
}

impl TimeWeighted {
    /// Changes the value at `now`.
    #[inline]
    pub fn set(&mut self, now: Nanos, value: u64) {
        self.area = self.area(now);
        self.last_change = now;
        self.value = value;
    }

    #[inline]
    pub fn increment(&mut self, now: Nanos) {
        self.set(now, self.value + 1);
    }

    #[inline]
    pub fn decrement(&mut self, now: Nanos) {
        self.set(now, self.value - 1);
    }

    /// Discards the past; the present value stays.
    pub fn restart(&mut self, now: Nanos) {
        *self = Self { start: now, last_change: now, value: self.value, area: 0 };
    }

    /// Returns the time-weighted mean until `now`; None if no time has passed.
    pub fn mean(&self, now: Nanos) -> Option<f64> {
        (now > self.start).then(|| self.area(now) as f64 / (now - self.start) as f64)
    }

    /// Returns the integral over time until `now`, in nanoseconds.
    pub fn area(&self, now: Nanos) -> u128 {
        self.area + u128::from(now - self.last_change) * u128::from(self.value)
    }

    pub fn last_change(&self) -> Nanos {
        self.last_change
    }

    pub fn value(&self) -> u64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn repeated_durations_count_in_percentiles() {
        let mut times = Durations::default();
        times.count_many(300e6, 90);
        times.count_many(900e6, 10);
        let p95 = times.histogram().value_at_quantile(0.95) as f64;
        assert!((p95 / 900e6 - 1.0).abs() < 1e-3, "{p95}");
    }

    #[test]
    fn empty_statistics_have_no_values() {
        let none = Moments::default();
        assert_eq!((none.mean(), none.variance(), none.range()), (None, None, None));
        assert_eq!(TimeWeighted::default().mean(0), None);
    }

    #[test]
    fn percentiles_agree_with_the_list() {
        let mut times = Durations::default();
        (1..=1000).for_each(|ms| times.add(f64::from(ms) * 1e6));
        let p99 = times.histogram().value_at_quantile(0.99) as f64;
        // Three significant digits.
        assert!((p99 / 990e6 - 1.0).abs() < 1e-3, "{p99}");
        let mut merged = Durations::default();
        merged.merge(&times);
        merged.merge(&times);
        assert_eq!(merged.pairs().map(|(_, count)| count).sum::<u64>(), 2000);
        assert_eq!(merged.moments().range(), Some((1e6, 1e9)));
    }

    #[test]
    fn time_weighted_mean() {
        let mut jobs = TimeWeighted::default();
        jobs.increment(10);
        jobs.increment(20);
        jobs.decrement(40);
        assert_eq!(jobs.mean(50), Some((10.0 + 40.0 + 10.0) / 50.0));
        jobs.restart(50);
        assert_eq!(jobs.mean(60), Some(1.0));
    }

    proptest! {
        #[test]
        fn moments_agree_with_the_list(values in prop::collection::vec(-1e6f64..1e6, 2..200)) {
            let mut moments = Moments::default();
            values.iter().for_each(|value| moments.add(*value));
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
            prop_assert!((moments.mean().unwrap() - mean).abs() <= 1e-6);
            prop_assert!((moments.variance().unwrap() - variance).abs() <= 1e-9 * variance.max(1.0));
            let (mut left, mut right) = (Moments::default(), Moments::default());
            let (first, last) = values.split_at(values.len() / 3);
            first.iter().for_each(|value| left.add(*value));
            last.iter().for_each(|value| right.add(*value));
            left.merge(&right);
            prop_assert_eq!((left.count(), left.range()), (moments.count(), moments.range()));
            prop_assert!((left.mean().unwrap() - mean).abs() <= 1e-6);
            prop_assert!((left.variance().unwrap() - variance).abs() <= 1e-6 * variance.max(1.0));
        }

        #[test]
        fn merged_parts_equal_the_whole(values in prop::collection::vec((-1e3f64..1e3, 0u64..5), 1..50)) {
            let (mut whole, mut first, mut second) = <(Moments, Moments, Moments)>::default();
            for (number, (value, times)) in values.iter().enumerate() {
                (0..*times).for_each(|_| whole.add(*value));
                if number % 2 == 0 { &mut first } else { &mut second }.add_many(*value, *times);
            }
            first.merge(&second);
            prop_assert_eq!((first.count(), first.range()), (whole.count(), whole.range()));
            let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                (a, b) => a == b,
            };
            prop_assert!(close(first.mean(), whole.mean()) && close(first.variance(), whole.variance()));
        }
    }
}
