//! The random generator of the probe, and of whoever else needs a small seeded one.

/// `SplitMix64`: one addition and three multiplications a number, period 2^64; any seed will do.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed; seeds that differ little give streams that differ much.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of one of several streams of a seed; they do not meet in practice.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut of_seed = Self(seed);
        let base = of_seed.bits();
        let mut of_stream = Self(base.wrapping_add(stream.wrapping_mul(0xda94_2042_e4dd_58b5)));
        Self(of_stream.bits())
    }

    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound` (0 where that is 0), by the high half of a product (Lemire 2019).
    /// Without his rejection step the probabilities differ by at most `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to 1, without the end.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        // 53 bits, all that a double holds.
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `ratio`, 0 to 1.
    #[inline]
    pub fn bernoulli(&mut self, ratio: f64) -> bool {
        self.uniform() < ratio
    }

    /// A standard normal number, by the transform of Box and Muller (1958).
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// Fills `bytes` (a multiple of 8) with incompressible data.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&self.bits().to_le_bytes());
        }
    }

    /// Puts `items` into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The reference implementation's first numbers for the seed 1234567.
        let mut random = Random::new(1_234_567);
        let numbers = [random.bits(), random.bits(), random.bits()];
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn every_number_is_as_likely_as_the_others() {
        const CELLS: usize = 100;
        const DRAWS: usize = 1_000_000;
        let mut counts = [0u64; CELLS];
        let mut random = Random::new(5);
        for _ in 0..DRAWS {
            counts[random.below(CELLS as u64) as usize] += 1;
        }
        let expected = (DRAWS / CELLS) as f64;
        let chi2: f64 = counts.iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum();
        // 99 degrees of freedom: mean 99, standard deviation sqrt(198) = 14; six of them.
        assert!((chi2 - 99.0).abs() < 6.0 * 14.1, "{chi2}");
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| !random.bernoulli(0.0) && random.bernoulli(1.0)));
    }

    #[test]
    fn close_seeds_and_streams_give_other_data() {
        let filled = |mut random: Random| {
            let mut bytes = [0u8; 4096];
            random.fill(&mut bytes);
            bytes
        };
        let blocks = [Random::new(1), Random::new(2), Random::stream(1, 1), Random::stream(1, 2)];
        let blocks = blocks.map(filled);
        for (index, block) in blocks.iter().enumerate() {
            for earlier in &blocks[..index] {
                let same = block.iter().zip(earlier).filter(|(x, y)| x == y).count();
                // 4096 bytes agree by chance in 16 places, standard deviation 4; six of them.
                assert!(same < 16 + 24, "{same}");
            }
        }
    }

    #[test]
    fn normal_numbers_are_standard_normal() {
        let mut random = Random::new(7);
        let values: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        // Five standard errors: 1/sqrt(n) for the mean, sqrt(2/n) for the variance.
        assert!(mean.abs() < 5.0 / n.sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{variance}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..1000).collect();
        Random::new(3).shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.iter().copied().eq(0..1000));
    }
}
