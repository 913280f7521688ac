//! CPUs that a thread may run on.
use crate::call::outcome;
use std::io;

/// CPUs that the calling thread may run on, in ascending order.
pub fn allowed() -> Vec<usize> {
    // SAFETY: fills a plain bit set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            // More than 1024 CPUs, or a sandbox without the call: count them the plain way.
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            return (0..count).collect();
        }
        every_cpu().filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

/// Restricts a thread, 0 for the calling one, to these CPUs.
pub fn set(thread: i32, cpus: impl IntoIterator<Item = usize>) -> io::Result<()> {
    // SAFETY: hands a plain bit set to the kernel.
    outcome(unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.into_iter().for_each(|cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), &raw const set)
    })
}

/// Lets a thread, 0 for the calling one, onto all CPUs of its group: the kernel keeps only these.
pub fn allow_all(thread: i32) -> io::Result<()> {
    set(thread, every_cpu())
}

fn every_cpu() -> std::ops::Range<usize> {
    0..libc::CPU_SETSIZE.cast_unsigned() as usize
}
