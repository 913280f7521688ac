//! How long the slowest of several workers takes if their times are independent.

/// Mean of the maximum of one time of each worker, from their empirical distributions.
///
/// The maximum has the distribution function G = F_1 F_2 … F_n, whose mean is the sum of each value
/// times the step of G there. Source: David, Nagaraja, Order Statistics, 3rd ed. 2003, eq. 5.2.1 (of
/// independent variables that need not have one distribution). Each worker needs a time.
pub fn expected_maximum(workers: &[&[u64]]) -> f64 {
    let mut all: Vec<(u64, usize)> = Vec::new();
    for (worker, times) in workers.iter().enumerate() {
        all.extend(times.iter().map(|time| (*time, worker)));
    }
    all.sort_unstable();
    let mut below = vec![0usize; workers.len()];
    let (mut mean, mut reached) = (0.0, 0.0);
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        for (_, worker) in group {
            below[*worker] += 1;
        }
        let shares =
            below.iter().zip(workers).map(|(count, times)| *count as f64 / times.len() as f64);
        let distribution: f64 = shares.product();
        mean += group[0].0 as f64 * (distribution - reached);
        reached = distribution;
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_wire::random::Random;

    #[test]
    fn two_dice_have_the_maximum_of_two_dice() {
        let die: [u64; 6] = [1, 2, 3, 4, 5, 6];
        assert!((expected_maximum(&[&die, &die]) - 161.0 / 36.0).abs() < 1e-12);
        assert!((expected_maximum(&[&die]) - 3.5).abs() < 1e-12);
        assert!((expected_maximum(&[&die, &[10]]) - 10.0).abs() < 1e-12);
    }

    #[test]
    fn exponential_workers_follow_the_harmonic_numbers() {
        const TIMES: usize = 40_000;
        let draw = |worker| -> Vec<u64> {
            let mut random = Random::stream(3, worker);
            (0..TIMES).map(|_| (1e6 * -(1.0 - random.uniform()).ln()) as u64).collect()
        };
        let workers: Vec<_> = (0..8).map(draw).collect();
        for count in [2, 4, 8] {
            let slices: Vec<_> = workers[..count].iter().map(Vec::as_slice).collect();
            let harmonic: f64 = (1..=count).map(|k| 1.0 / k as f64).sum();
            // The mean of so many times has a standard error of 0.5 % of an exponential's mean.
            assert!((expected_maximum(&slices) / (1e6 * harmonic) - 1.0).abs() < 0.02);
        }
    }
}
