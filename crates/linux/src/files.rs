//! Small files of `/proc`, `/sys` and `/etc`, read below a root that tests replace. Nothing here
//! fails the caller: what cannot be read comes back as a reason in words.
use std::ffi::CStr;
use std::fs::File;
use std::io::{Error, Read};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A nameless file on no disk, which a program that is started does not inherit.
pub fn in_memory(name: &CStr) -> Result<File, Error> {
    // SAFETY: a name that ends in zero; the call returns a new descriptor or -1.
    match unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) } {
        -1 => Err(Error::last_os_error()),
        // SAFETY: nobody else has the new descriptor.
        fd => Ok(unsafe { File::from_raw_fd(fd) }),
    }
}

/// Returns the sizes of the file system that holds a path.
pub fn statvfs(path: &CStr) -> Result<libc::statvfs, Error> {
    // SAFETY: a valid C string, and a plain struct that the kernel fills.
    unsafe {
        let mut stat: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(path.as_ptr(), &raw mut stat) {
            0 => Ok(stat),
            _ => Err(Error::last_os_error()),
        }
    }
}

/// A fact, or why it is missing.
pub type Fact<T> = Result<T, String>;

/// Longest file that is read. `/proc/cpuinfo` of 512 CPUs has under 1 MiB.
const MAX_BYTES: u64 = 8 << 20;

#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// The machine that this program runs on.
    pub fn machine() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// A captured machine below another folder.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    pub fn text(&self, path: impl AsRef<Path>) -> Fact<String> {
        let mut bytes = Vec::new();
        File::open(self.at(&path))
            .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes))
            .map_err(|error| reason(path.as_ref(), &error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The text of a file without the white space around it; an empty one counts as missing.
    pub fn line(&self, path: impl AsRef<Path>) -> Fact<String> {
        let text = self.text(&path)?;
        match text.trim_matches(|c: char| c.is_whitespace() || c == '\0') {
            "" => Err(format!("{} is empty", path.as_ref().display())),
            line => Ok(line.to_owned()),
        }
    }

    pub fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Fact<T> {
        let line = self.line(&path)?;
        line.parse().map_err(|_| format!("{} is no number: '{line}'", path.as_ref().display()))
    }

    /// Last part of what a symbolic link points to (`virtio_net` for a driver link).
    pub fn link_name(&self, path: impl AsRef<Path>) -> Fact<String> {
        let target =
            std::fs::read_link(self.at(&path)).map_err(|error| reason(path.as_ref(), &error))?;
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned());
        name.ok_or_else(|| format!("{} points nowhere", path.as_ref().display()))
    }

    /// Names in a folder, sorted.
    pub fn names(&self, folder: impl AsRef<Path>) -> Fact<Vec<String>> {
        let entries =
            std::fs::read_dir(self.at(&folder)).map_err(|error| reason(folder.as_ref(), &error))?;
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Whether something of that name is there and can be looked at.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).exists()
    }
}

fn reason(path: &Path, error: &std::io::Error) -> String {
    let path = path.display();
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("{path} does not exist"),
        std::io::ErrorKind::PermissionDenied => format!("{path} may not be read by this user"),
        _ => format!("{path} cannot be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::captured::Captured;

    #[test]
    fn what_cannot_be_read_has_a_reason() {
        let captured = Captured::new(&[("/proc/empty", "\n"), ("/proc/word", "fast\n")]);
        let files = captured.files();
        assert_eq!(files.line("/proc/none").unwrap_err(), "/proc/none does not exist");
        assert_eq!(files.line("/proc/empty").unwrap_err(), "/proc/empty is empty");
        assert_eq!(
            files.number::<u64>("/proc/word").unwrap_err(),
            "/proc/word is no number: 'fast'"
        );
        assert_eq!(files.names("/proc").unwrap(), ["empty", "word"]);
    }

    #[test]
    fn a_link_gives_its_last_part() {
        let captured = Captured::new(&[]);
        captured.link("/sys/class/net/eth0/device/driver", "../../bus/virtio/drivers/virtio_net");
        let name = captured.files().link_name("/sys/class/net/eth0/device/driver");
        assert_eq!(name.unwrap(), "virtio_net");
    }
}
