//! In which slots of a schedule a datagram leaves: in all, or in pairs of neighbouring slots that begin
//! at random. Both sides compute the same slots. Pure.
use nephoscope_wire::random::Random;
use serde::{Deserialize, Serialize};

/// Pairs of datagrams in neighbouring slots (Badabing: Sommers, Barford, Duffield, Ron, SIGCOMM 2005).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairSelection {
    /// Probability that a pair begins in a slot.
    pub start_ratio: f64,
    pub seed: u64,
}

/// The numbers of the slots in which datagrams leave, in their order.
#[derive(Clone, Debug)]
pub struct SendSlots {
    next: u64,
    end: u64,
    pairs: Option<(PairSelection, Random)>,
    /// The pair that began in the slot before has its second datagram in the next one.
    is_second: bool,
}

impl SendSlots {
    /// The slots below `end` (`None`: without an end), all of them or those of `pairs`.
    pub fn new(end: Option<u64>, pairs: Option<PairSelection>) -> Self {
        let random = |pairs: PairSelection| (pairs, Random::new(pairs.seed));
        Self { next: 0, end: end.unwrap_or(u64::MAX), pairs: pairs.map(random), is_second: false }
    }
}

impl Iterator for SendSlots {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.next < self.end {
            let slot = self.next;
            self.next += 1;
            let Some((pairs, random)) = &mut self.pairs else { return Some(slot) };
            // The last slot has no neighbour with which it could be a pair.
            let is_first = random.bernoulli(pairs.start_ratio) && self.next < self.end;
            let is_chosen = is_first || self.is_second;
            self.is_second = is_first;
            if is_chosen {
                return Some(slot);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(start_ratio: f64, seed: u64, end: u64) -> Vec<u64> {
        SendSlots::new(Some(end), Some(PairSelection { start_ratio, seed })).collect()
    }

    #[test]
    fn without_pairs_every_slot_is_used() {
        assert!(SendSlots::new(Some(5), None).eq(0..5));
        assert_eq!(SendSlots::new(None, None).nth(1000), Some(1000));
        assert_eq!(SendSlots::new(Some(0), None).next(), None);
        assert_eq!(paired(1.0, 7, 5), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn chosen_slots_have_a_neighbour_and_the_expected_number() {
        let (end, ratio) = (1_000_000, 0.1);
        let slots = paired(ratio, 3, end);
        let has = |slot: u64| slots.binary_search(&slot).is_ok();
        assert!(slots.iter().all(|slot| has(slot + 1) || *slot > 0 && has(slot - 1)));
        // A slot is free when no pair began in it or in the one before.
        let expected = end as f64 * (1.0 - (1.0 - ratio).powi(2));
        // Ten standard deviations, were the slots independent: 0.4 %.
        assert!((slots.len() as f64 / expected - 1.0).abs() < 0.01, "{}", slots.len());
    }

    #[test]
    fn a_seed_fixes_the_slots() {
        assert_eq!(paired(0.3, 1, 1000), paired(0.3, 1, 1000));
        assert_ne!(paired(0.3, 1, 1000), paired(0.3, 2, 1000));
    }
}
