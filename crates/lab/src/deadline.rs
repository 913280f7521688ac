//! `SCHED_DEADLINE` of one thread, and the mark of a group whose threads are kept under it.
use crate::error::outcome;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const SCHED_DEADLINE: u32 = 6;
const RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` of the kernel, version 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

impl Attributes {
    /// A reservation of `slice_ns` in each `period_ns`; threads that it makes begin without.
    pub fn reserved(slice_ns: u64, period_ns: u64) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            policy: SCHED_DEADLINE,
            flags: RESET_ON_FORK,
            runtime_ns: slice_ns,
            deadline_ns: period_ns,
            period_ns,
            ..Self::default()
        }
    }

    /// No reservation: what every thread begins with.
    pub fn ordinary() -> Self {
        Self { size: size_of::<Self>() as u32, ..Self::default() }
    }

    /// Gives them to a thread, 0 for the own one.
    pub fn set(&self, thread: i32) -> io::Result<()> {
        // SAFETY: hands the kernel a struct of the size that it names.
        outcome(unsafe {
            libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(self), 0)
        })
    }

    /// Those of a thread, 0 for the own one; none when it has ended.
    pub fn of(thread: i32) -> Option<Self> {
        let mut found = Self::default();
        // SAFETY: the kernel writes at most the size that is named.
        let rc = unsafe {
            let size = size_of::<Self>();
            libc::syscall(libc::SYS_sched_getattr, thread, std::ptr::from_mut(&mut found), size, 0)
        };
        (rc == 0).then_some(found)
    }

    /// Whether it is a reservation, of this slice.
    pub fn is_slice_of(&self, other: &Self) -> bool {
        self.policy == SCHED_DEADLINE && self.runtime_ns == other.runtime_ns
    }

    /// CPUs that it takes: 0.75 is three quarters of one.
    pub fn cpus(&self) -> f64 {
        if self.policy != SCHED_DEADLINE || self.period_ns == 0 {
            return 0.0;
        }
        self.runtime_ns as f64 / self.period_ns as f64
    }
}

/// Whether this thread is under a reservation now.
pub fn is_reserved() -> bool {
    Attributes::of(0).is_some_and(|found| found.policy == SCHED_DEADLINE)
}

/// Mark of a supervised group: a process that enters it waits for its reservation. The mark of a
/// supervisor that was killed stays, so that nothing runs there without its reservation.
const MARK: &CStr = c"trusted.nephoscope.reserved";

/// Returns whether a group has a supervisor, or had one until that was killed.
pub fn is_marked(folder: &Path) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: C strings that live through the call; no value is asked for.
    unsafe { libc::getxattr(path.as_ptr(), MARK.as_ptr(), std::ptr::null_mut(), 0) >= 0 }
}

/// Marks a group or removes its mark; false if the kernel does not support it.
pub fn mark(folder: &Path, is_supervised: bool) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: C strings that live through the calls; the value is one byte.
    unsafe {
        if is_supervised {
            libc::setxattr(path.as_ptr(), MARK.as_ptr(), c"1".as_ptr().cast(), 1, 0) == 0
        } else {
            libc::removexattr(path.as_ptr(), MARK.as_ptr()) == 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_struct_is_the_kernels() {
        assert_eq!(size_of::<Attributes>(), 48);
        let own = Attributes::of(0).expect("every thread has attributes");
        assert_eq!(own.cpus(), 0.0);
        assert_eq!(Attributes::reserved(30, 40).cpus(), 0.75);
    }

    #[test]
    fn a_folder_without_a_mark_is_not_marked() {
        assert!(!is_marked(Path::new("/proc")) && !is_marked(Path::new("/nowhere")));
    }
}
