//! A scratch file without a name: it vanishes with the process, however that ends.
use super::{errors, place};
use crate::error::{ProbeError, Result};
use crate::memory::buffer::{Buffer, Pages};
use crate::trial::session::Session;
use nephoscope_wire::random::Random;
use std::fs::{File, OpenOptions};
use std::io::Error;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of one write while the file is filled; a size at which disks write at full speed.
const FILL_BYTES: usize = 4 << 20;

/// An open file that has no name any more.
#[derive(Debug)]
pub struct Scratch {
    pub session: Session,
    pub file: File,
    /// Where it lies, for sentences.
    pub directory: PathBuf,
}

impl Scratch {
    /// Opens a new file in `directory`, readable by this user only. `flags` come on top (`O_DSYNC`).
    pub fn open(session: Session, directory: &Path, flags: libc::c_int) -> Result<Self> {
        // A write beyond the limit on file size is to give an error, not to end the process.
        // SAFETY: ignoring a signal touches no memory of ours.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let file = match options(flags | libc::O_TMPFILE).open(directory) {
            Err(error) if no_tmpfile(&error) => open_and_unlink(directory, flags)?,
            file => file.map_err(|error| errors::named("Creating a file", directory, &error))?,
        };
        Ok(Self { session, file, directory: directory.to_owned() })
    }

    /// The same file, opened once more. `alone`: nothing is read ahead of what is asked for.
    pub fn again(&self, alone: bool) -> Result<Self> {
        let fd = self.file.as_raw_fd();
        // SAFETY: reads the flags of our own descriptor.
        let direct = unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_DIRECT;
        let file = options(direct).open(format!("/proc/self/fd/{fd}"));
        let file = file.map_err(|error| self.named("Opening the file", &error))?;
        let again = Self { session: self.session, file, directory: self.directory.clone() };
        if alone {
            again.advise(0, 0, libc::POSIX_FADV_RANDOM);
        }
        Ok(again)
    }

    /// Whether a file that was made direct really stayed out of the page cache. Some file systems
    /// take the flag and cache all the same (ext4 with `data=journal`); then most of it is there.
    pub fn check_bypassed(&self) -> Result<()> {
        if self.cached_ratio().is_some_and(|ratio| ratio > 0.5) {
            let reason = "its file system accepted the request and cached the file all the same";
            return Err(errors::no_direct_io(&self.directory, reason));
        }
        Ok(())
    }

    /// Switches the page cache off for this file.
    pub fn make_direct(&self) -> Result<()> {
        if place::in_memory(&self.directory)? {
            let reason = "files there live in memory (tmpfs) and never reach a disk";
            return Err(errors::no_direct_io(&self.directory, reason));
        }
        let fd = self.file.as_raw_fd();
        // SAFETY: plain flag changes on our own descriptor.
        let rc = unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_DIRECT)
        };
        if rc == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINVAL) => {
                let reason = "its file system does not support it";
                Err(errors::no_direct_io(&self.directory, reason))
            }
            _ => Err(self.named("Switching the page cache off", &error)),
        }
    }

    /// Writes `bytes` (rounded up to whole pages) of incompressible data and waits until they and
    /// their extents are on the disk, so that reads afterwards find data and not holes.
    pub fn fill(&self, bytes: u64, seed: u64) -> Result<()> {
        let bytes = bytes.next_multiple_of(4096);
        self.reserve(bytes)?;
        let chunk = usize::try_from(bytes).unwrap_or(FILL_BYTES).min(FILL_BYTES);
        let mut buffer = Buffer::map(chunk, Pages::Default)?;
        let mut random = Random::new(seed);
        let mut at = 0;
        while at < bytes {
            self.session.check()?;
            let length = chunk.min(usize::try_from(bytes - at).unwrap_or(chunk));
            let data = &mut buffer.as_mut_slice()[..length];
            random.fill(data);
            at += self.write_some(data, at)? as u64;
        }
        self.sync()
    }

    /// Reserves the space in one piece where the file system can; those that cannot allocate as
    /// they write.
    fn reserve(&self, bytes: u64) -> Result<()> {
        let length = i64::try_from(bytes).unwrap_or(i64::MAX);
        // SAFETY: our own descriptor.
        if unsafe { libc::fallocate(self.file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINTR) => Ok(()),
            _ => Err(self.named("Reserving space", &error)),
        }
    }

    fn write_some(&self, data: &[u8], at: u64) -> Result<usize> {
        use std::os::unix::fs::FileExt;
        match self.file.write_at(data, at) {
            // Direct writes go on at block boundaries only; a rest below one is written again.
            Ok(done) if done >= data.len() => Ok(done),
            Ok(done) if done >= 4096 => Ok(done / 4096 * 4096),
            Ok(done) => Err(errors::short_transfer(&self.directory, done, data.len())),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                self.session.check().map(|()| 0)
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Err(errors::no_direct_io(&self.directory, "a write was refused as misaligned"))
            }
            Err(error) => Err(self.named("Writing the file", &error)),
        }
    }

    /// `fsync`, through interruptions.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(|error| self.named("Syncing the file", &error))
    }

    /// Asks the kernel to forget the cached pages of this file.
    pub fn drop_cache(&self) {
        self.advise(0, 0, libc::POSIX_FADV_DONTNEED);
    }

    /// Advises the kernel about a part of the file, up to its end for a length of 0. A file system that
    /// does not take the advice only stays warm longer.
    pub fn advise(&self, start: i64, length: i64, advice: libc::c_int) {
        // SAFETY: our own descriptor.
        unsafe { libc::posix_fadvise(self.file.as_raw_fd(), start, length, advice) };
    }

    /// Share of the file's head (at most 64 MiB) that the page cache holds, 0 to 1; `None` where the
    /// file system does not let it be looked at.
    pub fn cached_ratio(&self) -> Option<f64> {
        let bytes = usize::try_from(self.file.metadata().ok()?.len()).ok()?.min(64 << 20);
        let mut pages = vec![0u8; bytes.div_ceil(4096)];
        // SAFETY: a fresh read-only mapping that nobody reads through; `pages` has a byte for each
        // page (fewer where pages are larger than 4 KiB); unmapped at once.
        let known = unsafe {
            let fd = self.file.as_raw_fd();
            let null = std::ptr::null_mut();
            let map = libc::mmap(null, bytes, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
            if map == libc::MAP_FAILED {
                return None;
            }
            let rc = libc::mincore(map, bytes, pages.as_mut_ptr());
            libc::munmap(map, bytes);
            rc == 0
        };
        let page_bytes = usize::try_from(
            // SAFETY: reads a constant of the system.
            unsafe { libc::sysconf(libc::_SC_PAGESIZE) },
        )
        .unwrap_or(4096);
        let looked_at = bytes.div_ceil(page_bytes);
        let cached = pages[..looked_at].iter().filter(|page| **page & 1 == 1).count();
        (known && looked_at > 0).then(|| cached as f64 / looked_at as f64)
    }

    /// A system error on this file as a sentence.
    pub fn named(&self, what: &str, error: &Error) -> ProbeError {
        errors::named(what, &self.directory, error)
    }
}

/// Whether the kernel or the file system does not know `O_TMPFILE` (old kernels open the directory
/// itself for writing then, and say EISDIR).
fn no_tmpfile(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL))
}

/// A name that nobody can guess, given up again at once.
fn open_and_unlink(directory: &Path, flags: libc::c_int) -> Result<File> {
    let noise = crate::net::random_bytes()?;
    let name = format!(".nephoscope-{:016x}", u64::from_le_bytes(noise));
    let path = directory.join(name);
    let failed = |what: &'static str| move |error: Error| errors::named(what, directory, &error);
    let file = options(flags).create_new(true).open(&path).map_err(failed("Creating a file"))?;
    std::fs::remove_file(&path).map_err(failed("Unlinking a file"))?;
    Ok(file)
}

/// Opens files to read and write them, readable by this user only; flags: further ones of open(2).
fn options(flags: libc::c_int) -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600).custom_flags(flags);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    fn folder(name: &str) -> PathBuf {
        let path =
            place::directory("").join(format!("nephoscope-test-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn the_file_has_no_name_and_holds_data_everywhere() {
        let folder = folder("fill");
        let scratch = Scratch::open(Session::detached(), &folder, 0).unwrap();
        scratch.fill((5 << 20) + 1, 3).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        let meta = scratch.file.metadata().unwrap();
        assert_eq!(meta.len(), (5 << 20) + 4096);
        assert!(meta.blocks() * 512 >= meta.len(), "the file has holes");
        let mut page = [0u8; 4096];
        for at in (0..meta.len()).step_by(1 << 20) {
            scratch.file.read_exact_at(&mut page, at).unwrap();
            assert!(page.iter().filter(|byte| **byte == 0).count() < 64, "zeros at {at}");
        }
        std::fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn the_cache_holds_what_was_not_written_directly() {
        let folder = folder("cached");
        let scratch = Scratch::open(Session::detached(), &folder, 0).unwrap();
        scratch.fill(4 << 20, 3).unwrap();
        // The kernel may take some pages back at any time.
        assert!(scratch.cached_ratio().unwrap() > 0.9);
        let scratch = Scratch::open(Session::detached(), &folder, 0).unwrap();
        scratch.make_direct().unwrap();
        scratch.fill(4 << 20, 3).unwrap();
        assert!(scratch.cached_ratio().unwrap() < 0.1);
        std::fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn the_fallback_leaves_no_name_either() {
        let folder = folder("unlink");
        let file = open_and_unlink(&folder, libc::O_RDWR | libc::O_CLOEXEC).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        assert_eq!(file.metadata().unwrap().nlink(), 0);
        std::fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn direct_io_in_memory_is_refused() {
        // Every Linux with POSIX shared memory has a tmpfs here.
        let shm = Path::new("/dev/shm");
        assert!(place::in_memory(shm).unwrap(), "this test needs a tmpfs at /dev/shm");
        let error = Scratch::open(Session::detached(), shm, 0).unwrap().make_direct().unwrap_err();
        assert_eq!((error.name, error.kind.exit_code()), ("no_direct_io", 4));
    }
}
