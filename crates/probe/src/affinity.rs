//! Which CPUs this process may use, and pinning a thread to one.
use crate::error::ProbeError;
use std::sync::Mutex;

/// The CPUs that threads of this process were pinned to.
static PINNED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

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
        (0..libc::CPU_SETSIZE.cast_unsigned() as usize)
            .filter(|cpu| libc::CPU_ISSET(*cpu, &set))
            .collect()
    }
}

/// Pins the calling thread, which measures, to one CPU.
pub fn pin(cpu: usize) -> Result<(), ProbeError> {
    bind(cpu)?;
    let mut pinned = PINNED.lock().expect("no thread panics while it holds it");
    if !pinned.contains(&cpu) {
        pinned.push(cpu);
    }
    Ok(())
}

/// The CPUs that measuring threads were pinned to so far.
pub fn pinned() -> Vec<usize> {
    PINNED.lock().expect("no thread panics while it holds it").clone()
}

/// As [`pin`], for a thread that measures nothing.
pub fn bind(cpu: usize) -> Result<(), ProbeError> {
    // SAFETY: hands a plain bit set to the kernel.
    let rc = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if rc == 0 {
        return Ok(());
    }
    Err(ProbeError::os(&format!("Pinning to CPU {cpu}"), &std::io::Error::last_os_error()))
}

/// The CPUs that `threads` threads are pinned to: one CPU each while there are enough, then round
/// robin.
pub fn spread(threads: usize) -> Vec<usize> {
    let cpus = allowed();
    (0..threads).map(|thread| cpus[thread % cpus.len()]).collect()
}
