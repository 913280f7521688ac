//! Factors of mean 1 that latency, bandwidth and users are multiplied by.
use crate::error::Refused;
use crate::random::Stream;
use rand_distr::Gamma;

/// Factors of mean 1.
#[derive(Clone, Debug)]
pub enum Noise {
    /// Always 1.
    None,
    /// Gamma: never below zero.
    Gamma(Gamma<f64>),
    /// A Poisson draw of mean 100, by 100: CloudAnalyst's.
    Hundredths(Box<Hundredths>),
}

impl Noise {
    /// Gamma factors of that standard deviation; 0 is none. Refused: what is no such number.
    pub fn of(deviation: f64, key: &str) -> Result<Self, Refused> {
        if deviation == 0.0 {
            return Ok(Self::None);
        }
        let wrong = || {
            Refused::new(
                format!(
                    "{key} is {deviation}; a standard deviation over its mean lies from 0 to 3."
                ),
                format!("Give {key} a value such as 0.1, or 0 for none."),
            )
        };
        if !(0.0..=3.0).contains(&deviation) {
            return Err(wrong());
        }
        let variance = deviation * deviation;
        Gamma::new(1.0 / variance, variance).map(Self::Gamma).map_err(|_| wrong())
    }

    /// One factor.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Gamma(gamma) => stream.draw(gamma),
            Self::Hundredths(table) => f64::from(table.draw(stream)) / 100.0,
        }
    }
}

const VALUES: usize = 256;
/// Mean of the Poisson draws.
const MEAN: f64 = 100.0;

/// Poisson draws of mean 100 from a table: values from 256 on have a probability of 10^-36.
/// Source: Walker, An efficient method for generating discrete random variables, TOMS 3 (1977).
#[derive(Clone, Debug)]
pub struct Hundredths {
    /// Below which of 2^53 a place's own value is taken.
    keep: [u64; VALUES],
    other: [u8; VALUES],
}

impl Default for Hundredths {
    fn default() -> Self {
        let mut left = [0.0; VALUES];
        let mut probability = (-MEAN).exp();
        for (value, place) in left.iter_mut().enumerate() {
            *place = probability * VALUES as f64;
            probability *= MEAN / (value + 1) as f64;
        }
        let of_all = |part: f64| (part * (1u64 << 53) as f64).ceil() as u64;
        let mut table = Self { keep: [of_all(1.0); VALUES], other: [0; VALUES] };
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..VALUES).partition(|value| left[*value] < 1.0);
        while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
            table.keep[less] = of_all(left[less]);
            table.other[less] = more as u8;
            left[more] -= 1.0 - left[less];
            if left[more] < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        table
    }
}

impl Hundredths {
    /// One draw: 8 bits choose the place, 53 others what is taken there.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u32 {
        let bits = stream.bits();
        let place = (bits & 0xff) as usize;
        let own = u32::from(bits >> 11 < self.keep[place]).wrapping_neg();
        // No branch: half of the guesses would be wrong.
        (place as u32 & own) | (u32::from(self.other[place]) & !own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Moments;

    fn of(noise: &Noise) -> Moments {
        let mut stream = Stream::of(4, 0, 0);
        let mut moments = Moments::default();
        (0..400_000).for_each(|_| moments.add(noise.draw(&mut stream)));
        moments
    }

    #[test]
    fn factors_have_mean_one_and_the_deviation_asked_for() {
        for noise in [Noise::of(0.1, "x").unwrap(), Noise::Hundredths(Box::default())] {
            let seen = of(&noise);
            // Standard errors are 0.00016 and 0.00011: five of them.
            assert!((seen.mean().unwrap() - 1.0).abs() < 0.0008, "{noise:?}");
            assert!((seen.variance().unwrap().sqrt() - 0.1).abs() < 0.0006, "{noise:?}");
        }
        assert_eq!(of(&Noise::of(0.0, "x").unwrap()).range(), Some((1.0, 1.0)));
    }

    #[test]
    fn what_is_no_deviation_is_refused() {
        for deviation in [-0.1, f64::NAN, 4.0] {
            assert!(Noise::of(deviation, "variation.users").is_err());
        }
    }
}
