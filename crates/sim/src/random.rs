//! Random numbers in independent streams: one for each source of chance of each replication, so that
//! a change in one place of a model does not move the draws of another.
use crate::error::{above_zero, Refused};
use crate::Nanos;
use rand::{Rng, RngCore, SeedableRng};
use rand_distr::{Distribution, Exp1, LogNormal, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

/// One step of SplitMix64, which scatters what differs in one bit over all bits.
fn scattered(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Stream {
    /// The stream of a source of chance in one replication of a seed.
    ///
    /// seed: of the whole experiment. replication: its number. source: number of the source within
    /// the model. Streams of different triples start 2^64 draws apart at least, with a probability
    /// that leaves no doubt: each has 256 bits of state, drawn from all three numbers.
    pub fn of(seed: u64, replication: u64, source: u64) -> Self {
        let mut state = [0u8; 32];
        let mut word = scattered(seed);
        for (number, bytes) in state.chunks_exact_mut(8).enumerate() {
            word = scattered(word ^ scattered(replication ^ (number as u64) << 56));
            word = scattered(word ^ scattered(source.rotate_left(32) ^ number as u64));
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self(Xoshiro256PlusPlus::from_seed(state))
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    /// Uniform among 0, 1, …, below - 1; 0 when `below` is 0 or 1.
    #[inline]
    pub fn below(&mut self, below: u64) -> u64 {
        if below < 2 {
            0
        } else {
            self.0.random_range(0..below)
        }
    }

    /// Exponential of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        Exp1.sample(&mut self.0)
    }

    /// Exponential of that mean, in whole nanoseconds, rounded at random so that its mean is kept
    /// however small it is.
    #[inline]
    pub fn exponential_ns(&mut self, mean_ns: f64) -> Nanos {
        let length = self.exponential() * mean_ns;
        self.rounded(length)
    }

    /// A length in whole nanoseconds whose expectation is `length`; below 0 it is 0. From a
    /// millisecond on it is simply rounded: that is off by less than a millionth.
    #[inline]
    pub fn rounded(&mut self, length: f64) -> Nanos {
        let up = if length < 1e6 { self.uniform() } else { 0.5 };
        (length + up) as Nanos
    }

    /// Poisson of that mean (above 0).
    pub fn poisson(&mut self, mean: &Poisson<f64>) -> u64 {
        mean.sample(&mut self.0) as u64
    }

    /// A draw from a distribution of `rand_distr`.
    #[inline]
    pub fn draw<T>(&mut self, from: &impl Distribution<T>) -> T {
        from.sample(&mut self.0)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// How lengths of time are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lengths {
    /// Always the same.
    Constant(f64),
    /// Exponential of that mean.
    Exponential(f64),
    /// Two exponentials: the first mean with that probability, else the second mean.
    Hyper(f64, f64, f64),
    /// The sum of that many exponentials, of that mean together.
    Erlang(u32, f64),
    /// Log-normal, of that mean and the logarithm's standard deviation.
    LogNormal(f64, LogNormal<f64>),
    /// Uniform between two lengths.
    Uniform(f64, f64),
}

impl Lengths {
    /// A log-normal of that mean and coefficient of variation.
    pub fn log_normal(mean_ns: f64, variation: f64) -> Result<Self, Refused> {
        let mean = above_zero("mean_ns", mean_ns)?;
        let variance = (1.0 + above_zero("variation", variation)?.powi(2)).ln();
        let spread = LogNormal::new(mean.ln() - variance / 2.0, variance.sqrt())
            .map_err(|why| Refused::new(format!("No log-normal: {why}."), "Give other values."))?;
        Ok(Self::LogNormal(mean, spread))
    }

    /// Their mean in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match *self {
            Self::Constant(mean)
            | Self::Exponential(mean)
            | Self::Erlang(_, mean)
            | Self::LogNormal(mean, _) => mean,
            Self::Hyper(share, first, second) => share * first + (1.0 - share) * second,
            Self::Uniform(low, high) => f64::midpoint(low, high),
        }
    }

    /// One length in nanoseconds.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Constant(length) => *length,
            Self::Exponential(mean) => stream.exponential() * mean,
            Self::Hyper(share, first, second) => {
                let mean = if stream.uniform() < *share { first } else { second };
                stream.exponential() * mean
            }
            Self::Erlang(stages, mean) => {
                let sum: f64 = (0..*stages).map(|_| stream.exponential()).sum();
                sum * mean / f64::from(*stages)
            }
            Self::LogNormal(_, spread) => stream.draw(spread),
            Self::Uniform(low, high) => low + (high - low) * stream.uniform(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_the_same_again_and_no_other_is() {
        let draws = |seed, replication, source| {
            let mut stream = Stream::of(seed, replication, source);
            (0..8).map(|_| stream.bits()).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 2, 3), draws(1, 2, 3));
        let all = [draws(1, 2, 3), draws(2, 2, 3), draws(1, 3, 3), draws(1, 2, 4), draws(2, 1, 3)];
        for (number, one) in all.iter().enumerate() {
            assert!(all[..number].iter().all(|other| other != one));
        }
    }

    #[test]
    fn streams_are_not_correlated() {
        // 20,000 pairs of uniforms: a correlation has a standard deviation of 0.007; 0.035 are five.
        let (mut a, mut b) = (Stream::of(5, 0, 0), Stream::of(5, 0, 1));
        let n = 20_000;
        let sum: f64 = (0..n).map(|_| (a.uniform() - 0.5) * (b.uniform() - 0.5)).sum();
        assert!((12.0 * sum / f64::from(n)).abs() < 0.035);
    }

    #[test]
    fn means_are_what_they_say() {
        let mut stream = Stream::of(11, 0, 0);
        let kinds = [
            Lengths::Constant(3.0),
            Lengths::Exponential(3.0),
            Lengths::Hyper(0.25, 6.0, 2.0),
            Lengths::Erlang(4, 3.0),
            Lengths::log_normal(3.0, 1.0).unwrap(),
            Lengths::Uniform(1.0, 5.0),
        ];
        let n = 200_000;
        for kind in kinds {
            let mean = (0..n).map(|_| kind.draw(&mut stream)).sum::<f64>() / f64::from(n);
            assert!((kind.mean_ns() - 3.0).abs() < 1e-12);
            // The widest has a deviation of about 4: five standard errors are 0.045.
            assert!((mean - 3.0).abs() < 0.045, "{kind:?}: {mean}");
        }
    }

    #[test]
    fn rounding_keeps_the_mean() {
        let mut stream = Stream::of(3, 0, 0);
        let n = 100_000;
        let mean = (0..n).map(|_| stream.rounded(0.3)).sum::<u64>() as f64 / f64::from(n);
        assert!((mean - 0.3).abs() < 0.0075, "{mean}");
    }
}
