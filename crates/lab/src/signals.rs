//! Signals as values: blocked, then taken one by one or through a descriptor.
use crate::error::{require, Result};
use std::os::fd::{FromRawFd, OwnedFd};

pub fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: fills a plain set with valid signal numbers.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

/// Blocks the signals of a set in this thread and returns the mask before.
pub fn block(set: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: plain sets.
    unsafe {
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, set, &raw mut before);
        before
    }
}

pub fn restore(mask: &libc::sigset_t) {
    // SAFETY: a plain set.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

/// Waits for the next signal of a blocked set.
pub fn wait(set: &libc::sigset_t) -> i32 {
    loop {
        // SAFETY: a plain set, no details wanted.
        let signal = unsafe { libc::sigwaitinfo(set, std::ptr::null_mut()) };
        if signal > 0 {
            return signal;
        }
    }
}

/// Waits for a signal of a blocked set, at most this long; whether one came.
pub fn wait_for(set: &libc::sigset_t, most_ns: i64) -> bool {
    let time = libc::timespec { tv_sec: 0, tv_nsec: most_ns as _ };
    // SAFETY: a plain set and a plain time, no details wanted.
    unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &raw const time) > 0 }
}

/// Has the kernel kill this process when its parent ends; `parent` is who that was before.
pub fn die_with_parent(parent: i32) -> Result<()> {
    // SAFETY: plain system calls on our own process.
    unsafe {
        let rc = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        require(rc, "Tying this process to its parent")?;
        // The parent may have ended before the call above.
        if libc::getppid() != parent {
            libc::raise(libc::SIGKILL);
        }
    }
    Ok(())
}

/// A descriptor that is readable when one of the blocked signals has come.
pub fn descriptor(set: &libc::sigset_t) -> Result<OwnedFd> {
    // SAFETY: a plain set; the descriptor returned is ours alone.
    unsafe {
        let fd = libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        require(fd, "Making a descriptor for signals")?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}
