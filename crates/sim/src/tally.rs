//! What happened, counted as it happens: sums and histograms, never a list.
use crate::Nanos;
use hdrhistogram::Histogram;

/// Where the figures of an outcome go: metric, factors, value, how often it was seen.
pub type Emit<'a> = dyn FnMut(&str, &[(&str, String)], f64, u64) + 'a;

/// Values: count, mean, variance, extremes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
    least: f64,
    largest: f64,
}

impl Moments {
    /// One more value (Welford's update).
    #[inline]
    pub fn add(&mut self, value: f64) {
        if self.count == 0 {
            (self.least, self.largest) = (value, value);
        }
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
        self.least = self.least.min(value);
        self.largest = self.largest.max(value);
    }

    /// The same value so many times more.
    #[inline]
    pub fn add_many(&mut self, value: f64, times: u64) {
        self.merge(&Self { count: times, mean: value, squares: 0.0, least: value, largest: value });
    }

    /// All values of another tally too.
    /// Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm" (1979).
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        if self.count == 0 || other.count == 0 {
            *self = if self.count == 0 { *other } else { *self };
            return;
        }
        let count = self.count + other.count;
        let (off, share) = (other.mean - self.mean, other.count as f64 / count as f64);
        self.mean += off * share;
        self.squares += other.squares + off * off * share * self.count as f64;
        self.count = count;
        self.least = self.least.min(other.least);
        self.largest = self.largest.max(other.largest);
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; None of no value.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Their variance with n - 1; None of fewer than two.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }

    /// Least and largest; None of no value.
    pub fn range(&self) -> Option<(f64, f64)> {
        (self.count > 0).then_some((self.least, self.largest))
    }
}

/// Lengths of time: moments, and an HDR histogram of 3 significant digits for percentiles.
#[derive(Clone, Debug)]
pub struct Times {
    moments: Moments,
    histogram: Histogram<u64>,
}

impl Default for Times {
    fn default() -> Self {
        let histogram = Histogram::new(3).expect("3 digits are allowed");
        Self { moments: Moments::default(), histogram }
    }
}

impl Times {
    /// One more length in nanoseconds.
    #[inline]
    pub fn add(&mut self, length_ns: f64) {
        self.moments.add(length_ns);
        self.histogram.record(length_ns.round() as u64).expect("a histogram without bound grows");
    }

    /// The same length so many times more.
    #[inline]
    pub fn add_many(&mut self, length_ns: f64, times: u64) {
        self.moments.add_many(length_ns, times);
        self.add_shape(length_ns, times);
    }

    /// The same for the histogram alone; the moments come in one with [`Times::add_moments`].
    #[inline]
    pub fn add_shape(&mut self, length_ns: f64, times: u64) {
        // Not the saturating kind, which would clamp instead of growing; cheaper than rounding.
        let length = (length_ns + 0.5) as u64;
        self.histogram.record_n(length, times).expect("a histogram without bound grows");
    }

    /// The moments of lengths whose histogram is there already.
    pub fn add_moments(&mut self, moments: &Moments) {
        self.moments.merge(moments);
    }

    /// All lengths of another tally too.
    pub fn merge(&mut self, other: &Self) {
        self.moments.merge(&other.moments);
        self.histogram.add(&other.histogram).expect("a histogram that grows takes every length");
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Mean and extremes, exact.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The histogram, for percentiles to 3 digits.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// The histogram as (value, count), ascending; a value is the middle of its bucket.
    pub fn pairs(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.histogram.iter_recorded().map(|bucket| {
            let middle = self.histogram.median_equivalent(bucket.value_iterated_to());
            (middle as f64, bucket.count_since_last_iteration())
        })
    }
}

/// A number that changes in time, such as the jobs in a system: its mean over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverTime {
    began: Nanos,
    since: Nanos,
    value: u64,
    area: u128,
    largest: u64,
}

impl OverTime {
    /// From `now` on it is `value`.
    #[inline]
    pub fn set(&mut self, now: Nanos, value: u64) {
        self.area = self.area(now);
        self.since = now;
        self.value = value;
        self.largest = self.largest.max(value);
    }

    /// One more from `now` on.
    #[inline]
    pub fn up(&mut self, now: Nanos) {
        self.set(now, self.value + 1);
    }

    /// One less from `now` on.
    #[inline]
    pub fn down(&mut self, now: Nanos) {
        self.set(now, self.value - 1);
    }

    /// Forgets what was; counting begins at `now` with the present value.
    pub fn restart(&mut self, now: Nanos) {
        *self = Self { began: now, since: now, value: self.value, area: 0, largest: self.value };
    }

    /// Its mean from the beginning to `now`; None of no time.
    pub fn mean(&self, now: Nanos) -> Option<f64> {
        (now > self.began).then(|| self.area(now) as f64 / (now - self.began) as f64)
    }

    /// Its sum over time, in nanoseconds, from the beginning to `now`.
    pub fn area(&self, now: Nanos) -> u128 {
        self.area + u128::from(now - self.since) * u128::from(self.value)
    }

    /// When it was set last.
    pub fn changed(&self) -> Nanos {
        self.since
    }

    /// Its largest value.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Its present value.
    pub fn value(&self) -> u64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn many_of_a_length_are_in_the_percentiles_too() {
        let mut times = Times::default();
        times.add_many(300e6, 90);
        times.add_many(900e6, 10);
        let p95 = times.histogram().value_at_quantile(0.95) as f64;
        assert!((p95 / 900e6 - 1.0).abs() < 1e-3, "{p95}");
    }

    #[test]
    fn of_nothing_there_is_nothing() {
        let none = Moments::default();
        assert_eq!((none.mean(), none.variance(), none.range()), (None, None, None));
        assert_eq!(OverTime::default().mean(0), None);
    }

    #[test]
    fn percentiles_are_those_of_the_list() {
        let mut times = Times::default();
        (1..=1000).for_each(|ms| times.add(f64::from(ms) * 1e6));
        let p99 = times.histogram().value_at_quantile(0.99) as f64;
        // Three significant digits.
        assert!((p99 / 990e6 - 1.0).abs() < 1e-3, "{p99}");
        let mut both = Times::default();
        both.merge(&times);
        both.merge(&times);
        assert_eq!(both.pairs().map(|(_, count)| count).sum::<u64>(), 2000);
        assert_eq!(both.moments().range(), Some((1e6, 1e9)));
    }

    #[test]
    fn a_mean_over_time() {
        let mut jobs = OverTime::default();
        jobs.up(10);
        jobs.up(20);
        jobs.down(40);
        assert_eq!(jobs.mean(50), Some((10.0 + 40.0 + 10.0) / 50.0));
        jobs.restart(50);
        assert_eq!((jobs.mean(60), jobs.largest()), (Some(1.0), 1));
    }

    proptest! {
        #[test]
        fn moments_are_those_of_the_list(values in prop::collection::vec(-1e6f64..1e6, 2..200)) {
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
        fn parts_put_together_are_the_whole(values in prop::collection::vec((-1e3f64..1e3, 0u64..5), 1..50)) {
            let (mut whole, mut one, mut other) = <(Moments, Moments, Moments)>::default();
            for (number, (value, times)) in values.iter().enumerate() {
                (0..*times).for_each(|_| whole.add(*value));
                if number % 2 == 0 { &mut one } else { &mut other }.add_many(*value, *times);
            }
            one.merge(&other);
            prop_assert_eq!((one.count(), one.range()), (whole.count(), whole.range()));
            let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                (a, b) => a == b,
            };
            prop_assert!(close(one.mean(), whole.mean()) && close(one.variance(), whole.variance()));
        }
    }
}
