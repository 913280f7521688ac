//! Large buffers straight from `mmap`: page-aligned, touched on purpose, given back on drop.
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// Base pages only (transparent huge pages switched off for the range).
    Small,
    /// Transparent huge pages asked for by `madvise`.
    Huge,
    /// Whatever the machine does by itself.
    Default,
    /// Base pages that the kernel may merge with equal ones (KSM).
    Mergeable,
}

/// An anonymous private mapping.
#[derive(Debug)]
pub struct Buffer {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Buffer {}
// SAFETY: through `&` it is only read, or its address taken: threads that write through the address
// answer for it that nobody else uses those bytes meanwhile.
unsafe impl Sync for Buffer {}

/// Huge-page alignment, so that a range asked to be huge can be.
const ALIGN: usize = 2 << 20;

impl Buffer {
    /// Maps `bytes` (rounded up to 2 MiB for huge pages). Pages are untouched: first touch decides
    /// on which NUMA node each lies, so the thread that will use a range touches it.
    pub fn map(bytes: usize, pages: Pages) -> Result<Self> {
        let (unit, slack) = if pages == Pages::Huge { (ALIGN, ALIGN) } else { (4096, 0) };
        // A size that does not fit into the address space must not wrap to one that does.
        let rounded = bytes
            .max(1)
            .checked_next_multiple_of(unit)
            .filter(|rounded| rounded.checked_add(slack).is_some())
            .ok_or_else(|| no_memory(bytes))?;
        // SAFETY: a fresh anonymous mapping; the unaligned ends are unmapped again at once.
        unsafe {
            let raw = libc::mmap(
                std::ptr::null_mut(),
                rounded + slack,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            if raw == libc::MAP_FAILED {
                return Err(no_memory(bytes));
            }
            let raw = raw.cast::<u8>();
            let skip = if slack == 0 { 0 } else { raw.align_offset(ALIGN) };
            if skip > 0 {
                libc::munmap(raw.cast(), skip);
            }
            if slack > skip {
                libc::munmap(raw.add(skip + rounded).cast(), slack - skip);
            }
            let start = raw.add(skip);
            let advices: &[libc::c_int] = match pages {
                Pages::Small => &[libc::MADV_NOHUGEPAGE],
                Pages::Huge => &[libc::MADV_HUGEPAGE],
                Pages::Default => &[],
                Pages::Mergeable => &[libc::MADV_NOHUGEPAGE, libc::MADV_MERGEABLE],
            };
            for advice in advices {
                // A kernel without huge pages or without merging refuses; the pages are then ordinary.
                libc::madvise(start.cast(), rounded, *advice);
            }
            Ok(Self { start, bytes: rounded })
        }
    }

    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is this long; whoever writes through the pointer must not share it.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is this long, and `&mut` keeps others away.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }

    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes one byte a page in `range`, from the calling thread.
    pub fn touch(&mut self, range: std::ops::Range<usize>) {
        let end = range.end.min(self.bytes);
        let mut at = range.start;
        while at < end {
            // SAFETY: `at` lies inside the mapping.
            unsafe { self.start.add(at).write_volatile(0) };
            at += 4096;
        }
    }

    /// As [`Self::map`], of `count` parts of `part_bytes` each.
    pub fn map_parts(count: usize, part_bytes: usize, pages: Pages) -> Result<Self> {
        Self::map(count.checked_mul(part_bytes).ok_or_else(|| no_memory(usize::MAX))?, pages)
    }
}

/// Bytes touched between two checks for cancellation.
const CHUNK_BYTES: usize = 32 << 20;

impl Buffer {
    /// Touches every page from the calling thread.
    pub fn touch_all(&mut self, session: Session) -> Result<()> {
        for start in (0..self.bytes).step_by(CHUNK_BYTES) {
            session.check()?;
            self.touch(start..start + CHUNK_BYTES);
        }
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us and nobody else holds it.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

fn no_memory(bytes: usize) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_memory",
        format!("{bytes} bytes of memory cannot be mapped."),
        "Ask for a smaller working set, or raise the memory limit.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_would_wrap_are_refused() {
        for pages in [Pages::Default, Pages::Small, Pages::Huge, Pages::Mergeable] {
            assert!(Buffer::map(usize::MAX, pages).is_err());
            assert!(Buffer::map_parts(usize::MAX / 4096, 8192, pages).is_err());
        }
        // With the room for its alignment it would wrap.
        assert!(Buffer::map(usize::MAX - 2 * ALIGN + 1, Pages::Huge).is_err());
    }

    #[test]
    fn a_range_beyond_the_end_is_touched_to_the_end() {
        let mut buffer = Buffer::map(8192, Pages::Small).unwrap();
        buffer.touch(0..usize::MAX);
        assert_eq!(buffer.as_slice().len(), 8192);
    }
}
