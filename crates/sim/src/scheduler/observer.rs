//! What a loop that reads a clock in a virtual CPU observes: share, runs, waits, periods.
use super::divisor::Divisor;
use super::policy::RunInterval;
use crate::Nanos;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Counts of lengths. Exact: schedulers of this kind produce few distinct lengths. Beyond
/// [`MAX_EXACT`] of them a length is rounded down to 3 digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LengthCounts {
    exact: HashMap<Nanos, u64, BuildHasherDefault<MultiplicativeHasher>>,
    /// Counts by the [`index_of`] each rounded length: the part of the table that is used fits into a
    /// cache. What exceeds a count is added to the exact ones.
    rounded: Vec<u32>,
}

/// Rounded lengths in a power of ten.
const PER_DECADE: usize = 900;

/// The last unit of a length of 3 digits, by its power of ten above 100.
const UNITS: [Divisor; 18] = {
    let mut units = [Divisor::new(1); 18];
    let mut power = 1;
    while power < units.len() {
        units[power] = Divisor::new(10 * units[power - 1].get());
        power += 1;
    }
    units
};

fn unit(power: usize) -> u64 {
    UNITS[power].get() as u64
}

/// The power of ten above 100 of the largest length of so many bits: smaller ones may have one less.
const POWERS: [u8; 64] = {
    let mut powers = [0; 64];
    let mut bits = 6;
    while bits < powers.len() {
        powers[bits] = (u64::MAX >> (63 - bits)).ilog10() as u8 - 2;
        bits += 1;
    }
    powers
};

/// Returns the index of a length among those of 3 digits: 0 to 99 come first, then 900 of each power of
/// ten.
#[inline]
fn index_of(length: Nanos) -> usize {
    if length < 100 {
        return length as usize;
    }
    let power = usize::from(POWERS[length.ilog2() as usize % POWERS.len()]);
    let power = power - usize::from(length < 100 * unit(power));
    power * PER_DECADE + UNITS[power].quotient(length) as usize
}

/// Returns the length of 3 digits of an index.
fn length_of(index: usize) -> Nanos {
    let Some(above) = index.checked_sub(100) else { return index as Nanos };
    (above % PER_DECADE + 100) as Nanos * unit(above / PER_DECADE)
}

/// A fast hash: nobody chooses lengths in order to make them collide.
#[derive(Clone, Debug, Default)]
pub struct MultiplicativeHasher(u64);

impl Hasher for MultiplicativeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Maximum number of distinct lengths that are counted exactly.
const MAX_EXACT: usize = 4_000;

impl LengthCounts {
    #[inline]
    pub fn add(&mut self, length: Nanos) {
        if self.exact.len() >= MAX_EXACT {
            let index = index_of(length);
            if let Some(count) = self.rounded.get_mut(index).filter(|count| **count < u32::MAX) {
                *count += 1;
                return;
            }
        }
        self.add_slow(length);
    }

    /// Adds a length that is counted exactly, or has no place in the table, or whose count is full.
    #[inline(never)]
    fn add_slow(&mut self, length: Nanos) {
        if self.exact.len() < MAX_EXACT {
            *self.exact.entry(length).or_default() += 1;
            return;
        }
        let index = index_of(length);
        if index >= self.rounded.len() {
            self.rounded.resize(index + 1, 0);
        }
        let count = u64::from(std::mem::take(&mut self.rounded[index])) + 1;
        match u32::try_from(count) {
            Ok(count) => self.rounded[index] = count,
            Err(_) => *self.exact.entry(length_of(index)).or_default() += count,
        }
    }

    /// Returns the lengths with their counts, ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let rounded = self.rounded.iter().enumerate().filter(|(_, count)| **count > 0);
        let rounded = rounded.map(|(index, count)| (length_of(index), u64::from(*count)));
        let exact = self.exact.iter().map(|(length, count)| (*length, *count));
        let mut all: Vec<_> = exact.chain(rounded).collect();
        all.sort_unstable();
        // A rounded length may have been counted exactly too.
        all.dedup_by(|later, first| {
            let same = later.0 == first.0;
            first.1 += if same { later.1 } else { 0 };
            same
        });
        all.into_iter()
    }
}

/// What the loop of one virtual CPU observes in a window.
#[derive(Clone, Debug, Default)]
pub struct VcpuObserver {
    from: Nanos,
    to: Nanos,
    threshold: Nanos,
    ran: Nanos,
    run_start: Option<Nanos>,
    last_end: Option<Nanos>,
    last_wait: Option<Nanos>,
    /// Complete runs.
    pub runs: LengthCounts,
    /// Complete waits.
    pub waits: LengthCounts,
    /// From the start of a wait to that of the next.
    pub periods: LengthCounts,
}

impl VcpuObserver {
    /// threshold: shorter pauses are not observed.
    pub fn new(from: Nanos, to: Nanos, threshold: Nanos) -> Self {
        Self { from, to, threshold, ..Self::default() }
    }

    /// Accounts for a run interval of this virtual CPU; they come in order.
    #[inline]
    pub fn add(&mut self, run: &RunInterval) {
        if run.to <= self.from || run.from >= self.to {
            return;
        }
        let (from, to) = (run.from.max(self.from), run.to.min(self.to));
        match self.last_end.map(|end| from - end) {
            Some(pause) if pause < self.threshold => self.ran += pause,
            Some(pause) => self.add_wait(from, pause),
            // What was running when the window started is no complete run.
            None => self.run_start = (run.from > self.from).then_some(from),
        }
        self.ran += to - from;
        self.last_end = Some(to);
    }

    fn add_wait(&mut self, now: Nanos, pause: Nanos) {
        let start = now - pause;
        if let Some(run_start) = self.run_start {
            self.runs.add(start - run_start);
        }
        self.waits.add(pause);
        if let Some(last) = self.last_wait.replace(start) {
            self.periods.add(start - last);
        }
        self.run_start = Some(now);
    }

    /// Returns the share of the window in which it ran, including pauses below the threshold.
    pub fn share(&self) -> f64 {
        self.ran as f64 / (self.to - self.from) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_index_stands_for_a_length_of_three_digits(word: u64, shift in 0u32..64) {
            let length = word >> shift;
            let unit = 10u64.pow(length.max(1).ilog10().saturating_sub(2));
            prop_assert_eq!(length_of(index_of(length)), length / unit * unit);
        }
    }

    #[test]
    fn exact_and_rounded_counts_of_a_length_are_added() {
        let mut lengths = LengthCounts::default();
        (0..MAX_EXACT as Nanos).for_each(|number| lengths.add(1_000_000 + number));
        lengths.add(1_000_001);
        lengths.add(999);
        let pairs: Vec<_> = lengths.pairs().collect();
        assert_eq!((pairs[0], pairs[1], pairs.len()), ((999, 1), (1_000_000, 2), MAX_EXACT + 1));
        // More than a count can hold.
        lengths.rounded[index_of(999)] = u32::MAX;
        lengths.add(999);
        lengths.add(999);
        assert_eq!(lengths.pairs().next(), Some((999, (1 << 32) + 1)));
    }
}
