//! Service times drawn from a seed, so that anybody can compute the same sequence.
use nephoscope_wire::random::Random;

#[derive(Clone, Copy, Debug)]
pub enum ServiceDistribution {
    Fixed,
    Exponential,
    /// With the standard deviation of the logarithm.
    LogNormal {
        sigma: f64,
    },
}

/// The sequence of service times: the n-th request that enters the queue takes the n-th.
#[derive(Debug)]
pub struct ServiceTimes {
    distribution: ServiceDistribution,
    mean_ns: f64,
    random: Random,
}

impl ServiceTimes {
    /// Draws times of a distribution (`fixed`, `exponential`, `lognormal`) with a mean; `cv` is the
    /// coefficient of variation of the log-normal one.
    pub fn new(distribution: &str, mean_ns: u64, cv: f64, seed: u64) -> Self {
        let distribution = match distribution {
            "exponential" => ServiceDistribution::Exponential,
            "lognormal" => ServiceDistribution::LogNormal { sigma: (cv * cv).ln_1p().sqrt() },
            _ => ServiceDistribution::Fixed,
        };
        Self { distribution, mean_ns: mean_ns as f64, random: Random::new(seed) }
    }

    pub fn draw_ns(&mut self) -> u64 {
        let factor = match self.distribution {
            ServiceDistribution::Fixed => 1.0,
            ServiceDistribution::Exponential => -(1.0 - self.random.uniform()).ln(),
            ServiceDistribution::LogNormal { sigma } => {
                (sigma * self.random.normal() - sigma * sigma / 2.0).exp()
            }
        };
        (self.mean_ns * factor).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(distribution: &str, cv: f64) -> Vec<f64> {
        let mut times = ServiceTimes::new(distribution, 1_000_000, cv, 3);
        (0..100_000).map(|_| times.draw_ns() as f64).collect()
    }

    #[test]
    fn drawn_times_have_the_mean_and_variation_that_were_requested() {
        for (distribution, cv) in [("fixed", 0.0), ("exponential", 1.0), ("lognormal", 0.5)] {
            let values = draws(distribution, cv);
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
            // Five standard errors of the mean; the coefficient of variation within 3 %.
            assert!((mean / 1e6 - 1.0).abs() <= 5.0 * cv / n.sqrt(), "{distribution}: {mean}");
            let drawn_cv = variance.sqrt() / mean;
            assert!((drawn_cv - cv).abs() <= 0.03 * cv, "{distribution}: {drawn_cv}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_times_again() {
        assert_eq!(draws("exponential", 1.0), draws("exponential", 1.0));
    }
}
