//! The processes and threads of a control group, on version 1 and 2 alike.
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Moves the calling process into a group.
pub fn join(folder: &Path) -> io::Result<()> {
    // "0" is the writer itself, whatever pid namespace it lives in.
    fs::write(folder.join("cgroup.procs"), "0")
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
