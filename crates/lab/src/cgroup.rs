//! Joining a control group and listing its threads, on version 1 and 2 alike.
use crate::error::{failed, os_error, Result};
use std::fs;
use std::path::{Path, PathBuf};

pub fn join(folder: &Path) -> Result<()> {
    // "0" is the writer itself, whatever pid namespace it lives in.
    fs::write(folder.join("cgroup.procs"), "0").map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSPC) => failed(
            format!("The cpuset {} has no CPUs or no memory nodes yet.", folder.display()),
            "Write cpuset.cpus and cpuset.mems of it and of its parents first.",
        ),
        Some(libc::EBUSY) => failed(
            format!("The group {} holds groups itself and takes no process.", folder.display()),
            "Name a group without children that have controllers.",
        ),
        _ => os_error(&format!("Joining the control group {}", folder.display()), &error),
    })
}

/// The files that list the threads of a group and of the groups below it.
pub fn thread_files(folder: &Path) -> Vec<PathBuf> {
    // Version 1, version 2.
    let own = ["tasks", "cgroup.threads"].map(|name| folder.join(name));
    let mut files: Vec<_> = own.into_iter().filter(|file| file.is_file()).take(1).collect();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files.extend(thread_files(&entry.path()));
        }
    }
    files
}

/// The threads that those files list; groups that are gone list none.
pub fn threads(files: &[PathBuf]) -> Vec<i32> {
    let text = |file: &PathBuf| fs::read_to_string(file).unwrap_or_default();
    let numbers = |text: String| text.lines().filter_map(|n| n.parse().ok()).collect::<Vec<i32>>();
    files.iter().map(text).flat_map(numbers).collect()
}
