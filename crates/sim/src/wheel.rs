//! What lies ahead, in wheels of time: the first has a slot for each of 128 nanoseconds, the next for
//! each of 128 such turns, and so on up to the end of time. An entry lies in the wheel of the first
//! digit (to base 128) in which its moment differs from the present, and moves down as the present
//! comes near: two or three moves however many there are, where a heap of tens of thousands
//! compares thirty times. A slot of few entries is put in order at once when the present reaches it.
//!
//! Entries of one moment always lie in the same slot, in the order in which they came: when the
//! present moves on, no digit above an entry's own changes before the entry itself is moved.
//! Source: Varghese & Lauck, Hashed and hierarchical timing wheels, SOSP 1987.
use crate::Nanos;

/// Bits of a digit: twice as many slots as a word has bits.
const DIGIT: u32 = 7;
const SLOTS: usize = 1 << DIGIT;
const WHEELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// Entries that lie side by side: a slot is a list of such blocks, because one of single entries
/// would cost a cache miss for each when there are tens of thousands. A slot of one block is few.
const BLOCK: usize = 16;
/// So many in order at most: beyond, it costs less to let them move through the wheels.
const NEAR: usize = 2 * BLOCK;
/// No block.
const NONE: u32 = u32::MAX;

/// Where the first and the last entry of a slot lie. Says nothing while the slot's bit is not set.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    first: u32,
    last: u32,
}

/// Entries by moment, earliest first; those of one moment in the order in which they came.
#[derive(Clone, Debug)]
pub struct Wheels<E> {
    /// No entry of the wheels lies before it.
    present: Nanos,
    len: usize,
    /// What comes next, in order, the earliest last.
    near: Vec<(Nanos, E)>,
    /// The last moment of the slot whose entries are near: what comes up to then goes there too.
    reach: Option<Nanos>,
    /// Blocks, one after another.
    entries: Vec<(Nanos, E)>,
    /// The block after each in its slot, or the next free one.
    next: Vec<u32>,
    /// The first free block.
    free: u32,
    /// Which wheels have entries.
    turning: u32,
    /// Which slots of each wheel have entries.
    taken: [[u64; 2]; WHEELS],
    slots: [[Slot; SLOTS]; WHEELS],
}

impl<E> Default for Wheels<E> {
    fn default() -> Self {
        Self {
            present: 0,
            len: 0,
            near: Vec::new(),
            reach: None,
            entries: Vec::new(),
            next: Vec::new(),
            free: NONE,
            turning: 0,
            taken: [[0; 2]; WHEELS],
            slots: [[Slot::default(); SLOTS]; WHEELS],
        }
    }
}

impl<E: Copy> Wheels<E> {
    /// How many entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The earliest moment. It looks through a slot: what takes an entry has no need of it.
    pub fn peek(&self) -> Option<Nanos> {
        if let Some(next) = self.near.last() {
            return Some(next.0);
        }
        let (wheel, slot) = self.earliest()?;
        let Slot { first, last } = self.slots[wheel][slot];
        let mut place = first;
        let mut least = self.entries[place as usize].0;
        while place != last {
            place = self.after(place);
            least = least.min(self.entries[place as usize].0);
        }
        Some(least)
    }

    /// Takes an entry up; it may not lie before the last that was taken, nor before the moment up
    /// to which [`Wheels::pop`] was asked.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: E) {
        self.len += 1;
        if self.reach.is_some_and(|reach| at <= reach) {
            self.nears((at, event));
            if self.near.len() > NEAR {
                self.spills();
            }
        } else {
            self.hang(at, event);
        }
    }

    /// Gives the earliest entry away if it lies no later than `until`.
    #[inline]
    pub fn pop(&mut self, until: Nanos) -> Option<(Nanos, E)> {
        while self.near.is_empty() {
            self.turn(until)?;
        }
        self.near.pop_if(|next| next.0 <= until).inspect(|_| self.len -= 1)
    }

    /// Puts an entry in its place among those that come next: after those of its moment.
    #[inline]
    fn nears(&mut self, entry: (Nanos, E)) {
        let mut place = self.near.len();
        self.near.push(entry);
        // Not `insert`, whose call costs more than to move these few.
        while place > 0 && self.near[place - 1].0 <= entry.0 {
            self.near[place] = self.near[place - 1];
            place -= 1;
        }
        self.near[place] = entry;
    }

    /// Too many come next: they go back into the wheels, below the slot in which they were.
    fn spills(&mut self) {
        self.reach = None;
        while let Some((at, event)) = self.near.pop() {
            self.hang(at, event);
        }
    }

    /// The first wheel that has entries, and its first slot that has.
    #[inline]
    fn earliest(&self) -> Option<(usize, usize)> {
        if self.turning == 0 {
            return None;
        }
        let wheel = self.turning.trailing_zeros() as usize % WHEELS;
        let [low, high] = self.taken[wheel];
        let slot = if low == 0 { 64 + high.trailing_zeros() } else { low.trailing_zeros() };
        Some((wheel, slot as usize % SLOTS))
    }

    /// Hangs an entry at the end of its slot.
    #[inline]
    fn hang(&mut self, at: Nanos, event: E) {
        let differs = at ^ self.present;
        let wheel = (differs | 1).ilog2() / DIGIT;
        let slot = (at >> (DIGIT * wheel)) as usize % SLOTS;
        let wheel = wheel as usize % WHEELS;
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        let place = if self.taken[wheel][word] & bit == 0 {
            let place = self.takes((at, event));
            self.taken[wheel][word] |= bit;
            self.turning |= 1 << wheel;
            self.slots[wheel][slot].first = place;
            place
        } else {
            let last = self.slots[wheel][slot].last;
            if (last as usize + 1).is_multiple_of(BLOCK) {
                let place = self.takes((at, event));
                self.next[last as usize / BLOCK] = place / BLOCK as u32;
                place
            } else {
                last + 1
            }
        };
        self.slots[wheel][slot].last = place;
        self.entries[place as usize] = (at, event);
    }

    /// The first place of a block that was free. entry: what a new block is filled with.
    #[inline]
    fn takes(&mut self, entry: (Nanos, E)) -> u32 {
        let block = self.free;
        if let Some(next) = self.next.get(block as usize) {
            self.free = *next;
            return block * BLOCK as u32;
        }
        let place = u32::try_from(self.entries.len()).expect("fewer than 2^32 things wait");
        self.entries.resize(self.entries.len() + BLOCK, entry);
        self.next.push(NONE);
        place
    }

    /// The block of that place is free.
    #[inline]
    fn gives_back(&mut self, place: u32) {
        let block = place / BLOCK as u32;
        self.next[block as usize] = self.free;
        self.free = block;
    }

    /// The place after that one in its slot.
    #[inline]
    fn after(&self, place: u32) -> u32 {
        match (place as usize + 1) % BLOCK {
            0 => self.next[place as usize / BLOCK] * BLOCK as u32,
            _ => place + 1,
        }
    }

    /// The same; a block that is through with it is free.
    #[inline]
    fn passes(&mut self, place: u32) -> u32 {
        let after = self.after(place);
        if after != place + 1 || (after as usize).is_multiple_of(BLOCK) {
            self.gives_back(place);
        }
        after
    }

    /// The present reaches the next slot: a few entries come next, in order; many move to the wheels
    /// below. None if there is no entry or the slot begins later than `until`.
    fn turn(&mut self, until: Nanos) -> Option<()> {
        let (wheel, slot) = self.earliest()?;
        let Slot { first, last } = self.slots[wheel][slot];
        let shift = DIGIT * wheel as u32;
        let begins = self.entries[first as usize].0 >> shift << shift;
        if begins > until {
            return None;
        }
        self.present = begins;
        if first as usize / BLOCK == last as usize / BLOCK {
            self.empties(wheel, slot);
            self.reach = Some(begins | ((1 << shift) - 1));
            for place in first..=last {
                self.nears(self.entries[place as usize]);
            }
            self.gives_back(first);
        } else if wheel == 0 {
            // All of one moment: one after another.
            self.reach = None;
            self.near.push(self.entries[first as usize]);
            self.slots[wheel][slot].first = self.passes(first);
        } else {
            self.empties(wheel, slot);
            self.reach = None;
            let mut place = first;
            while place != last {
                let (at, event) = self.entries[place as usize];
                self.hang(at, event);
                place = self.passes(place);
            }
            let (at, event) = self.entries[last as usize];
            self.hang(at, event);
            self.gives_back(last);
        }
        Some(())
    }

    #[inline]
    fn empties(&mut self, wheel: usize, slot: usize) {
        self.taken[wheel][slot / 64] &= !(1 << (slot % 64));
        if self.taken[wheel] == [0; 2] {
            self.turning &= !(1 << wheel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a sorted list; gaps reach from none, which asks for the order in which they came,
        /// to the end of time, and it is asked up to moments between the entries too.
        #[test]
        fn it_sorts_whatever_comes_and_goes(
            steps in prop::collection::vec((0u32..65, any::<u64>(), 0usize..4, 0u32..40), 0..1500),
        ) {
            let mut wheels = Wheels::default();
            let mut list = BTreeMap::new();
            let mut now = 0u64;
            for (number, (bits, far, takes, ahead)) in steps.iter().enumerate() {
                let far = if *bits == 0 { 0 } else { far >> (64 - bits) };
                let at = now.saturating_add(far);
                wheels.push(at, number);
                list.insert((at, number), ());
                let until = now.saturating_add(1 << ahead);
                for _ in 0..*takes {
                    prop_assert_eq!(wheels.peek(), list.keys().next().map(|key| key.0));
                    let wanted = list.keys().next().copied().filter(|key| key.0 <= until);
                    prop_assert_eq!(wheels.pop(until), wanted);
                    match wanted {
                        Some(key) => {
                            list.remove(&key);
                            now = key.0;
                        }
                        // Asked up to then: from then on things may come.
                        None => now = until,
                    }
                }
                prop_assert_eq!((wheels.len(), wheels.is_empty()), (list.len(), list.is_empty()));
            }
            while let Some(wanted) = list.pop_first() {
                prop_assert_eq!(wheels.pop(u64::MAX), Some(wanted.0));
            }
            prop_assert_eq!(wheels.pop(u64::MAX), None);
        }
    }

    #[test]
    fn places_are_used_again() {
        let mut wheels = Wheels::default();
        (0..50).for_each(|number| wheels.push(number * 1000, number));
        for _ in 0..1000 {
            let (at, number) = wheels.pop(u64::MAX).unwrap();
            wheels.push(at + 77_777 * number, number);
        }
        assert_eq!(wheels.len(), 50);
        assert!(wheels.entries.len() <= 50 * BLOCK, "{}", wheels.entries.len());
    }
}
