//! Joining a control group and listing its threads, on version 1 and 2 alike.
use crate::error::{LabError, FAILED};
use std::fs;
use std::path::Path;

/// Moves this process into a group.
pub fn join(folder: &Path) -> Result<(), LabError> {
    // "0" is the writer itself, whatever pid namespace it lives in.
    fs::write(folder.join("cgroup.procs"), "0").map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSPC) => LabError::new(
            FAILED,
            format!("The cpuset {} has no CPUs or no memory nodes yet.", folder.display()),
            "Write cpuset.cpus and cpuset.mems of it and of its parents first.",
        ),
        Some(libc::EBUSY) => LabError::new(
            FAILED,
            format!("The group {} holds groups itself and takes no process.", folder.display()),
            "Name a group without children that have controllers.",
        ),
        _ => LabError::os(&format!("Joining the control group {}", folder.display()), &error),
    })
}
