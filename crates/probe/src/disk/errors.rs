//! System errors of files as sentences: what was refused, where, and what to do next.
use crate::error::{FailureKind, ProbeError, Result};
use std::io::Error;
use std::path::Path;

/// `what` ("Creating a file") failed at `place`; known causes get their own stable name.
pub fn named(what: &str, place: &Path, error: &Error) -> ProbeError {
    let place = place.display();
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            disk_full(format!("{what} in {place}: no space left."))
        }
        Some(libc::EFBIG) => {
            disk_full(format!("{what} in {place}: a limit on file size forbids it."))
        }
        Some(libc::EROFS) => ProbeError::new(
            FailureKind::Lacks,
            "read_only_directory",
            format!("{what} in {place}: the file system is mounted read-only."),
            "Set `directory` to one that can be written.",
        ),
        Some(libc::EACCES | libc::EPERM) => ProbeError::new(
            FailureKind::Lacks,
            "no_permission",
            format!("{what} in {place}: this user may not write there."),
            "Set `directory` to one that this user owns.",
        ),
        Some(libc::ENOENT | libc::ENOTDIR) => ProbeError::usage(
            format!("{what} in {place}: there is no such directory."),
            "Set `directory` to an existing one.",
        ),
        Some(libc::EIO) => ProbeError::new(
            FailureKind::Failed,
            "disk_error",
            format!("{what} in {place}: the device reported an I/O error."),
            "Look at the kernel's log (dmesg) and at the disk's health.",
        ),
        _ => ProbeError::os(&format!("{what} in {place}"), error),
    }
}

/// The file does not fit, or no longer fits.
pub fn disk_full(message: String) -> ProbeError {
    let hint = "Free space, set fewer or smaller files, or set `directory` to another disk.";
    ProbeError::new(FailureKind::Lacks, "disk_full", message, hint)
}

/// Files live in memory, where a sync writes nothing.
pub fn no_disk(place: &Path) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_disk",
        format!("{}: files live in memory (tmpfs), a sync writes nothing.", place.display()),
        "Set `directory` to a disk's file system.",
    )
}

/// Refuses a record that direct I/O cannot move.
pub fn check_sectors(id: &str, record_bytes: usize) -> Result<()> {
    if record_bytes.is_multiple_of(512) {
        return Ok(());
    }
    Err(ProbeError::usage(
        format!("{id}: record_bytes {record_bytes} is no multiple of 512, a sector."),
        "Set `record_bytes` to whole sectors, or `direct` to false.",
    ))
}

/// The file system takes no direct I/O, or not with such records.
pub fn no_direct_io(place: &Path, reason: &str) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_direct_io",
        format!("Direct I/O in {}: {reason}.", place.display()),
        "Set `directory` to a disk's file system, or `direct` to false to measure the cache.",
    )
}

/// A transfer that ended before its length, away from the end of the file.
pub fn short_transfer(place: &Path, done: usize, wanted: usize) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "short_transfer",
        format!("A record in {} moved {done} of {wanted} bytes.", place.display()),
        "Run it again; if it happens again, look at the kernel's log (dmesg).",
    )
}
