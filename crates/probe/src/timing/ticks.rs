//! Counters that are read in a tight loop: the monotonic clock, and the time-stamp counter where it is a
//! clock.
use nephoscope_linux::clock::monotonic_ns;

/// A monotonic counter that can be read in a tight loop.
pub trait Ticks {
    fn now() -> u64;

    /// The counter and `CLOCK_MONOTONIC` at one moment: the tightest of 16 attempts, so that an
    /// interruption between the two readings does not count.
    fn pair() -> TickReading {
        let attempt = |_| {
            let before = Self::now();
            let monotonic_ns = monotonic_ns();
            let width = Self::now().saturating_sub(before);
            (width, TickReading { ticks: before + width / 2, monotonic_ns })
        };
        (0..16).map(attempt).min_by_key(|(width, _)| *width).expect("there are 16").1
    }
}

/// `CLOCK_MONOTONIC`, one tick a nanosecond.
pub struct Monotonic;

impl Ticks for Monotonic {
    #[inline(always)]
    fn now() -> u64 {
        monotonic_ns()
    }
}

#[cfg(target_arch = "x86_64")]
pub struct Tsc;

#[cfg(target_arch = "x86_64")]
impl Ticks for Tsc {
    #[inline(always)]
    fn now() -> u64 {
        // SAFETY: every x86-64 CPU has the instruction; Linux leaves it open to programs.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
}

/// A counter and `CLOCK_MONOTONIC` at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct TickReading {
    pub ticks: u64,
    pub monotonic_ns: u64,
}

impl TickReading {
    /// Length of a tick, from two moments.
    pub fn ns_per_tick(&self, earlier: &Self) -> f64 {
        let ns = self.monotonic_ns.saturating_sub(earlier.monotonic_ns) as f64;
        ns / self.ticks.saturating_sub(earlier.ticks).max(1) as f64
    }
}

/// Why the time-stamp counter is no clock on this machine; `Ok` where it is one: it runs at a
/// constant rate in every power state, and the kernel itself tells the time by it.
#[cfg(target_arch = "x86_64")]
pub fn tsc_usable() -> Result<(), String> {
    let power = raw_cpuid::CpuId::new().get_advanced_power_mgmt_info();
    let invariant = power.is_some_and(|info| info.has_invariant_tsc());
    if !invariant && !flags_say_constant() {
        return Err("the CPU does not promise a constant rate (invariant TSC)".to_owned());
    }
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(path)
        .map_err(|error| format!("the kernel's clock source cannot be read ({error})"))?;
    match source.trim() {
        "tsc" | "kvm-clock" => Ok(()),
        unsteady => Err(format!("the kernel tells the time by '{unsteady}'")),
    }
}

/// Hypervisors may hide the leaf that says so, while the kernel was told by other means.
#[cfg(target_arch = "x86_64")]
fn flags_say_constant() -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let has = |flag| flags.split_whitespace().any(|word| word == flag);
    has("constant_tsc") && has("nonstop_tsc")
}

/// Only x86-64 has one.
#[cfg(not(target_arch = "x86_64"))]
pub fn tsc_usable() -> Result<(), String> {
    Err("this CPU architecture has none".to_owned())
}
