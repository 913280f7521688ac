//! What the YCSB core workloads ask for: their mixes, and which record an operation is about.
use crate::http::kv::keys::Zipf;
use nephoscope_wire::random::Random;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Items of the Zipf distribution that is scattered over the records: the number for which YCSB has a
/// precomputed sum, however many records there are.
const SCATTERED_ITEMS: u64 = 10_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordOperation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl RecordOperation {
    pub const ALL: [Self; 5] =
        [Self::Read, Self::Update, Self::Insert, Self::Scan, Self::ReadModifyWrite];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read_modify_write",
        }
    }
}

/// A core workload: the share of each operation in per cent, and whether the latest records are the
/// most popular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreWorkload {
    pub percentages: [u64; RecordOperation::ALL.len()],
    pub is_latest: bool,
}

impl CoreWorkload {
    /// Returns the workload of a letter, a to f.
    ///
    /// Source: Cooper et al., "Benchmarking cloud serving systems with YCSB", `SoCC` 2010, table 2.
    pub fn of(letter: &str) -> Option<Self> {
        let (percentages, is_latest) = match letter {
            "a" => ([50, 50, 0, 0, 0], false),
            "b" => ([95, 5, 0, 0, 0], false),
            "c" => ([100, 0, 0, 0, 0], false),
            "d" => ([95, 0, 5, 0, 0], true),
            "e" => ([0, 0, 5, 95, 0], false),
            "f" => ([50, 0, 0, 0, 50], false),
            _ => return None,
        };
        Some(Self { percentages, is_latest })
    }

    pub fn draw(&self, random: &mut Random) -> RecordOperation {
        let mut left = random.below(100);
        for operation in RecordOperation::ALL {
            let percentage = self.percentages[operation as usize];
            if left < percentage {
                return operation;
            }
            left -= percentage;
        }
        unreachable!("the percentages have the sum 100")
    }
}

/// 64-bit FNV-1a of the eight bytes of a number, the lowest first, without its sign, as YCSB has it.
#[inline]
pub fn hash(number: u64) -> u64 {
    let hash = number.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed().unsigned_abs()
}

/// The records that exist: those that were loaded, then those that were inserted, in order.
#[derive(Debug)]
pub struct RecordRange {
    pub loaded: u64,
    begun: AtomicU64,
    /// All inserts below this have ended.
    ended: AtomicU64,
    /// Ended inserts above it.
    ahead: Mutex<BTreeSet<u64>>,
}

impl RecordRange {
    pub fn new(loaded: u64) -> Self {
        let ahead = Mutex::new(BTreeSet::new());
        Self { loaded, begun: AtomicU64::new(loaded), ended: AtomicU64::new(loaded), ahead }
    }

    /// Returns the position of a record that is to be inserted.
    pub fn begin_insert(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that an insert has ended, also by a failure: later records must not wait for it.
    pub fn end_insert(&self, position: u64) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        ahead.insert(position);
        let mut ended = self.ended.load(Ordering::Relaxed);
        while ahead.remove(&ended) {
            ended += 1;
        }
        self.ended.store(ended, Ordering::Release);
    }

    /// Returns the number of records that can be read.
    pub fn readable(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns the number of records that were loaded or whose insert has begun.
    pub fn written(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

/// Draws the position of a record to read.
#[derive(Clone, Debug)]
pub struct RecordChoice {
    is_latest: bool,
    exponent: f64,
    /// The distribution, and for how many items it is.
    zipf: Zipf,
    items: u64,
}

impl RecordChoice {
    pub fn new(is_latest: bool, exponent: f64, loaded: u64) -> Self {
        let items = if is_latest { loaded } else { SCATTERED_ITEMS };
        Self { is_latest, exponent, zipf: Zipf::new(items, exponent), items }
    }

    #[inline]
    pub fn draw(&mut self, range: &RecordRange, random: &mut Random) -> u64 {
        if !self.is_latest {
            return hash(self.zipf.draw(random)) % range.loaded;
        }
        let readable = range.readable();
        if readable != self.items {
            self.zipf = Zipf::new(readable, self.exponent);
            self.items = readable;
        }
        readable - 1 - self.zipf.draw(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixes_are_the_published_ones() {
        let mut random = Random::new(3);
        for letter in ["a", "b", "c", "d", "e", "f"] {
            let workload = CoreWorkload::of(letter).unwrap();
            assert_eq!(workload.percentages.iter().sum::<u64>(), 100, "{letter}");
            let mut counts = [0u32; 5];
            for _ in 0..40_000 {
                counts[workload.draw(&mut random) as usize] += 1;
            }
            for (count, percentage) in counts.iter().zip(workload.percentages) {
                let share = percentage as f64 / 100.0;
                // Five standard deviations of a binomial count.
                let bound = 5.0 * (40_000.0 * share * (1.0 - share)).sqrt();
                assert!((f64::from(*count) - 40_000.0 * share).abs() <= bound, "{letter}");
            }
        }
        assert_eq!(CoreWorkload::of("g"), None);
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // The empty prefix of the definition, by hand: eight bytes of zero.
        let zero = (0..8).fold(0xcbf2_9ce4_8422_2325_u64, |hash, _| {
            (u128::from(hash) * 0x0100_0000_01b3 % (1 << 64)) as u64
        });
        assert_eq!(hash(0), zero.cast_signed().unsigned_abs());
        assert_ne!(hash(1), hash(256));
    }

    #[test]
    fn popular_records_are_scattered_and_have_their_probabilities() {
        const DRAWS: usize = 200_000;
        const RECORDS: u64 = 1000;
        let range = RecordRange::new(RECORDS);
        let mut choice = RecordChoice::new(false, 0.99, RECORDS);
        let (mut random, mut counts) = (Random::new(4), vec![0u32; RECORDS as usize]);
        for _ in 0..DRAWS {
            counts[choice.draw(&range, &mut random) as usize] += 1;
        }
        // The sum of k^-0.99 over ten thousand million items, which YCSB publishes.
        let sum = 26.469_028_201_783_02;
        let mut expected = vec![0.0; RECORDS as usize];
        let mut listed = 0.0;
        for rank in 0..200_000u64 {
            let probability = ((rank + 1) as f64).powf(-0.99) / sum;
            expected[(hash(rank) % RECORDS) as usize] += probability;
            listed += probability;
        }
        // All further items are so many that they hit each record alike.
        for (record, (count, probability)) in counts.iter().zip(&expected).enumerate() {
            let mean = DRAWS as f64 * (probability + (1.0 - listed) / RECORDS as f64);
            let distance = (f64::from(*count) - mean).abs();
            assert!(distance < 5.0 * mean.sqrt(), "record {record}: {count}, not {mean}");
        }
        let most = (0..RECORDS).max_by_key(|record| counts[*record as usize]).unwrap();
        assert_eq!(most, hash(0) % RECORDS);
    }

    #[test]
    fn the_latest_records_are_the_most_popular_also_while_they_are_inserted() {
        const DRAWS: usize = 50_000;
        let range = RecordRange::new(90);
        let mut choice = RecordChoice::new(true, 0.99, 90);
        for _ in 0..10 {
            range.end_insert(range.begin_insert());
        }
        let (mut random, mut counts) = (Random::new(5), [0u32; 100]);
        for _ in 0..DRAWS {
            counts[choice.draw(&range, &mut random) as usize] += 1;
        }
        let sum: f64 = (1..=100).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for (age, count) in counts.iter().rev().enumerate() {
            let mean = DRAWS as f64 * ((age + 1) as f64).powf(-0.99) / sum;
            assert!((f64::from(*count) - mean).abs() < 5.0 * mean.sqrt(), "age {age}: {count}");
        }
    }

    #[test]
    fn a_record_is_readable_when_all_before_it_have_ended() {
        let range = RecordRange::new(10);
        let (first, second) = (range.begin_insert(), range.begin_insert());
        assert_eq!((first, second, range.readable(), range.written()), (10, 11, 10, 12));
        range.end_insert(second);
        assert_eq!(range.readable(), 10);
        range.end_insert(first);
        assert_eq!(range.readable(), 12);
    }
}
