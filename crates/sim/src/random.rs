//! Independent streams of random numbers: one for each source of randomness in each replication, so
//! that a change in one part of a model does not alter the draws of another (common random numbers).
use crate::error::{positive, refuse, Result};
use crate::Nanos;
use rand::{Rng, RngCore, SeedableRng};
use rand_distr::{Exp1, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct RandomStream(Xoshiro256PlusPlus);

/// Scatters inputs that differ in one bit over all bits.
fn split_mix(word: u64) -> u64 {
    nephoscope_wire::random::Random::new(word).bits()
}

impl RandomStream {
    /// Returns the stream of a source of randomness in one replication.
    ///
    /// seed: of the whole experiment. source: number of the source within the model. Streams of
    /// different triples do not overlap in practice: each has 256 bits of state, made from all three.
    pub fn new(seed: u64, replication: u64, source: u64) -> Self {
        let mut state = [0u8; 32];
        let mut word = split_mix(seed);
        for (number, bytes) in state.chunks_exact_mut(8).enumerate() {
            word = split_mix(word ^ split_mix(replication ^ (number as u64) << 56));
            word = split_mix(word ^ split_mix(source.rotate_left(32) ^ number as u64));
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self(Xoshiro256PlusPlus::from_seed(state))
    }

    /// Draws uniformly from [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    /// Draws uniformly from 0, 1, …, bound - 1; 0 for a bound of 0 or 1.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound < 2 {
            0
        } else {
            self.0.random_range(0..bound)
        }
    }

    /// Draws from the exponential distribution of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        self.draw(&Exp1)
    }

    /// Draws from the exponential distribution of that mean, in whole nanoseconds; see [`Stream::round`].
    #[inline]
    pub fn exponential_ns(&mut self, mean_ns: f64) -> Nanos {
        let duration_ns = self.exponential() * mean_ns;
        self.round(duration_ns)
    }

    /// Rounds at random to whole nanoseconds, so that the mean is preserved; negative values become
    /// 0. From a millisecond on it rounds to the nearest: that is off by less than a millionth.
    #[inline]
    pub fn round(&mut self, duration_ns: f64) -> Nanos {
        let offset = if duration_ns < 1e6 { self.uniform() } else { 0.5 };
        (duration_ns + offset) as Nanos
    }

    /// Draws from a distribution of `rand_distr`.
    #[inline]
    pub fn draw<T>(&mut self, from: &impl rand_distr::Distribution<T>) -> T {
        from.sample(&mut self.0)
    }

    /// Draws 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// A distribution of durations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    Constant(f64),
    /// Of that mean.
    Exponential(f64),
    /// Hyperexponential: probability of the first mean, first mean, second mean.
    Hyper(f64, f64, f64),
    /// Number of stages, mean of their sum.
    Erlang(u32, f64),
    /// Mean, and the distribution itself.
    LogNormal(f64, LogNormal<f64>),
}

impl Distribution {
    /// Returns a log-normal distribution. variation: coefficient of variation.
    pub fn log_normal(mean_ns: f64, variation: f64) -> Result<Self> {
        let mean = positive("The mean", mean_ns)?;
        let variance = (1.0 + positive("The coefficient of variation", variation)?.powi(2)).ln();
        match LogNormal::new(mean.ln() - variance / 2.0, variance.sqrt()) {
            Ok(distribution) => Ok(Self::LogNormal(mean, distribution)),
            Err(error) => refuse(format!("No log-normal: {error}."), "Give other values."),
        }
    }

    pub fn mean_ns(&self) -> f64 {
        match *self {
            Self::Constant(mean)
            | Self::Exponential(mean)
            | Self::Erlang(_, mean)
            | Self::LogNormal(mean, _) => mean,
            Self::Hyper(share, first, second) => share * first + (1.0 - share) * second,
        }
    }

    /// Draws one duration in nanoseconds.
    #[inline]
    pub fn draw(&self, stream: &mut RandomStream) -> f64 {
        match self {
            Self::Constant(duration) => *duration,
            Self::Exponential(mean) => stream.exponential() * mean,
            Self::Hyper(share, first, second) => {
                let mean = if stream.uniform() < *share { first } else { second };
                stream.exponential() * mean
            }
            Self::Erlang(stages, mean) => {
                let sum: f64 = (0..*stages).map(|_| stream.exponential()).sum();
                sum * mean / f64::from(*stages)
            }
            Self::LogNormal(_, distribution) => stream.draw(distribution),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_distinct() {
        let draws = |seed, replication, source| {
            let mut stream = RandomStream::new(seed, replication, source);
            (0..8).map(|_| stream.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 2, 3), draws(1, 2, 3));
        let all = [draws(1, 2, 3), draws(2, 2, 3), draws(1, 3, 3), draws(1, 2, 4), draws(2, 1, 3)];
        for (number, draw) in all.iter().enumerate() {
            assert!(all[..number].iter().all(|earlier| earlier != draw));
        }
    }

    #[test]
    fn streams_are_not_correlated() {
        // 20,000 pairs of uniforms: a correlation has a standard deviation of 0.007; 0.035 are five.
        let (mut a, mut b) = (RandomStream::new(5, 0, 0), RandomStream::new(5, 0, 1));
        let n = 20_000;
        let sum: f64 = (0..n).map(|_| (a.uniform() - 0.5) * (b.uniform() - 0.5)).sum();
        assert!((12.0 * sum / f64::from(n)).abs() < 0.035);
    }

    #[test]
    fn sample_means_agree_with_the_declared_ones() {
        let mut stream = RandomStream::new(11, 0, 0);
        let distributions = [
            Distribution::Constant(3.0),
            Distribution::Exponential(3.0),
            Distribution::Hyper(0.25, 6.0, 2.0),
            Distribution::Erlang(4, 3.0),
            Distribution::log_normal(3.0, 1.0).unwrap(),
        ];
        let n = 200_000;
        for distribution in distributions {
            let mean = (0..n).map(|_| distribution.draw(&mut stream)).sum::<f64>() / f64::from(n);
            assert!((distribution.mean_ns() - 3.0).abs() < 1e-12);
            // The widest has a deviation of about 4: five standard errors are 0.045.
            assert!((mean - 3.0).abs() < 0.045, "{distribution:?}: {mean}");
        }
    }

    #[test]
    fn rounding_preserves_the_mean() {
        let mut stream = RandomStream::new(3, 0, 0);
        let n = 100_000;
        let mean = (0..n).map(|_| stream.round(0.3)).sum::<u64>() as f64 / f64::from(n);
        assert!((mean - 0.3).abs() < 0.0075, "{mean}");
    }
}
