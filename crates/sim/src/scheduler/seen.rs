//! What a clock loop in a virtual CPU sees of its scheduler: share, runs, waits, periods.
use super::division::Divisor;
use super::state::Stretch;
use crate::Nanos;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Lengths and how often each was seen. Exact: schedulers of this kind have few distinct lengths,
/// and past [`MOST`] of them a length is kept to 3 digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    exact: HashMap<Nanos, u64, BuildHasherDefault<Scattered>>,
    /// How often each length of 3 digits, by [`place`]: a table of those that are met is small enough
    /// to stay in a cache. Whatever a count cannot hold is among the exact ones.
    rounded: Vec<u32>,
}

/// Lengths of 3 digits in a power of ten.
const IN_DECADE: usize = 900;

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

/// The same as it is.
fn unit(power: usize) -> u64 {
    UNITS[power].get() as u64
}

/// The power of ten above 100 that the longest length of so many bits has: a shorter one of them may
/// have one less.
const POWERS: [u8; 64] = {
    let mut powers = [0; 64];
    let mut bits = 6;
    while bits < powers.len() {
        powers[bits] = (u64::MAX >> (63 - bits)).ilog10() as u8 - 2;
        bits += 1;
    }
    powers
};

/// Place of a length among those of 3 digits: 0 to 99 come first, then 900 of each power of ten.
#[inline]
fn place(length: Nanos) -> usize {
    if length < 100 {
        return length as usize;
    }
    let power = usize::from(POWERS[length.ilog2() as usize % POWERS.len()]);
    let power = power - usize::from(length < 100 * unit(power));
    power * IN_DECADE + UNITS[power].quotient(length) as usize
}

/// The length of 3 digits at a place.
fn length_at(place: usize) -> Nanos {
    let Some(above) = place.checked_sub(100) else { return place as Nanos };
    (above % IN_DECADE + 100) as Nanos * unit(above / IN_DECADE)
}

/// Scatters a length over a table: nobody chooses lengths in order to make them collide.
#[derive(Clone, Debug, Default)]
pub struct Scattered(u64);

impl Hasher for Scattered {
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

/// Distinct lengths that are kept exactly.
const MOST: usize = 4_000;

impl Lengths {
    /// One more.
    #[inline]
    pub fn add(&mut self, length: Nanos) {
        if self.exact.len() >= MOST {
            let place = place(length);
            if let Some(count) = self.rounded.get_mut(place).filter(|count| **count < u32::MAX) {
                *count += 1;
                return;
            }
        }
        self.add_new(length);
    }

    /// One more of a length that has no place yet, or needs none, or whose count is full.
    #[inline(never)]
    fn add_new(&mut self, length: Nanos) {
        if self.exact.len() < MOST {
            *self.exact.entry(length).or_default() += 1;
            return;
        }
        let place = place(length);
        if place >= self.rounded.len() {
            self.rounded.resize(place + 1, 0);
        }
        let count = u64::from(std::mem::take(&mut self.rounded[place])) + 1;
        match u32::try_from(count) {
            Ok(count) => self.rounded[place] = count,
            Err(_) => *self.exact.entry(length_at(place)).or_default() += count,
        }
    }

    /// (length, how often), ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let rounded = self.rounded.iter().enumerate().filter(|(_, count)| **count > 0);
        let rounded = rounded.map(|(place, count)| (length_at(place), u64::from(*count)));
        let exact = self.exact.iter().map(|(length, count)| (*length, *count));
        let mut all: Vec<_> = exact.chain(rounded).collect();
        all.sort_unstable();
        // A length of 3 digits may have been seen exactly too.
        all.dedup_by(|later, first| {
            let same = later.0 == first.0;
            first.1 += if same { later.1 } else { 0 };
            same
        });
        all.into_iter()
    }

    /// How many.
    pub fn count(&self) -> u64 {
        let rounded: u64 = self.rounded.iter().map(|count| u64::from(*count)).sum();
        self.exact.values().sum::<u64>() + rounded
    }

    /// The commonest length and its share of all; None of none.
    pub fn mode(&self) -> Option<(Nanos, f64)> {
        let (length, count) = self.pairs().max_by_key(|(length, count)| (*count, *length))?;
        Some((length, count as f64 / self.count() as f64))
    }
}

/// What the loop of one virtual CPU sees in a window.
#[derive(Clone, Debug)]
pub struct Seen {
    vcpu: usize,
    from: Nanos,
    to: Nanos,
    threshold: Nanos,
    ran: Nanos,
    run_from: Option<Nanos>,
    last_end: Option<Nanos>,
    last_gap: Option<Nanos>,
    /// Complete runs.
    pub runs: Lengths,
    /// Complete waits.
    pub waits: Lengths,
    /// From the beginning of a wait to the beginning of the next.
    pub periods: Lengths,
}

impl Seen {
    /// A window of a virtual CPU. A pause below `threshold` is not seen.
    pub fn new(vcpu: usize, from: Nanos, to: Nanos, threshold: Nanos) -> Self {
        let none = Lengths::default;
        Self {
            vcpu,
            from,
            to,
            threshold,
            ran: 0,
            run_from: None,
            last_end: None,
            last_gap: None,
            runs: none(),
            waits: none(),
            periods: none(),
        }
    }

    /// Takes a stretch in; stretches come in order.
    #[inline]
    pub fn add(&mut self, stretch: &Stretch) {
        if stretch.vcpu != self.vcpu || stretch.to <= self.from || stretch.from >= self.to {
            return;
        }
        let (from, to) = (stretch.from.max(self.from), stretch.to.min(self.to));
        let pause = self.last_end.map(|end| from - end);
        match pause {
            Some(pause) if pause < self.threshold => self.ran += pause,
            Some(pause) => self.gap(from, pause),
            // What was running when the window began is no complete run.
            None => self.run_from = (stretch.from > self.from).then_some(from),
        }
        self.ran += to - from;
        self.last_end = Some(to);
    }

    fn gap(&mut self, now: Nanos, pause: Nanos) {
        let began = now - pause;
        if let Some(from) = self.run_from {
            self.runs.add(began - from);
        }
        self.waits.add(pause);
        if let Some(last) = self.last_gap.replace(began) {
            self.periods.add(began - last);
        }
        self.run_from = Some(now);
    }

    /// Share of the window in which it ran, pauses below the threshold among it.
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
        fn a_place_stands_for_a_length_of_three_digits(word: u64, shift in 0u32..64) {
            let length = word >> shift;
            let unit = 10u64.pow(length.max(1).ilog10().saturating_sub(2));
            prop_assert_eq!(length_at(place(length)), length / unit * unit);
        }
    }

    #[test]
    fn what_was_seen_exactly_and_rounded_is_one_length() {
        let mut lengths = Lengths::default();
        (0..MOST as Nanos).for_each(|number| lengths.add(1_000_000 + number));
        lengths.add(1_000_001);
        lengths.add(999);
        assert_eq!(lengths.count(), MOST as u64 + 2);
        assert_eq!(lengths.mode().unwrap().0, 1_000_000);
        let pairs: Vec<_> = lengths.pairs().collect();
        assert_eq!((pairs[0], pairs[1], pairs.len()), ((999, 1), (1_000_000, 2), MOST + 1));
        // More than a count can hold.
        lengths.rounded[place(999)] = u32::MAX;
        lengths.add(999);
        lengths.add(999);
        assert_eq!(lengths.pairs().next(), Some((999, (1 << 32) + 1)));
    }
}
