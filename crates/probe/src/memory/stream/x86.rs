//! The registers of x86-64: SSE2, AVX2 with fused multiply-add, AVX-512.
use super::{dispatch, Element, How, Lanes, SCALAR};
use crate::memory::simd::Level;
use std::arch::x86_64::*;

/// Does a kernel with the registers of `how.level`.
pub(super) unsafe fn apply(
    how: How,
    to: *mut u8,
    first: *const u8,
    second: *const u8,
    count: usize,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match (how.level, how.element) {
            (Level::Avx512, Element::Double) => avx512::<Zmm>(how, to, first, second, count),
            (Level::Avx512, Element::Int64) => avx512::<ZmmInt>(how, to, first, second, count),
            (Level::Avx2, Element::Double) => avx2::<Ymm>(how, to, first, second, count),
            (Level::Avx2, Element::Int64) => avx2::<YmmInt>(how, to, first, second, count),
            (Level::Base, Element::Double) => dispatch::<Xmm>(how, to, first, second, count),
            (Level::Base, Element::Int64) => dispatch::<XmmInt>(how, to, first, second, count),
        }
    }
}

#[target_feature(enable = "avx512f")]
unsafe fn avx512<L: Lanes>(
    how: How,
    to: *mut u8,
    first: *const u8,
    second: *const u8,
    count: usize,
) {
    // SAFETY: the caller's contract.
    unsafe { dispatch::<L>(how, to, first, second, count) }
}

#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<L: Lanes>(how: How, to: *mut u8, first: *const u8, second: *const u8, count: usize) {
    // SAFETY: the caller's contract.
    unsafe { dispatch::<L>(how, to, first, second, count) }
}

macro_rules! lanes {
    ($name:ident($raw:ty; $element:ty) $load:ident $store:ident $stream:ident $plus:ident
     |$x:ident| $triple:expr $(, |$a:ident, $b:ident| $fused:expr)?) => {
        #[derive(Clone, Copy)]
        struct $name($raw);

        impl Lanes for $name {
            type Single = $element;
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
            unsafe fn stream(self, to: *mut u8) {
                // SAFETY: as `store`, and `to` is aligned; the fence comes with the pass's end.
                unsafe { $stream(to.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn plus(self, addend: Self) -> Self {
                // SAFETY: the caller vouches for the CPU.
                unsafe { Self($plus(self.0, addend.0)) }
            }
            #[inline(always)]
            unsafe fn triple(self) -> Self {
                let $x = self.0;
                // SAFETY: the caller vouches for the CPU.
                unsafe { Self($triple) }
            }
            $(#[inline(always)]
            unsafe fn triple_plus(self, addend: Self) -> Self {
                let ($a, $b) = (self.0, addend.0);
                // SAFETY: the caller vouches for the CPU.
                unsafe { Self($fused) }
            })?
        }
    };
}

const THREE: f64 = SCALAR as f64;

lanes! { Zmm(__m512d; f64) _mm512_loadu_pd _mm512_storeu_pd _mm512_stream_pd _mm512_add_pd
    |x| _mm512_mul_pd(x, _mm512_set1_pd(THREE)),
    |a, b| _mm512_fmadd_pd(a, _mm512_set1_pd(THREE), b)
}
lanes! { ZmmInt(__m512i; i64)
    _mm512_loadu_si512 _mm512_storeu_si512 _mm512_stream_si512 _mm512_add_epi64
    |x| _mm512_add_epi64(x, _mm512_slli_epi64::<1>(x))
}
lanes! { Ymm(__m256d; f64) _mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd _mm256_add_pd
    |x| _mm256_mul_pd(x, _mm256_set1_pd(THREE)),
    |a, b| _mm256_fmadd_pd(a, _mm256_set1_pd(THREE), b)
}
lanes! { YmmInt(__m256i; i64)
    _mm256_loadu_si256 _mm256_storeu_si256 _mm256_stream_si256 _mm256_add_epi64
    |x| _mm256_add_epi64(x, _mm256_slli_epi64::<1>(x))
}
lanes! { Xmm(__m128d; f64) _mm_loadu_pd _mm_storeu_pd _mm_stream_pd _mm_add_pd
    |x| _mm_mul_pd(x, _mm_set1_pd(THREE))
}
lanes! { XmmInt(__m128i; i64) _mm_loadu_si128 _mm_storeu_si128 _mm_stream_si128 _mm_add_epi64
    |x| _mm_add_epi64(x, _mm_slli_epi64::<1>(x))
}
