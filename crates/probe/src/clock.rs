//! The only file that reads a clock.
use nephoscope_wire::params::Params;

/// Nanoseconds of `CLOCK_MONOTONIC`; through the vDSO where the kernel has one.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CPU time that this thread has used.
#[inline]
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds of CPU time that this process has used, without the gap meter beside the trial.
#[inline]
pub fn process_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(crate::idle_cpu::cpu_ns())
}

/// Nanoseconds since the epoch; steps when somebody sets the clock.
#[inline]
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

/// Returns the parameter `seed`, or one from the clock if it is 0.
pub fn seed(params: &Params) -> u64 {
    match params.u64("seed") {
        0 => realtime_ns(),
        seed => seed,
    }
}

/// Sleeps so long, or until a signal arrives. Allocates nothing.
pub fn nap(ns: u64) {
    let time = timespec(ns);
    // SAFETY: reads a plain struct that lives through the call.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// Those nanoseconds as the kernel takes them.
#[inline]
pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Nanoseconds of a time that the kernel gives in microseconds.
pub fn of_timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000
}

/// What the kernel accounted to this thread, to this process or to its children; `None` where it does
/// not tell.
pub fn usage(of: libc::c_int) -> Option<libc::rusage> {
    // SAFETY: fills a plain struct.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(of, &raw mut usage) == 0).then_some(usage)
    }
}

/// Nanoseconds of a clock of the kernel, or of one thread's CPU time (`pthread_getcpuclockid`).
#[inline]
pub fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a plain struct; the clocks named here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// A monotonic counter that can be read in a tight loop.
pub trait Ticks {
    fn now() -> u64;

    /// The counter and `CLOCK_MONOTONIC` at one moment: the tightest of 16 attempts, so that an
    /// interruption between the two readings does not count.
    fn pair() -> Pair {
        let attempt = |_| {
            let before = Self::now();
            let monotonic_ns = monotonic_ns();
            let width = Self::now().saturating_sub(before);
            (width, Pair { ticks: before + width / 2, monotonic_ns })
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
pub struct Pair {
    pub ticks: u64,
    pub monotonic_ns: u64,
}

impl Pair {
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
        other => Err(format!("the kernel tells the time by '{other}'")),
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
