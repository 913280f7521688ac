//! Joining namespaces, and the /sys that belongs to a network namespace.
use crate::error::{failed, os_error, outcome, require, usage, Result};
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
    pub fn open(path: &Path, kind: libc::c_int) -> Result<Self> {
        let what = format!("Joining the namespace {}", path.display());
        let file = File::open(path).map_err(|error| os_error(&what, &error))?;
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

    pub fn join(&self) -> Result<()> {
        // SAFETY: a plain system call on a descriptor that lives as long as `self`.
        require(unsafe { libc::setns(self.file.as_raw_fd(), self.kind) }, &self.what)
    }
}

/// Every namespace of a process that is not ours already, in the order to join them; the mount
/// namespace comes last, since paths mean something else from then on.
pub fn of_process(pid: i32) -> Result<Vec<Namespace>> {
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
    let folder = File::open(format!("/proc/{pid}/ns")).map_err(|error| os_error(&what, &error))?;
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
pub fn without_cgroups() -> Result<()> {
    // SAFETY: a plain system call.
    let rc = unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWCGROUP) };
    require(rc, "Making a mount and a cgroup namespace")?;
    separate()?;
    // The folder that holds the hierarchies goes with all below it; others lie elsewhere.
    for _ in 0..MOST_MOUNTS {
        let text = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let Some(path) = cgroup_mounts(&text).into_iter().next() else { return Ok(()) };
        let what = format!("Hiding {path}");
        let path = CString::new(path).map_err(|_| usage("A mount has no path."))?;
        // SAFETY: a C string that lives through the call.
        let rc = unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) };
        require(rc, &what)?;
    }
    Err(failed("The control groups cannot be hidden: too many are mounted.", ""))
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
fn separate() -> Result<()> {
    mount(c"", c"/", c"", libc::MS_SLAVE | libc::MS_REC).map_err(|error| {
        os_error("Separating the mounts of this process from the machine's", &error)
    })
}

/// Gives this process a mount namespace in which /sys shows its network namespace; what was mounted
/// below /sys (control groups) stays in its place.
pub fn own_sysfs() -> Result<()> {
    // SAFETY: a plain system call.
    require(unsafe { libc::unshare(libc::CLONE_NEWNS) }, "Making a mount namespace")?;
    separate()?;
    let groups = File::open("/sys/fs/cgroup").ok().filter(|_| is_mounted("/sys/fs/cgroup"));
    mount(c"sysfs", c"/sys", c"sysfs", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
        .map_err(|error| os_error("Mounting /sys of the network namespace", &error))?;
    let Some(folder) = groups else { return Ok(()) };
    let source = CString::new(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    mount(&source.expect("a path"), c"/sys/fs/cgroup", c"", libc::MS_BIND | libc::MS_REC)
        .map_err(|error| os_error("Keeping /sys/fs/cgroup", &error))
}

fn is_mounted(path: &str) -> bool {
    let text = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    text.lines().any(|line| line.split(' ').nth(1) == Some(path))
}

fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: C strings that live through the call; no data argument.
    outcome(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null())
    })
}

pub fn change_root(folder: &Path) -> Result<()> {
    let what = format!("Making {} the root", folder.display());
    let path = CString::new(folder.as_os_str().as_bytes())
        .map_err(|_| usage(format!("{} is no path.", folder.display())))?;
    // SAFETY: a C string that lives through the call.
    require(unsafe { libc::chroot(path.as_ptr()) }, &what)?;
    // SAFETY: a constant string.
    require(unsafe { libc::chdir(c"/".as_ptr()) }, &what)
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
