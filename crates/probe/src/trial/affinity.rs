//! Which CPUs this process may use, pinning a thread to one, and leaving CPUs to everything else.
use crate::error::{ProbeError, Result};
use nephoscope_linux::affinity::set;
use nephoscope_wire::params::Params;
use std::sync::Mutex;

pub use nephoscope_linux::affinity::allowed;

/// The CPUs that threads of this process were pinned to.
static PINNED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

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
    set(0, [cpu]).map_err(|error| ProbeError::os(&format!("Pinning to CPU {cpu}"), &error))
}

/// The CPUs that `threads` threads are pinned to: one CPU each while there are enough, then round
/// robin.
pub fn spread(threads: usize) -> Vec<usize> {
    let cpus = allowed();
    (0..threads).map(|thread| cpus[thread % cpus.len()]).collect()
}
