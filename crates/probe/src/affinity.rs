//! Which CPUs this process may use, pinning a thread to one, and leaving CPUs to everything else.
use crate::error::{os_result, ProbeError, Result};
use nephoscope_wire::params::Params;
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

/// Returns the CPUs that the parameter `cpus` names.
pub fn named(id: &str, params: &Params) -> Result<Vec<usize>> {
    let allowed = allowed();
    let cpus: Vec<usize> = params.ints("cpus").iter().map(|cpu| *cpu as usize).collect();
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        return Err(ProbeError::usage(
            format!("{id}: this process may not use CPU {cpu}."),
            format!("It may use {allowed:?}; `cpus` takes a list of these."),
        ));
    }
    Ok(cpus)
}

/// Pins the calling thread, which measures, to one CPU.
pub fn pin(cpu: usize) -> Result<()> {
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
pub fn bind(cpu: usize) -> Result<()> {
    // SAFETY: hands a plain bit set to the kernel.
    let rc = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    os_result(&format!("Pinning to CPU {cpu}"), rc)
}

/// The calling thread, and those that it starts, run only while nothing else wants the CPU.
pub fn only_when_idle() -> Result<()> {
    // SAFETY: hands a plain structure to the kernel; 0 is the only priority of this policy.
    let rc = unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        // Not libc's wrapper: musl's answers "not implemented".
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const parameters)
    };
    os_result("Running only on idle CPUs", rc as libc::c_int)
}

/// The CPUs that `threads` threads are pinned to: one CPU each while there are enough, then round
/// robin.
pub fn spread(threads: usize) -> Vec<usize> {
    let cpus = allowed();
    (0..threads).map(|thread| cpus[thread % cpus.len()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_for_idle_cpus_says_so_to_the_kernel() {
        let policy = std::thread::spawn(|| {
            only_when_idle().unwrap();
            // SAFETY: asks for the policy of the calling thread.
            unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
        });
        assert_eq!(policy.join().unwrap(), i64::from(libc::SCHED_IDLE));
    }
}
