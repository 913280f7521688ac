//! Joining namespaces, and the /sys that belongs to a network namespace.
use crate::call::{require, CallError};
use crate::mounts::{self, Mount};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

type Result<T, E = CallError> = std::result::Result<T, E>;

/// Mounts of control groups at most: one for each controller, and some to spare.
const MAX_MOUNTS: usize = 256;
/// Where control groups are mounted as a rule.
const CGROUPS: &str = "/sys/fs/cgroup";

/// A namespace that was opened before anything was joined.
pub struct Namespace {
    file: File,
    kind: libc::c_int,
    /// What joining it is, for errors.
    action: String,
}

impl Namespace {
    /// Opens the namespace behind a path (`/run/netns/…` or `/proc/PID/ns/…`).
    pub fn open(path: &Path, kind: libc::c_int) -> Result<Self> {
        Self::open_as(path, kind, format!("Joining the namespace {}", path.display()))
    }

    fn open_as(path: &Path, kind: libc::c_int, action: String) -> Result<Self> {
        match File::open(path) {
            Ok(file) => Ok(Self { file, kind, action }),
            Err(error) => Err(CallError { action, error }),
        }
    }

    /// Returns whether this process lives in it already, as `/proc/self/ns/NAME` states.
    pub fn is_own(&self, name: &str) -> bool {
        let same = || -> io::Result<bool> {
            let own = std::fs::metadata(Path::new("/proc/self/ns").join(name))?;
            let joined = self.file.metadata()?;
            Ok(own.ino() == joined.ino() && own.dev() == joined.dev())
        };
        same().unwrap_or(false)
    }

    /// Whether joining it takes effect for children only.
    pub fn is_for_children(&self) -> bool {
        self.kind == libc::CLONE_NEWPID
    }

    pub fn join(&self) -> Result<()> {
        // SAFETY: a plain system call on a descriptor that lives as long as `self`.
        require(unsafe { libc::setns(self.file.as_raw_fd(), self.kind) }, &self.action)
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
    // in between makes the look-up fail, instead of joining those of another process.
    let action = format!("Joining the namespaces of process {pid}");
    let folder = File::open(format!("/proc/{pid}/ns"))
        .map_err(|error| CallError::new(action.as_str(), error))?;
    let mut namespaces = Vec::new();
    for (name, kind) in kinds {
        let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
        let namespace = Namespace::open_as(Path::new(&path), kind, format!("{action} ({name})"))?;
        if !namespace.is_own(name) {
            namespaces.push(namespace);
        }
    }
    Ok(namespaces)
}

/// Gives this process namespaces in which no control group is to be seen: none is mounted, and the
/// own ones are the roots of what `/proc/self/cgroup` names. What they limit stays in force.
pub fn without_cgroups() -> Result<()> {
    // SAFETY: a plain system call.
    let rc = unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWCGROUP) };
    require(rc, "Making a mount and a cgroup namespace")?;
    separate()?;
    // The folder that holds the hierarchies goes with all below it; others lie elsewhere.
    for _ in 0..MAX_MOUNTS {
        let mountinfo = own_mounts();
        let is_cgroup = |mount: &Mount| matches!(mount.kind, "cgroup" | "cgroup2");
        let Some(mount) = mounts::parse(&mountinfo).find(is_cgroup) else { return Ok(()) };
        let action = format!("Hiding {}", mount.point);
        let point = c_path(mount.point.as_bytes(), &action)?;
        // SAFETY: a C string that lives through the call.
        let rc = unsafe { libc::umount2(point.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) };
        require(rc, &action)?;
    }
    Err(CallError::new("Hiding the control groups", io::Error::other("too many are mounted")))
}

fn own_mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

fn c_path(path: &[u8], action: &str) -> Result<CString> {
    CString::new(path).map_err(|error| CallError::new(action, error.into()))
}

/// Separates the mounts of this process from the machine's: what is unmounted outside must not stay
/// mounted in here, and nothing from here gets out.
fn separate() -> Result<()> {
    let action = "Separating the mounts of this process from the machine's";
    mount(c"", c"/", c"", libc::MS_SLAVE | libc::MS_REC, action)
}

/// Gives this process a mount namespace in which /sys shows its network namespace; what was mounted
/// below /sys (control groups) stays in its place.
pub fn own_sysfs() -> Result<()> {
    // SAFETY: a plain system call.
    require(unsafe { libc::unshare(libc::CLONE_NEWNS) }, "Making a mount namespace")?;
    separate()?;
    let groups_are_mounted = mounts::parse(&own_mounts()).any(|mount| mount.point == CGROUPS);
    let groups = File::open(CGROUPS).ok().filter(|_| groups_are_mounted);
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(c"sysfs", c"/sys", c"sysfs", flags, "Mounting /sys of the network namespace")?;
    let Some(folder) = groups else { return Ok(()) };
    let action = format!("Keeping {CGROUPS}");
    let source = c_path(format!("/proc/self/fd/{}", folder.as_raw_fd()).as_bytes(), &action)?;
    let target = c_path(CGROUPS.as_bytes(), &action)?;
    mount(&source, &target, c"", libc::MS_BIND | libc::MS_REC, &action)
}

fn mount(
    source: &CStr,
    target: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    action: &str,
) -> Result<()> {
    // SAFETY: C strings that live through the call; no data argument.
    let rc = unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null())
    };
    require(rc, action)
}

/// Makes a folder the root of this process, and its current folder.
pub fn change_root(folder: &Path) -> Result<()> {
    let action = format!("Making {} the root", folder.display());
    let path = c_path(folder.as_os_str().as_bytes(), &action)?;
    // SAFETY: a C string that lives through the call.
    require(unsafe { libc::chroot(path.as_ptr()) }, &action)?;
    // SAFETY: a constant string.
    require(unsafe { libc::chdir(c"/".as_ptr()) }, &action)
}
