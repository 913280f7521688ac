//! What a clock loop in a virtual CPU sees of its scheduler: share, runs, waits, periods.
use super::state::Stretch;
use crate::Nanos;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Lengths and how often each was seen. Exact: schedulers of this kind have few distinct lengths,
/// and past [`MOST`] of them a length is kept to 3 digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lengths(HashMap<Nanos, u64, BuildHasherDefault<Scattered>>);

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
    pub fn add(&mut self, length: Nanos) {
        let rounded = || {
            let unit = 10u64.pow(length.max(1).ilog10().saturating_sub(2));
            length / unit * unit
        };
        let length = if self.0.len() >= MOST { rounded() } else { length };
        *self.0.entry(length).or_default() += 1;
    }

    /// (length, how often), ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let mut all: Vec<_> = self.0.iter().map(|(length, count)| (*length, *count)).collect();
        all.sort_unstable();
        all.into_iter()
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The commonest length and its share of all; None of none.
    pub fn mode(&self) -> Option<(Nanos, f64)> {
        let (length, count) = self.0.iter().max_by_key(|(length, count)| (**count, **length))?;
        Some((*length, *count as f64 / self.count() as f64))
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
