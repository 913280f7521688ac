//! Random factors of mean 1 for latency, bandwidth and users.
use crate::error::{invalid, within, Result};
use crate::random::RandomStream;
use rand_distr::Gamma;

/// A random factor of mean 1.
#[derive(Clone, Debug)]
pub enum RandomFactor {
    /// Always 1.
    Unit,
    /// Gamma: never negative.
    Gamma(Gamma<f64>),
    /// CloudAnalyst's: a Poisson draw of mean 100, over 100.
    Poisson(Box<PoissonTable>),
}

impl RandomFactor {
    /// variation: standard deviation; 0 for none.
    pub fn new(variation: f64, key: &str) -> Result<Self> {
        if within(key, variation, 0.0, 3.0)? == 0.0 {
            return Ok(Self::Unit);
        }
        let variance = variation * variation;
        let gamma = Gamma::new(1.0 / variance, variance);
        gamma.map(Self::Gamma).map_err(|error| {
            invalid(format!("{key} is {variation}: {error}."), "Give another value.")
        })
    }

    pub fn cloudanalyst() -> Self {
        Self::Poisson(Box::default())
    }

    #[inline]
    pub fn draw(&self, stream: &mut RandomStream) -> f64 {
        match self {
            Self::Unit => 1.0,
            Self::Gamma(gamma) => stream.draw(gamma),
            Self::Poisson(table) => f64::from(table.draw(stream)) / 100.0,
        }
    }
}

const VALUES: usize = 256;
/// Mean of the Poisson draws.
const MEAN: f64 = 100.0;

/// Poisson draws of mean 100 from an alias table: values from 256 on have a probability of 10^-36.
/// Source: Walker, An efficient method for generating discrete random variables, TOMS 3 (1977).
#[derive(Clone, Debug)]
pub struct PoissonTable {
    /// Below which of 2^53 the value itself is drawn, else its alias.
    threshold: [u64; VALUES],
    alias: [u8; VALUES],
}

impl Default for PoissonTable {
    fn default() -> Self {
        let mut scaled = [0.0; VALUES];
        let mut probability = (-MEAN).exp();
        for (value, scaled) in scaled.iter_mut().enumerate() {
            *scaled = probability * VALUES as f64;
            probability *= MEAN / (value + 1) as f64;
        }
        let threshold = |part: f64| (part * (1u64 << 53) as f64).ceil() as u64;
        let mut table = Self { threshold: [threshold(1.0); VALUES], alias: [0; VALUES] };
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..VALUES).partition(|value| scaled[*value] < 1.0);
        while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
            table.threshold[less] = threshold(scaled[less]);
            table.alias[less] = more as u8;
            scaled[more] -= 1.0 - scaled[less];
            if scaled[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        table
    }
}

impl PoissonTable {
    /// Draws a value: 8 bits choose the entry, 53 others between its value and its alias.
    #[inline]
    pub fn draw(&self, stream: &mut RandomStream) -> u32 {
        let bits = stream.bits();
        let value = (bits & 0xff) as usize;
        let mask = u32::from(bits >> 11 < self.threshold[value]).wrapping_neg();
        // No branch: half of the predictions would be wrong.
        (value as u32 & mask) | (u32::from(self.alias[value]) & !mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Moments;

    fn moments(factor: &RandomFactor) -> Moments {
        let mut stream = RandomStream::new(4, 0, 0);
        let mut moments = Moments::default();
        (0..400_000).for_each(|_| moments.add(factor.draw(&mut stream)));
        moments
    }

    #[test]
    fn factors_have_mean_one_and_the_given_deviation() {
        for factor in [RandomFactor::new(0.1, "x").unwrap(), RandomFactor::cloudanalyst()] {
            let measured = moments(&factor);
            // Standard errors are 0.00016 and 0.00011: five of them.
            assert!((measured.mean().unwrap() - 1.0).abs() < 0.0008, "{factor:?}");
            assert!((measured.variance().unwrap().sqrt() - 0.1).abs() < 0.0006, "{factor:?}");
        }
        assert_eq!(moments(&RandomFactor::new(0.0, "x").unwrap()).range(), Some((1.0, 1.0)));
    }

    #[test]
    fn invalid_variations_are_refused() {
        for deviation in [-0.1, f64::NAN, 4.0] {
            assert!(RandomFactor::new(deviation, "variation.users").is_err());
        }
    }
}
