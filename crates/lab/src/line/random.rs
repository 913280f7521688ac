//! Random numbers of a path: seeded, so that the same seed loses the same packets.

/// SplitMix64: one addition and three multiplications a number, passes `BigCrush`.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of one path of one seed; streams of different paths do not meet in practice.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut first = Self(seed ^ 0x6e65_7068_6f73_636f);
        let base = first.next();
        let mut second = Self(base.wrapping_add(stream.wrapping_mul(0xda94_2042_e4dd_58b5)));
        Self(second.next())
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// True with probability `ratio`, 0 to 1.
    pub fn chance(&mut self, ratio: f64) -> bool {
        // 53 bits, all that a double holds: 0 <= number < 1.
        let number = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        number < ratio
    }

    /// Uniform in 0..=most; the bias of the multiplication is below 2^-30 for any delay.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let wide = u128::from(self.next()) * (u128::from(most) + 1);
        (wide >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_stream_for_each_path() {
        let take = |seed, path| {
            let mut random = Random::new(seed, path);
            [random.next(), random.next(), random.next()]
        };
        assert_eq!(take(7, 1), take(7, 1));
        assert_ne!(take(7, 1), take(7, 2));
        assert_ne!(take(7, 1), take(8, 1));
    }

    #[test]
    fn numbers_are_uniform() {
        let mut random = Random::new(1, 0);
        let mut cells = [0u32; 10];
        for _ in 0..100_000 {
            cells[random.up_to(9) as usize] += 1;
        }
        // Chi square with 9 degrees of freedom: 27.9 is passed once in a thousand; the seed is fixed.
        let chi: f64 = cells.iter().map(|n| (f64::from(*n) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 27.9, "{chi}");
        assert_eq!(random.up_to(0), 0);
    }

    #[test]
    fn chances_at_the_ends_are_certain() {
        let mut random = Random::new(3, 3);
        assert!((0..1000).all(|_| !random.chance(0.0)));
        assert!((0..1000).all(|_| random.chance(1.0)));
    }
}
