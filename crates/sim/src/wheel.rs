//! What lies ahead, in slots of time: only the events of the present slot are kept in order, in a
//! small heap; those of later slots wait unordered until it is their turn. With tens of thousands of
//! events ahead that saves most of the ordering; with few, the heap does everything alone.
use crate::heap::{Heap, Key};

/// Nanoseconds in a slot, as a power of two: 131 microseconds.
const SLOT_BITS: u32 = 17;
/// Slots that are kept: half a second ahead; what comes later waits in a heap of its own.
const SLOTS: usize = 4096;
/// As long as the heap is smaller than this it takes everything.
const SMALL: usize = 96;

/// Entries by key, least first. Keys are distinct; the moment is their upper half.
#[derive(Clone, Debug)]
pub struct Wheel<E> {
    /// All entries of slots before [`Wheel::next`], and some of later ones.
    near: Heap<E>,
    /// The first slot that is still to be put in order.
    next: u64,
    slots: Vec<Vec<(Key, E)>>,
    /// Which slots have entries.
    taken: [u64; SLOTS / 64],
    far: Heap<E>,
    /// Entries outside of the near heap.
    outside: usize,
    /// Emptied slots, whose memory is used again.
    spare: Vec<Vec<(Key, E)>>,
}

impl<E> Default for Wheel<E> {
    fn default() -> Self {
        Self {
            near: Heap::default(),
            next: 0,
            slots: Vec::new(),
            taken: [0; SLOTS / 64],
            far: Heap::default(),
            outside: 0,
            spare: Vec::new(),
        }
    }
}

#[inline]
fn slot(key: Key) -> u64 {
    (key >> 64) as u64 >> SLOT_BITS
}

impl<E> Wheel<E> {
    /// How many entries.
    pub fn len(&self) -> usize {
        self.near.len() + self.outside
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The least key.
    pub fn peek(&self) -> Option<Key> {
        let near = self.near.peek();
        if self.outside == 0 || near.is_some_and(|key| slot(key) < self.next) {
            return near;
        }
        let first = self.next_taken().map(|number| &self.slots[number as usize % SLOTS]);
        let in_slot = first.and_then(|slot| slot.iter().map(|entry| entry.0).min());
        [near, in_slot, self.far.peek()].into_iter().flatten().min()
    }

    /// Takes an entry up.
    #[inline]
    pub fn push(&mut self, key: Key, event: E) {
        let number = slot(key);
        if number < self.next || self.near.len() < SMALL {
            self.near.push(key, event);
            return;
        }
        self.push_outside(number, key, event);
    }

    fn push_outside(&mut self, number: u64, key: Key, event: E) {
        self.outside += 1;
        if number - self.next >= SLOTS as u64 {
            self.far.push(key, event);
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Vec::new);
        }
        let place = number as usize % SLOTS;
        let slot = &mut self.slots[place];
        if slot.is_empty() {
            self.taken[place / 64] |= 1 << (place % 64);
            if let Some(spare) = self.spare.pop() {
                *slot = spare;
            }
        }
        slot.push((key, event));
    }

    /// Gives the least entry away.
    #[inline]
    pub fn pop(&mut self) -> Option<(Key, E)> {
        self.settle();
        self.near.pop()
    }

    /// Puts slots in order until the least entry is in the near heap.
    #[inline]
    pub fn settle(&mut self) {
        while self.outside > 0 && self.near.peek().is_none_or(|key| slot(key) >= self.next) {
            self.advance();
        }
    }

    /// Puts the next slot that has entries in order, or passes those before the near heap's first.
    fn advance(&mut self) {
        let in_slots = self.next_taken().unwrap_or(u64::MAX);
        let in_far = self.far.peek().map_or(u64::MAX, slot);
        let in_near = self.near.peek().map_or(u64::MAX, slot);
        let least = in_slots.min(in_far).min(in_near);
        self.next = least + 1;
        if in_slots == least {
            let place = least as usize % SLOTS;
            self.taken[place / 64] &= !(1 << (place % 64));
            let mut entries = std::mem::take(&mut self.slots[place]);
            self.outside -= entries.len();
            for (key, event) in entries.drain(..) {
                self.near.push(key, event);
            }
            self.spare.push(entries);
        }
        while self.far.peek().is_some_and(|key| slot(key) < self.next) {
            let Some((key, event)) = self.far.pop() else { return };
            self.outside -= 1;
            self.near.push(key, event);
        }
    }

    /// The first slot from [`Wheel::next`] on that has entries.
    fn next_taken(&self) -> Option<u64> {
        if self.slots.is_empty() {
            return None;
        }
        let from = self.next as usize % SLOTS;
        let words = self.taken.len();
        for step in 0..=words {
            let word = (from / 64 + step) % words;
            // The first word counts from its bit on, and once more, at the end, up to it.
            let mask = match step {
                0 => u64::MAX << (from % 64),
                _ if step == words => !(u64::MAX << (from % 64)),
                _ => u64::MAX,
            };
            let bits = self.taken[word] & mask;
            if bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                return Some(self.next + ((place + SLOTS - from) % SLOTS) as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a sorted list; gaps reach from within a slot to far beyond the last one.
        #[test]
        fn it_sorts_whatever_comes_and_goes(
            steps in prop::collection::vec((0u32..34, 0u64..1 << 33, 0usize..4), 0..1500),
        ) {
            let mut wheel = Wheel::default();
            let mut list = std::collections::BTreeMap::new();
            let mut now = 0u64;
            for (number, (bits, far, takes)) in steps.iter().enumerate() {
                let at = now + (far & ((1 << bits) - 1));
                let key = Key::from(at) << 64 | number as Key;
                wheel.push(key, number);
                list.insert(key, number);
                // Mostly one comes more than one goes, until all go.
                for _ in 0..takes.saturating_sub(2) * (number % 3) {
                    prop_assert_eq!(wheel.peek(), list.keys().next().copied());
                    let taken = wheel.pop();
                    prop_assert_eq!(taken, list.pop_first());
                    now = taken.map_or(now, |entry| (entry.0 >> 64) as u64);
                }
                prop_assert_eq!(wheel.len(), list.len());
            }
            while let Some(entry) = list.pop_first() {
                prop_assert_eq!(wheel.pop(), Some(entry));
            }
            prop_assert_eq!(wheel.pop(), None);
        }
    }
}
