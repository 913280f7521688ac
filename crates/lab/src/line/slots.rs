//! Packets that wait for their release, and their buffers. All memory is taken at the start; what was
//! never used costs no page.
use std::io;

/// A packet that waits, ordered by its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    pub release_ns: u64,
    /// Which was held first, among equal releases.
    pub number: u64,
    pub slot: u32,
    pub bytes: u32,
    /// Where it came in.
    pub from: u16,
    /// Where it goes out.
    pub to: u16,
}

/// Buffers of one size in one mapping.
#[derive(Debug)]
pub struct PacketBuffers {
    base: *mut u8,
    size: usize,
    count: usize,
    /// The last one given back is the first one given out: its memory is in the cache.
    free: Vec<u32>,
}

impl PacketBuffers {
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

impl Drop for PacketBuffers {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, used by nobody else.
        unsafe { libc::munmap(self.base.cast(), self.size * self.count) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_apart_and_come_back() {
        let mut slots = PacketBuffers::new(3, 100).unwrap();
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
