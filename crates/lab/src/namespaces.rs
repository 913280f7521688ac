//! Joining namespaces, and the /sys that belongs to a network namespace.
use crate::error::{outcome, LabError, FAILED};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Mounts of control groups at most: one for each controller, and some to spare.
const MOST_MOUNTS: usize = 256;

/// A namespace that was opened before anything was joined.
pub struct Namespace {
    file: File,
    kind: libc::c_int,
    what: String,
}

impl Namespace {
    /// Opens the namespace behind a path (`/run/netns/…` or `/proc/PID/ns/…`).
    pub fn open(path: &Path, kind: libc::c_int) -> Result<Self, LabError> {
        let what = format!("Joining the namespace {}", path.display());
        let file = File::open(path).map_err(|error| LabError::os(&what, &error))?;
        Ok(Self { file, kind, what })
    }

    /// Whether this process lives in it already; `/proc/self/ns/NAME` tells.
    pub fn is_own(&self, name: &str) -> bool {
        let same = || -> io::Result<bool> {
            let own = std::fs::metadata(Path::new("/proc/self/ns").join(name))?;
            let other = self.file.metadata()?;
            Ok(own.ino() == other.ino() && own.dev() == other.dev())
        };
        same().unwrap_or(false)
    }

    /// Whether joining it takes effect for children only.
    pub fn is_for_children(&self) -> bool {
        self.kind == libc::CLONE_NEWPID
    }

    pub fn join(&self) -> Result<(), LabError> {
        // SAFETY: a plain system call on a descriptor that lives as long as `self`.
        if unsafe { libc::setns(self.file.as_raw_fd(), self.kind) } != 0 {
            return Err(LabError::last(&self.what));
        }
        Ok(())
    }
}

/// Every namespace of a process that is not ours already, in the order to join them; the mount
/// namespace comes last, since paths mean something else from then on.
pub fn of_process(pid: i32) -> Result<Vec<Namespace>, LabError> {
    let kinds = [
        ("uts", libc::CLONE_NEWUTS),
        ("ipc", libc::CLONE_NEWIPC),
        ("net", libc::CLONE_NEWNET),
        ("cgroup", libc::CLONE_NEWCGROUP),
        ("pid", libc::CLONE_NEWPID),
        ("mnt", libc::CLONE_NEWNS),
    ];
    // All names are looked up under one open folder: a pid that is given away to another process
    // in between makes the look-up fail, instead of joining a stranger.
    let what = format!("Joining the namespaces of process {pid}");
    let folder =
        File::open(format!("/proc/{pid}/ns")).map_err(|error| LabError::os(&what, &error))?;
    let mut found = Vec::new();
    for (name, kind) in kinds {
        let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
        let namespace = Namespace::open(Path::new(&path), kind).map_err(|mut error| {
            error.message = error.message.replace(&path, &format!("{name} of process {pid}"));
            error
        })?;
        if !namespace.is_own(name) {
            found.push(Namespace { what: format!("{what} ({name})"), ..namespace });
        }
    }
    Ok(found)
}

/// Gives this process namespaces in which no control group is to be seen: none is mounted, and the
/// own ones are the roots of what `/proc/self/cgroup` names. What they limit stays in force.
pub fn without_cgroups() -> Result<(), LabError> {
    // SAFETY: a plain system call.
    if unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWCGROUP) } != 0 {
        return Err(LabError::last("Making a mount and a cgroup namespace"));
    }
    separate()?;
    // The folder that holds the hierarchies goes with all below it; others lie elsewhere.
    for _ in 0..MOST_MOUNTS {
        let text = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let Some(path) = cgroup_mounts(&text).into_iter().next() else { return Ok(()) };
        let what = format!("Hiding {path}");
        let path = CString::new(path).map_err(|_| LabError::usage("A mount has no path."))?;
        // SAFETY: a C string that lives through the call.
        if unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) } != 0 {
            return Err(LabError::last(&what));
        }
    }
    Err(LabError::new(FAILED, "The control groups cannot be hidden: too many are mounted.", ""))
}

/// Where control groups are mounted; the kernel writes a space in a path as `\040`.
fn cgroup_mounts(text: &str) -> Vec<String> {
    let place = |line: &str| {
        let mut words = line.split(' ');
        let (path, kind) = (words.nth(1)?, words.next()?);
        matches!(kind, "cgroup" | "cgroup2").then(|| path.replace("\\040", " "))
    };
    text.lines().filter_map(place).collect()
}

/// What is unmounted outside must not stay mounted in here, and nothing from here gets out.
fn separate() -> Result<(), LabError> {
    mount(c"", c"/", c"", libc::MS_SLAVE | libc::MS_REC).map_err(|error| {
        LabError::os("Separating the mounts of this process from the machine's", &error)
    })
}

/// Gives this process a mount namespace in which /sys shows its network namespace; what was mounted
/// below /sys (control groups) stays in its place.
pub fn own_sysfs() -> Result<(), LabError> {
    let below = mounts_below_sys();
    // SAFETY: a plain system call.
    unsafe {
        if libc::unshare(libc::CLONE_NEWNS) != 0 {
            return Err(LabError::last("Making a mount namespace"));
        }
    }
    separate()?;
    let keep = c"/sys/fs/cgroup";
    let kept =
        below.iter().any(|path| path == "/sys/fs/cgroup").then(|| File::open("/sys/fs/cgroup"));
    let source = match &kept {
        Some(Ok(folder)) => Some(CString::new(format!("/proc/self/fd/{}", folder.as_raw_fd()))),
        _ => None,
    };
    mount(c"sysfs", c"/sys", c"sysfs", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
        .map_err(|error| LabError::os("Mounting /sys of the network namespace", &error))?;
    if let Some(Ok(source)) = source {
        mount(&source, keep, c"", libc::MS_BIND | libc::MS_REC)
            .map_err(|error| LabError::os("Keeping /sys/fs/cgroup", &error))?;
    }
    Ok(())
}

fn mounts_below_sys() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let second = |line: &str| line.split(' ').nth(1).map(str::to_owned);
    text.lines().filter_map(second).filter(|path| path.starts_with("/sys/")).collect()
}

fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: C strings that live through the call; no data argument.
    outcome(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null())
    })
}

pub fn change_root(folder: &Path) -> Result<(), LabError> {
    let what = format!("Making {} the root", folder.display());
    let path = CString::new(folder.as_os_str().as_bytes())
        .map_err(|_| LabError::usage(format!("{} is no path.", folder.display())))?;
    // SAFETY: a C string that lives through both calls.
    let rc = unsafe {
        if libc::chroot(path.as_ptr()) == 0 {
            libc::chdir(c"/".as_ptr())
        } else {
            -1
        }
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(LabError::last(&what))
    }
}

#[cfg(test)]
mod tests {
    use super::cgroup_mounts;

    #[test]
    fn control_groups_are_found_wherever_they_are_mounted() {
        let text = "tmpfs /sys/fs/cgroup tmpfs ro 0 0\n\
                    cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                    cgroup /mnt/my\\040groups cgroup rw,cpu 0 0\n\
                    proc /proc proc rw 0 0\n";
        assert_eq!(cgroup_mounts(text), ["/sys/fs/cgroup/unified", "/mnt/my groups"]);
    }
}
