//! The clocks of the kernel, and the CPU time that it accounts.

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

/// Nanoseconds of CPU time that this process has used.
#[inline]
pub fn process_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds since the epoch; steps when somebody sets the clock.
#[inline]
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
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
