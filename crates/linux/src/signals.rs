//! Signals as values: blocked, then taken one by one or through a descriptor.
use crate::call::outcome;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Returns the set of these signals.
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
        libc::pthread_sigmask(libc::SIG_BLOCK, set, &raw mut before);
        before
    }
}

/// Sets the signal mask of this thread.
pub fn restore(mask: &libc::sigset_t) {
    // SAFETY: a plain set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
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

/// Waits for a signal of a blocked set, for at most `limit_ns`, below a second; returns whether one came.
pub fn wait_for(set: &libc::sigset_t, limit_ns: i64) -> bool {
    let time = libc::timespec { tv_sec: 0, tv_nsec: limit_ns as _ };
    // SAFETY: a plain set and a plain time, no details wanted.
    unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &raw const time) > 0 }
}

/// Lets the kernel send a signal to the calling process when its parent ends; async-signal-safe.
pub fn on_end_of_parent(signal: i32) -> io::Result<()> {
    // SAFETY: a plain system call on our own process.
    outcome(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) })
}

/// Lets the kernel kill the calling process when its parent ends; `parent` is its number as this process
/// sees it. The parent may have ended before: then this process ends at once.
pub fn die_with_parent(parent: i32) -> io::Result<()> {
    on_end_of_parent(libc::SIGKILL)?;
    // SAFETY: plain system calls on our own process.
    unsafe {
        if libc::getppid() != parent {
            libc::raise(libc::SIGKILL);
        }
    }
    Ok(())
}

/// Returns a descriptor that is readable when one of the blocked signals has come.
pub fn descriptor(set: &libc::sigset_t) -> io::Result<OwnedFd> {
    // SAFETY: a plain set; the descriptor returned is ours alone.
    unsafe {
        let fd = libc::signalfd(-1, set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        outcome(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Calls `work` with every signal blocked; a thread that it starts inherits that.
pub fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: fills a plain set.
    let all = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        all
    };
    let before = block(&all);
    let result = work();
    restore(&before);
    result
}
