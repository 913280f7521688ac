//! Hierarchical timing wheels: the first wheel has a slot for each of 128 nanoseconds, the next one for
//! each of 128 turns of the first, and so on up to the largest time. An entry lies in the wheel of the
//! first base-128 digit in which its time differs from the current time, and moves down as that time
//! comes near: two or three moves however many entries there are, where a heap of tens of thousands
//! compares thirty times. A slot of few entries is sorted at once when the current time reaches it.
//!
//! Entries of one time always lie in the same slot, in the order of insertion: when the current time
//! advances, no digit above an entry's own changes before the entry itself is moved.
//! Source: Varghese & Lauck, Hashed and hierarchical timing wheels, SOSP 1987.
use crate::Nanos;

/// Bits of a digit: twice as many slots as a word has bits.
const DIGIT: u32 = 7;
const SLOTS: usize = 1 << DIGIT;
const WHEELS: usize = u64::BITS.div_ceil(DIGIT) as usize;
/// Entries of a block. A slot is a list of blocks, because a list of single entries would cost a
/// cache miss for each when there are tens of thousands. A slot of one block has few entries.
const BLOCK: usize = 16;
/// Maximum number of sorted entries: beyond, moving them through the wheels costs less.
const SORTED_MAX: usize = 2 * BLOCK;
/// No block.
const NONE: u32 = u32::MAX;

/// Positions of the first and the last entry of a slot; meaningless while the slot is empty.
#[derive(Clone, Copy, Debug, Default)]
struct WheelSlot {
    first: u32,
    last: u32,
}

/// Entries by time, earliest first; those of one time in the order of insertion.
#[derive(Clone, Debug)]
pub struct TimerWheel<E> {
    /// No entry of the wheels is earlier.
    now: Nanos,
    /// The next entries, sorted, the earliest last.
    sorted: Vec<(Nanos, E)>,
    /// Last time of the slot whose entries are sorted: entries up to then are inserted there.
    sorted_until: Option<Nanos>,
    /// All blocks, one after another.
    entries: Vec<(Nanos, E)>,
    /// The block after each one in its slot, or the next free one.
    next_block: Vec<u32>,
    first_free: u32,
    /// Bit set of the wheels that have entries.
    occupied_wheels: u32,
    /// Bit sets of the slots that have entries.
    occupied_slots: [[u64; 2]; WHEELS],
    slots: [[WheelSlot; SLOTS]; WHEELS],
}

impl<E> Default for TimerWheel<E> {
    fn default() -> Self {
        Self {
            now: 0,
            sorted: Vec::new(),
            sorted_until: None,
            entries: Vec::new(),
            next_block: Vec::new(),
            first_free: NONE,
            occupied_wheels: 0,
            occupied_slots: [[0; 2]; WHEELS],
            slots: [[WheelSlot::default(); SLOTS]; WHEELS],
        }
    }
}

impl<E: Copy> TimerWheel<E> {
    /// Inserts an entry; `time` may not be before the last popped entry, nor before the time up to
    /// which [`TimerWheel::pop`] was asked.
    #[inline]
    pub fn push(&mut self, time: Nanos, event: E) {
        if self.sorted_until.is_some_and(|until| time <= until) {
            self.insert_sorted((time, event));
            if self.sorted.len() > SORTED_MAX {
                self.spill();
            }
        } else {
            self.append(time, event);
        }
    }

    /// Removes the earliest entry if it is no later than `until`.
    #[inline]
    pub fn pop(&mut self, until: Nanos) -> Option<(Nanos, E)> {
        while self.sorted.is_empty() {
            self.advance(until)?;
        }
        self.sorted.pop_if(|next| next.0 <= until)
    }

    #[inline]
    fn insert_sorted(&mut self, entry: (Nanos, E)) {
        let mut place = self.sorted.len();
        self.sorted.push(entry);
        // Not `insert`, whose call costs more than to move these few.
        while place > 0 && self.sorted[place - 1].0 <= entry.0 {
            self.sorted[place] = self.sorted[place - 1];
            place -= 1;
        }
        self.sorted[place] = entry;
    }

    /// Moves the sorted entries back into the wheels, below the slot in which they were.
    fn spill(&mut self) {
        self.sorted_until = None;
        while let Some((time, event)) = self.sorted.pop() {
            self.append(time, event);
        }
    }

    /// Returns the first wheel that has entries, and its first slot that has.
    #[inline]
    fn earliest(&self) -> Option<(usize, usize)> {
        if self.occupied_wheels == 0 {
            return None;
        }
        let wheel = self.occupied_wheels.trailing_zeros() as usize % WHEELS;
        let [low, high] = self.occupied_slots[wheel];
        let slot = if low == 0 { 64 + high.trailing_zeros() } else { low.trailing_zeros() };
        Some((wheel, slot as usize % SLOTS))
    }

    /// Appends an entry to its slot.
    #[inline]
    fn append(&mut self, time: Nanos, event: E) {
        let differing_bits = time ^ self.now;
        let wheel = (differing_bits | 1).ilog2() / DIGIT;
        let slot = (time >> (DIGIT * wheel)) as usize % SLOTS;
        let wheel = wheel as usize % WHEELS;
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        let place = if self.occupied_slots[wheel][word] & bit == 0 {
            let place = self.allocate_block((time, event));
            self.occupied_slots[wheel][word] |= bit;
            self.occupied_wheels |= 1 << wheel;
            self.slots[wheel][slot].first = place;
            place
        } else {
            let last = self.slots[wheel][slot].last;
            if (last as usize + 1).is_multiple_of(BLOCK) {
                let place = self.allocate_block((time, event));
                self.next_block[last as usize / BLOCK] = place / BLOCK as u32;
                place
            } else {
                last + 1
            }
        };
        self.slots[wheel][slot].last = place;
        self.entries[place as usize] = (time, event);
    }

    /// Returns the first place of a free block. entry: fills a new block.
    #[inline]
    fn allocate_block(&mut self, entry: (Nanos, E)) -> u32 {
        let block = self.first_free;
        if let Some(next) = self.next_block.get(block as usize) {
            self.first_free = *next;
            return block * BLOCK as u32;
        }
        let place = u32::try_from(self.entries.len()).expect("fewer than 2^32 events wait");
        self.entries.resize(self.entries.len() + BLOCK, entry);
        self.next_block.push(NONE);
        place
    }

    #[inline]
    fn free_block(&mut self, place: u32) {
        let block = place / BLOCK as u32;
        self.next_block[block as usize] = self.first_free;
        self.first_free = block;
    }

    /// Returns the place after this one in its slot, and frees the block that ends with this one.
    #[inline]
    fn next_place(&mut self, place: u32) -> u32 {
        let next = match (place as usize + 1) % BLOCK {
            0 => self.next_block[place as usize / BLOCK] * BLOCK as u32,
            _ => return place + 1,
        };
        self.free_block(place);
        next
    }

    /// Advances the current time to the next slot: few entries are sorted, many move to the wheels
    /// below. None if there is no entry or the slot begins later than `until`.
    fn advance(&mut self, until: Nanos) -> Option<()> {
        let (wheel, slot) = self.earliest()?;
        let WheelSlot { first, last } = self.slots[wheel][slot];
        let shift = DIGIT * wheel as u32;
        let begin = self.entries[first as usize].0 >> shift << shift;
        if begin > until {
            return None;
        }
        self.now = begin;
        if first as usize / BLOCK == last as usize / BLOCK {
            self.mark_empty(wheel, slot);
            self.sorted_until = Some(begin | ((1 << shift) - 1));
            for place in first..=last {
                self.insert_sorted(self.entries[place as usize]);
            }
            self.free_block(first);
        } else if wheel == 0 {
            // All of one time: one after another.
            self.sorted_until = None;
            self.sorted.push(self.entries[first as usize]);
            self.slots[wheel][slot].first = self.next_place(first);
        } else {
            self.mark_empty(wheel, slot);
            self.sorted_until = None;
            let mut place = first;
            while place != last {
                let (time, event) = self.entries[place as usize];
                self.append(time, event);
                place = self.next_place(place);
            }
            let (time, event) = self.entries[last as usize];
            self.append(time, event);
            self.free_block(last);
        }
        Some(())
    }

    #[inline]
    fn mark_empty(&mut self, wheel: usize, slot: usize) {
        self.occupied_slots[wheel][slot / 64] &= !(1 << (slot % 64));
        if self.occupied_slots[wheel] == [0; 2] {
            self.occupied_wheels &= !(1 << wheel);
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
        fn it_agrees_with_a_sorted_list(
            steps in prop::collection::vec((0u32..65, any::<u64>(), 0usize..4, 0u32..40), 0..1500),
        ) {
            let mut wheel = TimerWheel::default();
            let mut list = BTreeMap::new();
            let mut now = 0u64;
            for (number, (bits, far, takes, ahead)) in steps.iter().enumerate() {
                let far = if *bits == 0 { 0 } else { far >> (64 - bits) };
                let at = now.saturating_add(far);
                wheel.push(at, number);
                list.insert((at, number), ());
                let until = now.saturating_add(1 << ahead);
                for _ in 0..*takes {
                    let wanted = list.keys().next().copied().filter(|key| key.0 <= until);
                    prop_assert_eq!(wheel.pop(until), wanted);
                    match wanted {
                        Some(key) => {
                            list.remove(&key);
                            now = key.0;
                        }
                        // Asked up to then: from then on things may come.
                        None => now = until,
                    }
                }
            }
            while let Some(wanted) = list.pop_first() {
                prop_assert_eq!(wheel.pop(u64::MAX), Some(wanted.0));
            }
            prop_assert_eq!(wheel.pop(u64::MAX), None);
        }
    }

    #[test]
    fn blocks_are_reused() {
        let mut wheel = TimerWheel::default();
        (0..50).for_each(|number| wheel.push(number * 1000, number));
        for _ in 0..1000 {
            let (at, number) = wheel.pop(u64::MAX).unwrap();
            wheel.push(at + 77_777 * number, number);
        }
        assert!(wheel.entries.len() <= 50 * BLOCK, "{}", wheel.entries.len());
    }
}
