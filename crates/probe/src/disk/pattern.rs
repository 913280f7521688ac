//! Which record comes next, and what random bytes are made of.
use std::sync::atomic::{AtomicU64, Ordering};

/// xorshift64* (Vigna 2016): one multiplication a number, period 2^64 - 1.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Any seed; seeds that differ little give streams that differ much.
    pub fn new(seed: u64) -> Self {
        // One round of splitmix64; zero is the one state that xorshift cannot leave.
        let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    /// 64 random bits; the upper ones are the best.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`, by the high half of a product (Lemire 2019). Without his rejection
    /// step the probabilities differ by at most `bound / 2^64`: under 10^-10 for any file here.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Fills `bytes` (a multiple of 8) with incompressible data.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&self.next().to_le_bytes());
        }
    }
}

/// The order in which the records of a file are visited.
#[derive(Debug)]
pub enum Order<'a> {
    /// One after the other, from the start again after the last; all threads share the counter.
    Sequential(&'a AtomicU64),
    /// Each time any record with the same probability.
    Random(Random),
    /// As a list says, once.
    Listed(std::slice::Iter<'a, u32>),
}

impl Order<'_> {
    /// The record to visit next, out of `records`.
    #[inline]
    pub fn next(&mut self, records: u64) -> u64 {
        match self {
            Self::Sequential(counter) => counter.fetch_add(1, Ordering::Relaxed) % records,
            Self::Random(random) => random.below(records),
            Self::Listed(list) => list.next().map_or(0, |record| u64::from(*record)),
        }
    }
}

/// Smallest unit in which disks and their compression look at data.
const SECTOR: usize = 512;

/// Makes every sector of `record` new, so that a device which recognises data it already holds has
/// nothing to recognise.
#[inline]
pub fn stamp(record: &mut [u8], mark: u64) {
    let marks = mark.to_le_bytes();
    for sector in record.chunks_mut(SECTOR) {
        if let Some(head) = sector.first_chunk_mut() {
            *head = marks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_as_likely_as_the_others() {
        const RECORDS: usize = 100;
        const DRAWS: usize = 1_000_000;
        let mut seen = [0u64; RECORDS];
        let mut random = Random::new(5);
        for _ in 0..DRAWS {
            seen[random.below(RECORDS as u64) as usize] += 1;
        }
        let expected = (DRAWS / RECORDS) as f64;
        let chi2: f64 = seen.iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum();
        // 99 degrees of freedom: mean 99, standard deviation sqrt(198) = 14; six of them.
        assert!(chi2 < 99.0 + 6.0 * 14.1, "{chi2}");
        assert!(chi2 > 99.0 - 6.0 * 14.1, "{chi2}");
    }

    #[test]
    fn sequential_order_visits_each_record_once_a_turn() {
        let counter = AtomicU64::new(0);
        let (mut one, mut two) = (Order::Sequential(&counter), Order::Sequential(&counter));
        let seen: Vec<u64> = (0..3).flat_map(|_| [one.next(4), two.next(4)]).collect();
        assert_eq!(seen, [0, 1, 2, 3, 0, 1]);
    }

    #[test]
    fn a_stamp_changes_every_sector_and_nothing_else() {
        let mut record = vec![7u8; 3 * SECTOR];
        stamp(&mut record, u64::MAX);
        let changed = record.iter().filter(|byte| **byte != 7).count();
        assert_eq!(changed, 3 * 8);
        assert!(record.chunks(SECTOR).all(|sector| sector[..8] == [255; 8]));
    }

    #[test]
    fn close_seeds_give_other_data() {
        let (mut a, mut b) = ([0u8; 4096], [0u8; 4096]);
        Random::new(1).fill(&mut a);
        Random::new(2).fill(&mut b);
        let same = a.iter().zip(&b).filter(|(x, y)| x == y).count();
        // 4096 bytes agree by chance in 16 places, standard deviation 4; six of them.
        assert!(same < 16 + 24, "{same}");
    }
}
