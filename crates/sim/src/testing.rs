//! Confidence intervals by which tests compare replications with closed forms.
use crate::statistics::Moments;

/// A confidence interval.
#[derive(Clone, Copy, Debug)]
pub struct ConfidenceInterval {
    pub low: f64,
    pub high: f64,
}

/// Quantiles of Student's t, of any handbook: confidence of the two-sided interval, number of values,
/// quantile (rounded down: intervals become no wider).
const T_QUANTILES: [(f64, u64, f64); 4] =
    [(0.9, 5, 2.131846), (0.99, 6, 4.032142), (0.99, 12, 3.105806), (0.999, 8, 5.407882)];

/// Returns the interval of the mean of independent values by Student's t.
pub fn interval(values: &[f64], confidence: f64) -> ConfidenceInterval {
    let mut moments = Moments::default();
    values.iter().for_each(|value| moments.add(*value));
    let key = (confidence, moments.count());
    let t = T_QUANTILES.iter().find(|(confidence, n, _)| (*confidence, *n) == key);
    let (_, _, t) = t.expect("the table has the quantile");
    let (mean, variance) = (moments.mean().unwrap(), moments.variance().unwrap());
    let half = t * (variance / moments.count() as f64).sqrt();
    ConfidenceInterval { low: mean - half, high: mean + half }
}

#[test]
fn the_interval_covers_as_often_as_it_says() {
    let covered = (0..2000)
        .filter(|number| {
            let mut stream = crate::random::RandomStream::new(1, *number, 0);
            let values: Vec<f64> = (0..5).map(|_| stream.uniform() + stream.uniform()).collect();
            let ConfidenceInterval { low, high } = interval(&values, 0.9);
            low <= 1.0 && 1.0 <= high
        })
        .count() as f64;
    // 1800 expected, a deviation of 13.4; five of them.
    assert!((covered - 1800.0).abs() < 67.0, "{covered}");
}
