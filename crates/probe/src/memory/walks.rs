//! Walks over a vector that do nothing but load, store, or load, add and store: in the widest
//! registers that the CPU has, unrolled so that the load and store ports are what limits them.
use crate::memory::simd::Level;
use std::sync::atomic::{compiler_fence, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkOperation {
    Read,
    Write,
    ReadModifyWrite,
}

/// Operations in the order in which a trial does them: the two whose result tells how many words they
/// walked, while the vector still holds what it was filled with, come first.
pub const OPERATIONS: [WalkOperation; 3] =
    [WalkOperation::Read, WalkOperation::ReadModifyWrite, WalkOperation::Write];

impl WalkOperation {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadModifyWrite => "read_modify_write",
        }
    }

    /// How often each byte of the vector crosses between registers and memory: a modified byte is
    /// read and written.
    pub fn crossings(self) -> usize {
        if self == Self::ReadModifyWrite {
            2
        } else {
            1
        }
    }
}

/// Bytes of one turn of the unrolled loop; a walk covers whole turns.
pub const TURN_BYTES: usize = crate::memory::ladder::GRAIN_BYTES;

/// Walks `times` times over `bytes` bytes from `at`; the wrapping sum of all words it read (for
/// writes 0).
///
/// # Safety
/// `at` is aligned to 64 bytes and valid for `bytes`, a multiple of [`TURN_BYTES`]; nobody else
/// touches them; the CPU has `level`.
pub unsafe fn walk(
    operation: WalkOperation,
    level: Level,
    at: *mut u8,
    bytes: usize,
    times: usize,
    value: u64,
) -> u64 {
    debug_assert!(bytes.is_multiple_of(TURN_BYTES) && at.addr().is_multiple_of(64));
    // SAFETY: the caller's contract.
    unsafe {
        match level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => x86::avx512(operation, at, bytes, times, value),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => x86::avx2(operation, at, bytes, times, value),
            #[cfg(target_arch = "x86_64")]
            Level::Base => dispatch::<x86::Xmm>(operation, at, bytes, times, value),
            #[cfg(not(target_arch = "x86_64"))]
            Level::Base => dispatch::<WordPair>(operation, at, bytes, times, value),
        }
    }
}

/// A register of 8-byte words. All methods are inlined into a function that enables the
/// instructions.
trait Register: Copy {
    unsafe fn splat(word: u64) -> Self;
    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    unsafe fn plus(self, addend: Self) -> Self;
}

#[inline(always)]
unsafe fn dispatch<R: Register>(
    operation: WalkOperation,
    at: *mut u8,
    bytes: usize,
    times: usize,
    value: u64,
) -> u64 {
    // SAFETY: the caller's contract.
    unsafe {
        match operation {
            WalkOperation::Read => read::<R>(at, bytes, times),
            WalkOperation::Write => {
                write::<R>(at, bytes, times, value);
                0
            }
            WalkOperation::ReadModifyWrite => {
                modify::<R>(at, bytes, times, value);
                0
            }
        }
    }
}

/// Pointers move by `wrapping_add` here: `add` is checked at every step in debug builds, and a check
/// a load would be most of what the loop does.
///
/// Independent sums, so that the adders' latency does not bound the loads.
const SUMS: usize = 8;

#[inline(always)]
unsafe fn read<R: Register>(at: *const u8, bytes: usize, times: usize) -> u64 {
    // SAFETY: whole turns inside the caller's range.
    unsafe {
        let mut sums = [R::splat(0); SUMS];
        for _ in 0..times {
            let mut offset = 0;
            while offset < bytes {
                for (index, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.plus(R::load(at.wrapping_add(offset + index * size_of::<R>())));
                }
                offset += SUMS * size_of::<R>();
            }
            // The compiler may not know that the next round reads the same.
            compiler_fence(Ordering::SeqCst);
        }
        let mut words = [0u64; 64];
        for (index, sum) in sums.into_iter().enumerate() {
            sum.store(words.as_mut_ptr().cast::<u8>().add(index * size_of::<R>()));
        }
        words.into_iter().fold(0, u64::wrapping_add)
    }
}

#[inline(always)]
unsafe fn write<R: Register>(at: *mut u8, bytes: usize, times: usize, value: u64) {
    // SAFETY: whole turns inside the caller's range.
    unsafe {
        let value = R::splat(value);
        for _ in 0..times {
            let mut offset = 0;
            while offset < bytes {
                for index in 0..SUMS {
                    value.store(at.wrapping_add(offset + index * size_of::<R>()));
                }
                offset += SUMS * size_of::<R>();
            }
            // The compiler may not drop a round because the next one stores the same.
            compiler_fence(Ordering::SeqCst);
        }
    }
}

#[inline(always)]
unsafe fn modify<R: Register>(at: *mut u8, bytes: usize, times: usize, value: u64) {
    // SAFETY: whole turns inside the caller's range.
    unsafe {
        let value = R::splat(value);
        for _ in 0..times {
            let mut offset = 0;
            while offset < bytes {
                for index in 0..SUMS {
                    let here = at.wrapping_add(offset + index * size_of::<R>());
                    R::load(here).plus(value).store(here);
                }
                offset += SUMS * size_of::<R>();
            }
            // The compiler may not join two rounds.
            compiler_fence(Ordering::SeqCst);
        }
    }
}

/// Two words: what every CPU does in one instruction.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct WordPair(u64, u64);

#[cfg(not(target_arch = "x86_64"))]
impl Register for WordPair {
    #[inline(always)]
    unsafe fn splat(word: u64) -> Self {
        Self(word, word)
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for 16 aligned bytes.
        unsafe { from.cast::<Self>().read() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for 16 aligned bytes.
        unsafe { to.cast::<Self>().write(self) }
    }
    #[inline(always)]
    unsafe fn plus(self, addend: Self) -> Self {
        Self(self.0.wrapping_add(addend.0), self.1.wrapping_add(addend.1))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{dispatch, Register, WalkOperation};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn avx512(
        operation: WalkOperation,
        at: *mut u8,
        bytes: usize,
        times: usize,
        value: u64,
    ) -> u64 {
        // SAFETY: the caller's contract.
        unsafe { dispatch::<Zmm>(operation, at, bytes, times, value) }
    }

    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2(
        operation: WalkOperation,
        at: *mut u8,
        bytes: usize,
        times: usize,
        value: u64,
    ) -> u64 {
        // SAFETY: the caller's contract.
        unsafe { dispatch::<Ymm>(operation, at, bytes, times, value) }
    }

    macro_rules! register {
        ($name:ident($raw:ty) $splat:ident $load:ident $store:ident $plus:ident) => {
            #[derive(Clone, Copy)]
            pub(super) struct $name($raw);

            impl Register for $name {
                #[inline(always)]
                unsafe fn splat(word: u64) -> Self {
                    // SAFETY: the caller vouches for the CPU.
                    unsafe { Self($splat(word.cast_signed())) }
                }
                #[inline(always)]
                unsafe fn load(from: *const u8) -> Self {
                    // SAFETY: the caller vouches for the register's bytes and for the CPU.
                    unsafe { Self($load(from.cast())) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut u8) {
                    // SAFETY: the caller vouches for the register's bytes and for the CPU.
                    unsafe { $store(to.cast(), self.0) }
                }
                #[inline(always)]
                unsafe fn plus(self, addend: Self) -> Self {
                    // SAFETY: the caller vouches for the CPU.
                    unsafe { Self($plus(self.0, addend.0)) }
                }
            }
        };
    }

    register! { Zmm(__m512i)
        _mm512_set1_epi64 _mm512_loadu_si512 _mm512_storeu_si512 _mm512_add_epi64
    }
    register! { Ymm(__m256i)
        _mm256_set1_epi64x _mm256_loadu_si256 _mm256_storeu_si256 _mm256_add_epi64
    }
    register! { Xmm(__m128i) _mm_set1_epi64x _mm_loadu_si128 _mm_storeu_si128 _mm_add_epi64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::simd;

    #[repr(align(64))]
    struct Vector([u64; 1024]);

    #[test]
    fn every_word_is_read_and_written_as_often_as_asked_and_none_beyond() {
        for level in simd::supported() {
            for bytes in [0, 512, 1024, 1536, 4096] {
                for times in [0, 1, 3] {
                    let words = bytes / 8;
                    let mut vector = Vector(std::array::from_fn(|index| index as u64 * 0x1_0001));
                    let before = vector.0;
                    let at = vector.0.as_mut_ptr().cast::<u8>();
                    let once = before[..words].iter().fold(0, |sum: u64, w| sum.wrapping_add(*w));
                    // SAFETY: the vector has 8192 bytes, aligned to 64.
                    let sum = unsafe { walk(WalkOperation::Read, level, at, bytes, times, 0) };
                    assert_eq!(sum, once.wrapping_mul(times as u64), "{level:?} {bytes} {times}");
                    assert_eq!(vector.0, before);
                    // SAFETY: as above.
                    unsafe { walk(WalkOperation::ReadModifyWrite, level, at, bytes, times, 5) };
                    for (index, (after, before)) in vector.0.iter().zip(before).enumerate() {
                        let added = if index < words { 5 * times as u64 } else { 0 };
                        assert_eq!(*after, before + added, "{level:?} {index}");
                    }
                    // SAFETY: as above.
                    unsafe { walk(WalkOperation::Write, level, at, bytes, times, 9) };
                    let written = if times > 0 { words } else { 0 };
                    assert!(vector.0[..written].iter().all(|word| *word == 9));
                    assert_eq!(vector.0[words..], before[words..]);
                }
            }
        }
    }

    #[test]
    fn a_modified_byte_crosses_twice() {
        assert_eq!(OPERATIONS.map(WalkOperation::crossings), [1, 2, 1]);
    }
}
