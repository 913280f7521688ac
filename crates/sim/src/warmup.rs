//! How much of the beginning to leave out, by rule: the marginal standard error rule (MSER-5).
//!
//! A simulation begins empty, so that its first responses are better than usual. The rule leaves out
//! so many batches of five values that the standard error of the mean of the rest is least; it never
//! leaves out more than half. Source: White, "An effective truncation heuristic for bias reduction in
//! simulation output", Simulation 69 (1997); batches of five: Spratt (1998).

/// Values in a batch.
pub const BATCH: usize = 5;

/// What the rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Leave out so many values.
    After(usize),
    /// The least error lies at the limit of half: the run is too short to tell.
    TooShort,
}

/// How many of the first values to leave out. Fewer than four batches are too short to tell.
pub fn cut(values: &[f64]) -> Cut {
    let means: Vec<f64> =
        values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    if means.len() < 4 {
        return Cut::TooShort;
    }
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    // From the end on, so that every rest is a running sum; around one value, against cancellation.
    let middle = means.iter().sum::<f64>() / means.len() as f64;
    for (left_out, mean) in means.iter().enumerate().rev() {
        sum += mean - middle;
        squares += (mean - middle).powi(2);
        let n = (means.len() - left_out) as f64;
        let error = ((squares - sum * sum / n) / (n * n)).max(0.0);
        // At equal errors the longer rest is kept.
        if left_out <= means.len() / 2 && error <= best.0 {
            best = (error, left_out);
        }
    }
    if best.1 == means.len() / 2 {
        return Cut::TooShort;
    }
    Cut::After(best.1 * BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn a_steady_run_is_left_whole_or_nearly() {
        let mut stream = Stream::of(4, 0, 0);
        let values: Vec<f64> = (0..1000).map(|_| 10.0 + stream.uniform()).collect();
        assert!(matches!(cut(&values), Cut::After(left) if left < 250), "{:?}", cut(&values));
    }

    #[test]
    fn a_ramp_is_cut_where_it_ends() {
        let mut stream = Stream::of(4, 0, 1);
        let values: Vec<f64> = (0..1000)
            .map(|at| (f64::from(at) / 100.0).min(1.0) * 10.0 + 0.1 * stream.uniform())
            .collect();
        assert!(matches!(cut(&values), Cut::After(left) if (95..=130).contains(&left)));
    }

    #[test]
    fn what_never_settles_is_too_short() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!((cut(&values), cut(&[1.0; 10])), (Cut::TooShort, Cut::TooShort));
        assert_eq!(cut(&[7.0; 40]), Cut::After(0));
    }
}
