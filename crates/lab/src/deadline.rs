//! Mark of a group whose threads are kept under a reservation.
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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
    fn a_folder_without_a_mark_is_not_marked() {
        assert!(!is_marked(Path::new("/proc")) && !is_marked(Path::new("/nowhere")));
    }
}
