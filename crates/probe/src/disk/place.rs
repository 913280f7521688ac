//! Where a scratch file goes, and what kind of place that is.
use super::errors;
use crate::error::{ProbeError, Result};
use nephoscope_linux::files::statvfs;
use std::ffi::CString;
use std::io::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directory that `directory` names; empty means `$TMPDIR`, else `/var/tmp`, else the current
/// one. `/tmp` is left out on purpose: it often lies in memory.
pub fn directory(name: &str) -> PathBuf {
    let chosen = if name.is_empty() { default() } else { PathBuf::from(name) };
    // A program that runs in a folder of its own is told where another one lies.
    std::path::absolute(&chosen).unwrap_or(chosen)
}

fn default() -> PathBuf {
    let from_environment = std::env::var_os("TMPDIR").filter(|value| !value.is_empty());
    let candidates = [from_environment.map(PathBuf::from), Some(PathBuf::from("/var/tmp"))];
    let folder = candidates.into_iter().flatten().find(|path| path.is_dir());
    folder.unwrap_or_else(|| PathBuf::from("."))
}

/// Whether files in `directory` live in memory and never reach a disk (tmpfs, ramfs). Since 6.6
/// Linux accepts direct I/O on tmpfs, so that the flag alone says nothing.
pub fn in_memory(directory: &Path) -> Result<bool> {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    Ok(matches!(kind(directory)?, TMPFS | RAMFS))
}

/// Whether `directory` lies on an overlay, as the root of a container does. Such a file system takes
/// the wish to send a part of a file to the disk (`sync_file_range`) and does nothing.
pub fn on_overlay(directory: &Path) -> Result<bool> {
    const OVERLAY: i64 = 0x794c_7630;
    Ok(kind(directory)? == OVERLAY)
}

/// The file system's number, as statfs(2) has it.
fn kind(directory: &Path) -> Result<i64> {
    let path = c_path(directory)?;
    // SAFETY: a valid C string, and a plain struct that the kernel fills.
    unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        if libc::statfs(path.as_ptr(), &raw mut stat) != 0 {
            let error = Error::last_os_error();
            return Err(errors::named("Looking at the file system", directory, &error));
        }
        // The field's type differs between architectures and C libraries.
        #[allow(clippy::unnecessary_cast)]
        let kind = stat.f_type as i64;
        Ok(kind)
    }
}

/// Refuses a file of `bytes` that would not leave 10 % of its size free in `directory`.
pub fn check_space(directory: &Path, bytes: u64) -> Result<()> {
    let stat = file_system(directory)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= bytes.saturating_add(bytes / 10) {
        return Ok(());
    }
    let place = directory.display();
    Err(errors::disk_full(format!(
        "A file of {bytes} bytes and a tenth more does not fit in {place}: {free} bytes are free."
    )))
}

/// The sizes of the file system that holds `directory`.
pub fn file_system(directory: &Path) -> Result<libc::statvfs> {
    let stat = statvfs(&c_path(directory)?);
    stat.map_err(|error| errors::named("Looking at the free space", directory, &error))
}

/// The path for a system call; a NUL byte cannot be part of one.
fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| {
        ProbeError::usage("`directory` has a NUL byte in it.", "Set it to an existing directory.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_free_space_is_refused_by_name() {
        let error = check_space(&std::env::temp_dir(), u64::MAX / 2).unwrap_err();
        assert_eq!((error.name, error.kind.exit_code()), ("disk_full", 4));
        assert!(!error.hint.contains("file_bytes"), "not every benchmark has this parameter");
        assert!(check_space(&std::env::temp_dir(), 1).is_ok());
    }

    #[test]
    fn a_missing_directory_is_the_callers_mistake() {
        let error = in_memory(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.kind.exit_code(), 2);
    }

    #[test]
    fn the_given_directory_wins() {
        assert_eq!(directory("/given"), Path::new("/given"));
        assert!(directory("").is_dir());
    }
}
