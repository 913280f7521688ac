//! A timed section: from `start` to `stop` nothing may allocate, print or fault a page in. Debug
//! builds assert it; release builds only read the clock.
use nephoscope_linux::clock;

/// An open timed section of this thread.
pub struct Timed {
    #[cfg(debug_assertions)]
    allocations: u64,
    #[cfg(debug_assertions)]
    faults: (i64, i64),
    started_ns: u64,
}

/// Starts timing. Touch every page and allocate every buffer before.
#[inline]
pub fn start() -> Timed {
    #[cfg(debug_assertions)]
    {
        // The first call of getrusage and of the clock maps their own pages.
        let _ = (faults(), clock::monotonic_ns());
        Timed {
            allocations: super::alloc::allocations(),
            faults: faults(),
            started_ns: clock::monotonic_ns(),
        }
    }
    #[cfg(not(debug_assertions))]
    Timed { started_ns: clock::monotonic_ns() }
}

impl Timed {
    /// Ends the section and gives its length. Debug builds panic if it allocated or faulted.
    #[inline]
    pub fn stop(self) -> u64 {
        let elapsed_ns = self.read_ns();
        #[cfg(debug_assertions)]
        {
            assert_no_allocation(self.allocations);
            let (minor, major) = faults();
            let new = (minor - self.faults.0, major - self.faults.1);
            assert!(new == (0, 0), "page faults inside a timed section: {new:?} (minor, major)");
        }
        elapsed_ns
    }

    /// Ends the section where the kernel itself may fault or map (file and socket I/O through the
    /// page cache): allocations of ours are still asserted.
    #[inline]
    pub fn stop_with_kernel_io(self) -> u64 {
        let elapsed_ns = self.read_ns();
        #[cfg(debug_assertions)]
        assert_no_allocation(self.allocations);
        elapsed_ns
    }

    /// Nanoseconds since the start, without ending the section.
    #[inline]
    pub fn read_ns(&self) -> u64 {
        clock::monotonic_ns() - self.started_ns
    }
}

#[cfg(debug_assertions)]
fn faults() -> (i64, i64) {
    clock::usage(libc::RUSAGE_THREAD).map_or((0, 0), |usage| (usage.ru_minflt, usage.ru_majflt))
}

/// Panics if this thread allocated since there were so many allocations.
#[cfg(debug_assertions)]
fn assert_no_allocation(before: u64) {
    let allocations = super::alloc::allocations() - before;
    assert!(allocations == 0, "{allocations} allocations inside a timed section");
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "allocations inside a timed section")]
    fn an_allocation_is_caught() {
        let section = start();
        let list = std::hint::black_box(vec![1u8; 64]);
        drop(list);
        section.stop();
    }

    #[test]
    #[should_panic(expected = "page faults inside a timed section")]
    fn a_page_fault_is_caught() {
        let buffer =
            crate::memory::buffer::Buffer::map(1 << 20, crate::memory::buffer::Pages::Small)
                .unwrap();
        let section = start();
        // SAFETY: the mapping is 1 MiB long and writable; not touched before on purpose.
        unsafe { buffer.as_ptr().add(4096).write_volatile(1) };
        section.stop();
    }
}
