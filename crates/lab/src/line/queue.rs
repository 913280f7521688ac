//! Packets that wait for their release, in order of time. All memory is taken at the start; what
//! was never used costs no page.
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    pub release_ns: u64,
    /// Which was held first, among equal releases.
    number: u64,
    pub slot: u32,
    pub bytes: u32,
    /// Where it came in.
    pub from: u16,
    /// Where it goes out.
    pub to: u16,
}

/// Packets by release.
#[derive(Debug)]
pub struct Queue {
    heap: BinaryHeap<Reverse<Held>>,
    room: usize,
    held: u64,
}

impl Queue {
    /// An empty queue for at most `room` packets.
    pub fn new(room: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(room), room, held: 0 }
    }

    /// Holds a packet; the caller has a slot for it, so there is room.
    pub fn hold(&mut self, release_ns: u64, slot: u32, bytes: usize, from: u16, to: u16) {
        debug_assert!(self.heap.len() < self.room, "a push here would take memory");
        self.held += 1;
        let bytes = bytes as u32;
        self.heap.push(Reverse(Held { release_ns, number: self.held, slot, bytes, from, to }));
    }

    /// When the first one goes out.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|held| held.0.release_ns)
    }

    /// The first one, if it is due.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Held> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|held| held.0)
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }
}

/// Buffers of one size in one mapping.
#[derive(Debug)]
pub struct Slots {
    base: *mut u8,
    size: usize,
    count: usize,
    /// The last one given back is the first one given out: its memory is in the cache.
    free: Vec<u32>,
}

impl Slots {
    /// `count` buffers of at least `bytes` each.
    pub fn new(count: usize, bytes: usize) -> io::Result<Self> {
        let size = bytes.next_multiple_of(64);
        // SAFETY: a fresh private mapping; pages come with their first use.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size * count,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let free = (0..count as u32).rev().collect();
        Ok(Self { base: base.cast(), size, count, free })
    }

    /// A free buffer.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    pub fn give(&mut self, slot: u32) {
        debug_assert!(self.free.len() < self.count);
        self.free.push(slot);
    }

    pub fn bytes(&mut self, slot: u32) -> &mut [u8] {
        assert!((slot as usize) < self.count);
        // SAFETY: within the mapping, which lives as long as `self`; borrowed from `self`.
        unsafe {
            std::slice::from_raw_parts_mut(self.base.add(slot as usize * self.size), self.size)
        }
    }

    /// Copies the first bytes of one buffer into another.
    pub fn copy(&mut self, from: u32, to: u32, bytes: usize) {
        assert!(from != to && bytes <= self.size);
        assert!((from as usize) < self.count && (to as usize) < self.count);
        // SAFETY: two different buffers within the mapping, `bytes` within each.
        unsafe {
            let source = self.base.add(from as usize * self.size);
            let target = self.base.add(to as usize * self.size);
            std::ptr::copy_nonoverlapping(source, target, bytes);
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, used by nobody else.
        unsafe { libc::munmap(self.base.cast(), self.size * self.count) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_wire::random::Random;

    #[test]
    fn packets_come_out_in_order_of_release_then_of_arrival() {
        let mut queue = Queue::new(5000);
        let mut random = Random::stream(2, 0);
        let mut expected = Vec::new();
        for slot in 0..5000 {
            let release_ns = random.below(100);
            queue.hold(release_ns, slot, 60, 0, 1);
            expected.push((release_ns, slot));
        }
        expected.sort_unstable();
        let mut found = Vec::new();
        for now in 0..100 {
            while let Some(held) = queue.pop_due(now) {
                assert_eq!(held.release_ns, now, "it came late or early");
                found.push((held.release_ns, held.slot));
            }
        }
        assert_eq!(found, expected);
        assert_eq!((queue.len(), queue.next_ns()), (0, None));
    }

    #[test]
    fn buffers_are_apart_and_come_back() {
        let mut slots = Slots::new(3, 100).unwrap();
        let all: Vec<_> = (0..3).map(|_| slots.take().unwrap()).collect();
        assert!(slots.take().is_none());
        for (fill, slot) in all.iter().enumerate() {
            slots.bytes(*slot).fill(fill as u8 + 1);
        }
        slots.copy(all[2], all[0], 60);
        assert_eq!((slots.bytes(all[0])[59], slots.bytes(all[0])[60]), (3, 1));
        assert!(slots.bytes(all[1]).iter().all(|byte| *byte == 2));
        slots.give(all[1]);
        assert_eq!(slots.take(), Some(all[1]));
    }
}
