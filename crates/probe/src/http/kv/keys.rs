//! Which key a request is about: uniform, or by Zipf's law.
use nephoscope_wire::random::Random;

#[derive(Clone, Debug)]
pub enum Keys {
    Uniform(u64),
    Zipf(Zipf),
}

impl Keys {
    /// Returns the number of a key, from 0.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform(count) => random.below(*count),
            Self::Zipf(zipf) => zipf.draw(random),
        }
    }
}

/// Key k of n, from 1, with a probability proportional to k^-s.
///
/// Source: Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    /// Integrals of x^-s up to the edges of the first and the last key.
    first: f64,
    last: f64,
    /// Distances up to this are accepted without a further look.
    squeeze: f64,
}

impl Zipf {
    pub fn new(count: u64, exponent: f64) -> Self {
        let mut zipf = Self { count: count as f64, exponent, first: 0.0, last: 0.0, squeeze: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.count + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-exponent));
        zipf
    }

    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.last + random.uniform() * (self.first - self.last);
            let x = self.inverse(area);
            let key = x.round().clamp(1.0, self.count);
            if key - x <= self.squeeze
                || area >= self.integral(key + 0.5) - key.powf(-self.exponent)
            {
                return key as u64 - 1;
            }
        }
    }

    /// Integral of x^-s from 1.
    fn integral(&self, x: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            x.ln()
        } else {
            (power * x.ln()).exp_m1() / power
        }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            area.exp()
        } else {
            ((area * power).ln_1p() / power).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_probabilities_of_zipfs_law() {
        const DRAWS: usize = 200_000;
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.5, 3.0] {
            let (zipf, mut random) = (Keys::Zipf(Zipf::new(50, exponent)), Random::new(9));
            let mut counts = [0u32; 50];
            for _ in 0..DRAWS {
                counts[zipf.draw(&mut random) as usize] += 1;
            }
            let weights: Vec<f64> = (1..=50).map(|k| f64::from(k).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            for (key, (count, weight)) in counts.iter().zip(&weights).enumerate() {
                let expected = DRAWS as f64 * weight / sum;
                // Five standard deviations of a binomial count, and one for those near 0.
                let bound = 5.0 * expected.sqrt() + 1.0;
                let distance = (f64::from(*count) - expected).abs();
                assert!(distance < bound, "{exponent}, key {key}: {count} and not {expected}");
            }
        }
    }

    #[test]
    fn one_key_is_always_the_first() {
        let mut random = Random::new(1);
        for keys in [Keys::Uniform(1), Keys::Zipf(Zipf::new(1, 0.99))] {
            assert!((0..100).all(|_| keys.draw(&mut random) == 0));
        }
    }
}
