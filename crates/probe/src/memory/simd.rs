//! Which vector instructions this CPU has, by its own word (`cpuid`), chosen once per trial.

/// Width of the loads and stores that the memory benchmarks use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every CPU of the architecture has: SSE2 on x86-64, plain loops (NEON by the compiler) on
    /// aarch64.
    Base,
    /// 256-bit registers with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The widest level that this CPU and this kernel support.
pub fn widest() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return Level::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Level::Avx2;
        }
    }
    Level::Base
}

/// Every level that this CPU supports, narrowest first: tests run them all.
#[cfg(test)]
pub fn supported() -> Vec<Level> {
    #[cfg(target_arch = "x86_64")]
    let all = [Level::Base, Level::Avx2, Level::Avx512];
    #[cfg(not(target_arch = "x86_64"))]
    let all = [Level::Base];
    all.into_iter().filter(|level| *level <= widest()).collect()
}

/// Orders streaming stores before everything that follows; nothing to do where there are none.
#[inline]
pub fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has SSE, and the instruction touches no memory.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Asks for the line at `address`; any address will do.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has SSE, and a prefetch of a bad address does nothing.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
