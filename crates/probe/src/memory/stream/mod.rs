//! The four kernels of STREAM over doubles and 64-bit integers, in the widest vectors that the CPU
//! has, with ordinary or with streaming (non-temporal) stores.
use crate::memory::simd::{self, Level};
use serde::{Deserialize, Serialize};

pub mod arrays;
#[cfg(target_arch = "x86_64")]
mod x86;

/// The scalar of scale and triad, as in McCalpin's program. For integers 3x is computed as x + 2x,
/// which is what a compiler makes of it.
pub const SCALAR: i64 = 3;

/// One of STREAM's kernels, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKernel {
    /// c = a
    Copy,
    /// b = 3 c
    Scale,
    /// c = a + b
    Add,
    /// a = b + 3 c
    Triad,
}

impl StreamKernel {
    /// Bytes that one element moves, counted as STREAM does: what the kernel reads and writes, and
    /// not the line that an ordinary store fetches first.
    pub fn bytes_per_element(self) -> usize {
        match self {
            Self::Copy | Self::Scale => 16,
            Self::Add | Self::Triad => 24,
        }
    }

    /// Which arrays (a = 0, b = 1, c = 2) it writes, reads first and reads second.
    pub fn roles(self) -> (usize, usize, usize) {
        match self {
            Self::Copy => (2, 0, 0),
            Self::Scale => (1, 2, 2),
            Self::Add => (2, 0, 1),
            Self::Triad => (0, 1, 2),
        }
    }
}

/// Type of the elements; both are 8 bytes wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    /// IEEE double.
    Double,
    /// 64-bit integer, wrapping.
    Int64,
}

impl Element {
    /// Its name in parameters and factors.
    pub fn name(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::Int64 => "int64",
        }
    }
}

/// How one kernel is to be done.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Which kernel.
    pub kernel: StreamKernel,
    /// On which elements.
    pub element: Element,
    /// Whether stores go past the caches.
    pub streaming: bool,
    /// Which instructions.
    pub level: Level,
}

/// Does one kernel on `count` elements: `to` from `first` and `second` (copy and scale leave the
/// second alone).
///
/// # Safety
/// All three are valid for `count` elements of 8 bytes; `to` is aligned to 64 bytes and overlaps
/// neither source; nobody else touches `to`; the CPU has `how.level`.
pub unsafe fn apply(how: How, to: *mut u8, first: *const u8, second: *const u8, count: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        x86::apply(how, to, first, second, count);
        #[cfg(not(target_arch = "x86_64"))]
        match (how.level, how.element) {
            (Level::Base, Element::Double) => dispatch::<f64>(how, to, first, second, count),
            (Level::Base, Element::Int64) => dispatch::<i64>(how, to, first, second, count),
        }
    }
}

/// One register of elements. All methods are inlined into a function that enables the instructions.
trait Lanes: Copy {
    /// The single element, for what is left after the last whole register.
    type Single: Lanes;
    /// Loads a register.
    unsafe fn load(from: *const u8) -> Self;
    /// Stores it through the caches.
    unsafe fn store(self, to: *mut u8);
    /// Stores it past the caches, where the CPU can; `to` is aligned to the register.
    unsafe fn stream(self, to: *mut u8);
    /// Sum of two.
    unsafe fn plus(self, addend: Self) -> Self;
    /// Three times itself.
    unsafe fn triple(self) -> Self;
    /// `addend` plus three times itself.
    #[inline(always)]
    unsafe fn triple_plus(self, addend: Self) -> Self {
        // SAFETY: the caller's contract: the CPU has the instructions.
        unsafe { self.triple().plus(addend) }
    }
}

#[inline(always)]
unsafe fn dispatch<L: Lanes>(how: How, to: *mut u8, first: *const u8, second: *const u8, n: usize) {
    const COPY: u8 = StreamKernel::Copy as u8;
    const SCALE: u8 = StreamKernel::Scale as u8;
    const ADD: u8 = StreamKernel::Add as u8;
    const TRIAD: u8 = StreamKernel::Triad as u8;
    // SAFETY: the caller's contract is `sweep`'s.
    unsafe {
        match (how.kernel, how.streaming) {
            (StreamKernel::Copy, false) => sweep::<L, COPY, false>(to, first, second, n),
            (StreamKernel::Copy, true) => sweep::<L, COPY, true>(to, first, second, n),
            (StreamKernel::Scale, false) => sweep::<L, SCALE, false>(to, first, second, n),
            (StreamKernel::Scale, true) => sweep::<L, SCALE, true>(to, first, second, n),
            (StreamKernel::Add, false) => sweep::<L, ADD, false>(to, first, second, n),
            (StreamKernel::Add, true) => sweep::<L, ADD, true>(to, first, second, n),
            (StreamKernel::Triad, false) => sweep::<L, TRIAD, false>(to, first, second, n),
            (StreamKernel::Triad, true) => sweep::<L, TRIAD, true>(to, first, second, n),
        }
    }
}

/// Bytes of one turn of the unrolled loop: four lines.
const TURN_BYTES: usize = 256;
/// How far ahead of the loads lines are asked for, where data come from memory: the hardware
/// prefetchers stop at a page's end. Of 0.5, 1, 2 and 4 KiB the middle two gave most on a Cascade Lake
/// (7 % over none for one thread); every bandwidth program is free to do so.
const AHEAD_BYTES: usize = 2048;

#[inline(always)]
unsafe fn sweep<L: Lanes, const KERNEL: u8, const STREAM: bool>(
    to: *mut u8,
    first: *const u8,
    second: *const u8,
    count: usize,
) {
    let bytes = count * 8;
    let turns_end = bytes - bytes % TURN_BYTES;
    let mut at = 0;
    // SAFETY: every access is below `bytes`, which the caller vouches for; whole turns begin at
    // multiples of a line from the aligned start.
    unsafe {
        while at < turns_end {
            if STREAM {
                ahead(first.wrapping_add(at));
                if KERNEL >= StreamKernel::Add as u8 {
                    ahead(second.wrapping_add(at));
                }
            }
            let mut offset = 0;
            while offset < TURN_BYTES {
                let here = at + offset;
                let value = compute_lanes::<L, KERNEL>(first.add(here), second.add(here));
                if STREAM {
                    value.stream(to.add(here));
                } else {
                    value.store(to.add(here));
                }
                offset += size_of::<L>();
            }
            at += TURN_BYTES;
        }
        while at < bytes {
            compute_lanes::<L::Single, KERNEL>(first.add(at), second.add(at)).store(to.add(at));
            at += 8;
        }
    }
}

/// Asks for the lines of the turn that comes `AHEAD_BYTES` later; beyond an array's end this does
/// nothing, since a prefetch never faults.
#[inline(always)]
fn ahead(lines: *const u8) {
    for line in 0..TURN_BYTES / 64 {
        simd::prefetch(lines.wrapping_add(AHEAD_BYTES + line * 64));
    }
}

#[inline(always)]
unsafe fn compute_lanes<L: Lanes, const KERNEL: u8>(first: *const u8, second: *const u8) -> L {
    // SAFETY: the caller's contract: one register can be read at each source that is used.
    unsafe {
        let x = L::load(first);
        match KERNEL {
            0 => x,
            1 => x.triple(),
            2 => x.plus(L::load(second)),
            _ => L::load(second).triple_plus(x),
        }
    }
}

macro_rules! single {
    ($type:ty, $plus:expr, $triple:expr) => {
        impl Lanes for $type {
            type Single = Self;
            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the caller vouches for 8 readable bytes, aligned to 8.
                unsafe { from.cast::<Self>().read() }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller vouches for 8 writable bytes, aligned to 8.
                unsafe { to.cast::<Self>().write(self) }
            }
            #[inline(always)]
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: as `store`.
                unsafe { self.store(to) }
            }
            #[inline(always)]
            unsafe fn plus(self, addend: Self) -> Self {
                $plus(self, addend)
            }
            #[inline(always)]
            unsafe fn triple(self) -> Self {
                $triple(self)
            }
        }
    };
}

single!(f64, |x: f64, y: f64| x + y, |x: f64| x * SCALAR as f64);
single!(i64, i64::wrapping_add, |x: i64| x.wrapping_mul(SCALAR));

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 64-byte aligned elements, with room to see a store beyond the end.
    #[repr(align(64))]
    #[derive(Clone)]
    struct Array([u64; 1024]);

    fn scalar(kernel: StreamKernel, element: Element, x: u64, y: u64) -> u64 {
        match element {
            Element::Double => {
                let (x, y) = (f64::from_bits(x), f64::from_bits(y));
                // Small whole numbers: fused or not, the result is exact.
                match kernel {
                    StreamKernel::Copy => x,
                    StreamKernel::Scale => 3.0 * x,
                    StreamKernel::Add => x + y,
                    StreamKernel::Triad => x + 3.0 * y,
                }
                .to_bits()
            }
            Element::Int64 => match kernel {
                StreamKernel::Copy => x,
                StreamKernel::Scale => x.wrapping_mul(3),
                StreamKernel::Add => x.wrapping_add(y),
                StreamKernel::Triad => x.wrapping_add(y.wrapping_mul(3)),
            },
        }
    }

    fn filled(element: Element, salt: u64) -> Array {
        let mut array = Array([0; 1024]);
        for (index, slot) in array.0.iter_mut().enumerate() {
            let number = index as u64 * 7 + salt;
            *slot = match element {
                Element::Double => (number as f64).to_bits(),
                // The high bits too, so that a 32-bit operation would be seen.
                Element::Int64 => number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            };
        }
        array
    }

    #[test]
    fn every_kernel_equals_the_scalar_reference_element_by_element() {
        const GUARD: u64 = 0xDEAD_BEEF_DEAD_BEEF;
        let mut checked = 0u64;
        for level in simd::supported() {
            for element in [Element::Double, Element::Int64] {
                for kernel in [
                    StreamKernel::Copy,
                    StreamKernel::Scale,
                    StreamKernel::Add,
                    StreamKernel::Triad,
                ] {
                    for streaming in [false, true] {
                        // Whole turns, odd tails, less than a register, nothing.
                        for count in [0, 1, 7, 8, 31, 32, 33, 63, 100, 997, 1000] {
                            let (x, y) = (filled(element, 1), filled(element, 5));
                            let mut to = Array([GUARD; 1024]);
                            let how = How { kernel, element, streaming, level };
                            let (x_at, y_at) = (x.0.as_ptr().cast(), y.0.as_ptr().cast());
                            // SAFETY: all arrays hold 1024 aligned elements and do not overlap.
                            unsafe { apply(how, to.0.as_mut_ptr().cast(), x_at, y_at, count) };
                            simd::store_fence();
                            for index in 0..1024 {
                                let truth = scalar(kernel, element, x.0[index], y.0[index]);
                                let truth = if index < count { truth } else { GUARD };
                                assert_eq!(to.0[index], truth, "{how:?} {index} of {count}");
                                checked += 1;
                            }
                        }
                    }
                }
            }
        }
        assert!(checked >= 2 * 4 * 2 * 11 * 1024);
    }

    #[test]
    fn names_and_bytes_are_those_of_stream() {
        for (name, bytes) in [("copy", 16), ("scale", 16), ("add", 24), ("triad", 24)] {
            let kernel: StreamKernel = serde_json::from_value(json!(name)).unwrap();
            assert_eq!((json!(kernel), kernel.bytes_per_element()), (json!(name), bytes));
            let (to, first, second) = kernel.roles();
            assert!(to != first && to != second);
        }
        assert!(serde_json::from_value::<StreamKernel>(json!("triade")).is_err());
    }
}
