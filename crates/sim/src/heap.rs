//! A heap of four children to a node: the earliest entry on top. It is half as deep as one of two,
//! and the four lie beside each other in memory, so that taking the top costs fewer cache misses.

/// Moment in the upper half, running number in the lower: one comparison orders both.
pub type Key = u128;

const CHILDREN: usize = 4;

/// Entries by key, least first. Keys are distinct.
#[derive(Clone, Debug)]
pub struct Heap<E> {
    entries: Vec<(Key, E)>,
}

impl<E> Default for Heap<E> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<E> Heap<E> {
    /// How many entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The least key.
    #[inline]
    pub fn peek(&self) -> Option<Key> {
        self.entries.first().map(|entry| entry.0)
    }

    /// Takes an entry up.
    #[inline]
    pub fn push(&mut self, key: Key, event: E) {
        let mut place = self.entries.len();
        self.entries.push((key, event));
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.entries[parent].0 <= key {
                break;
            }
            self.entries.swap(place, parent);
            place = parent;
        }
    }

    /// Gives the least entry away.
    #[inline]
    pub fn pop(&mut self) -> Option<(Key, E)> {
        let last = self.entries.pop()?;
        let Some(top) = self.entries.first_mut() else { return Some(last) };
        let taken = std::mem::replace(top, last);
        self.sink();
        Some(taken)
    }

    /// Moves the entry on top down to where it belongs.
    #[inline]
    fn sink(&mut self) {
        let entries = &mut self.entries[..];
        let key = entries[0].0;
        let mut place = 0;
        loop {
            let first = place * CHILDREN + 1;
            if first >= entries.len() {
                return;
            }
            let end = (first + CHILDREN).min(entries.len());
            let mut least = first;
            let mut least_key = entries[first].0;
            for (child, entry) in entries[..end].iter().enumerate().skip(first + 1) {
                if entry.0 < least_key {
                    (least, least_key) = (child, entry.0);
                }
            }
            if key <= least_key {
                return;
            }
            entries.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_whatever_comes_and_goes(steps in prop::collection::vec(prop::option::of(0u64..99), 0..300)) {
            let (mut heap, mut list) = (Heap::default(), Vec::new());
            for (number, step) in steps.iter().enumerate() {
                if let Some(at) = step {
                    let key = Key::from(*at) << 64 | number as Key;
                    heap.push(key, number);
                    list.push((key, number));
                } else {
                    list.sort_unstable();
                    let wanted = (!list.is_empty()).then(|| list.remove(0));
                    prop_assert_eq!(heap.pop(), wanted);
                }
                prop_assert_eq!(heap.len(), list.len());
                prop_assert_eq!(heap.peek(), list.iter().map(|entry| entry.0).min());
            }
        }
    }
}
