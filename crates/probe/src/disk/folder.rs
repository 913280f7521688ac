//! A scratch folder with a name, for files that need one: removed at the end, and where that could
//! not be, by the next run. Its owner holds a lock on it, which goes away with the process.
use super::errors;
use crate::error::{FailureKind, ProbeError, Result};
use std::fs::File;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = ".nephoscope-folder-";

/// A folder of our own, locked.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    handle: File,
    removed: bool,
}

impl Folder {
    /// Makes a folder in `directory`, readable by this user only, after removing those that a killed
    /// run of the same user left there.
    pub fn make(directory: &Path) -> Result<Self> {
        sweep(directory);
        // A folder that another run's sweep takes between its making and its locking is made again.
        for _ in 0..16 {
            let noise = crate::net::random_bytes()?;
            let path = directory.join(format!("{PREFIX}{:016x}", u64::from_le_bytes(noise)));
            let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| errors::named("Creating a folder", directory, &error))?;
            if let Some(handle) = locked(&path) {
                return Ok(Self { path, handle, removed: false });
            }
        }
        Err(ProbeError::new(
            FailureKind::Failed,
            "no_folder",
            format!("A folder in {} vanished again and again.", directory.display()),
            "See what removes `.nephoscope-folder-…` there, or set `directory` to another one.",
        ))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Descriptor of the folder, for calls relative to it.
    pub fn fd(&self) -> libc::c_int {
        self.handle.as_raw_fd()
    }

    /// Writes everything of its file system to the disk.
    pub fn sync_all(&self) -> Result<()> {
        // SAFETY: our own descriptor.
        if unsafe { libc::syncfs(self.fd()) } == 0 {
            return Ok(());
        }
        Err(errors::named("Syncing the file system", &self.path, &Error::last_os_error()))
    }

    pub fn remove(mut self) -> Result<()> {
        self.removed = true;
        std::fs::remove_dir_all(&self.path)
            .map_err(|error| errors::named("Removing a folder", &self.path, &error))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.removed {
            // What stays is found by the next run.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// The folder at `path`, locked; `None` when it is gone or another process holds it.
fn locked(path: &Path) -> Option<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let handle = File::options().read(true).custom_flags(flags).open(path).ok()?;
    handle.try_lock().ok()?;
    // The lock may be on a folder that was removed, or replaced, in between.
    let (held, there) = (handle.metadata().ok()?, std::fs::symlink_metadata(path).ok()?);
    let same = (held.dev(), held.ino()) == (there.dev(), there.ino());
    // SAFETY: asks who this process is.
    let own = held.uid() == unsafe { libc::geteuid() };
    (same && own).then_some(handle)
}

/// Removes the folders in `directory` that nobody holds any more.
fn sweep(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let abandoned = entries.flatten().filter(|entry| {
        entry.file_name().to_str().is_some_and(|name| {
            let rest = name.strip_prefix(PREFIX);
            rest.is_some_and(|hex| hex.len() == 16 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
        })
    });
    for path in abandoned.map(|entry| entry.path()) {
        if let Some(handle) = locked(&path) {
            let _ = std::fs::remove_dir_all(&path);
            drop(handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::place;

    fn own_directory(name: &str) -> PathBuf {
        let path =
            place::directory("").join(format!("nephoscope-test-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn a_folder_goes_away_with_what_is_in_it() {
        let directory = own_directory("folder");
        let folder = Folder::make(&directory).unwrap();
        std::fs::create_dir(folder.path().join("d1")).unwrap();
        std::fs::write(folder.path().join("d1/f1"), b"x").unwrap();
        folder.remove().unwrap();
        drop(Folder::make(&directory).unwrap());
        std::fs::remove_dir(directory).unwrap();
    }

    #[test]
    fn what_nobody_holds_is_removed_and_nothing_else() {
        let directory = own_directory("sweep");
        let held = Folder::make(&directory).unwrap();
        let left = directory.join(format!("{PREFIX}{:016x}", 7));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("f"), b"x").unwrap();
        let foreign = directory.join(format!("{PREFIX}notes"));
        std::fs::create_dir(&foreign).unwrap();
        let link = directory.join(format!("{PREFIX}{:016x}", 8));
        std::os::unix::fs::symlink(&foreign, &link).unwrap();
        drop(Folder::make(&directory).unwrap());
        assert!(!left.exists());
        assert!(held.path().is_dir() && foreign.is_dir() && link.is_symlink());
        held.remove().unwrap();
        std::fs::remove_dir_all(directory).unwrap();
    }
}
