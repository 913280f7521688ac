//! Processes that a program leaves running when it ends: this process adopts them instead of init,
//! also those that began a session of their own, and can end them.
use crate::call::outcome;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// A program that starts others faster than they are ended is given up after this time.
const LIMIT: Duration = Duration::from_secs(5);

/// From now on a process whose parent ends becomes a child of this one.
pub fn adopt() -> io::Result<()> {
    // SAFETY: a plain system call on our own process.
    outcome(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })
}

/// Takes note of adopted children that have ended, so that their numbers become free. No other thread
/// may wait for a child meanwhile.
pub fn reap() {
    // SAFETY: waits for children of ours, without blocking.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// Kills every child, and what it leaves in turn; returns how many. Nothing may be started meanwhile.
pub fn end_all() -> usize {
    let began = Instant::now();
    let mut ended = 0;
    loop {
        reap();
        let children = children();
        if children.is_empty() || began.elapsed() > LIMIT {
            return ended;
        }
        for child in &children {
            // SAFETY: the child was not waited for, so that its number is still its own.
            unsafe { libc::kill(*child, libc::SIGKILL) };
        }
        for child in &children {
            // SAFETY: as above. A signal may interrupt the wait; the next round looks again.
            ended +=
                usize::from(unsafe { libc::waitpid(*child, std::ptr::null_mut(), 0) } == *child);
        }
    }
}

/// The children of this process, of all its threads.
fn children() -> Vec<libc::pid_t> {
    let own = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid: &libc::pid_t| parent_of(*pid) == Some(own)).collect()
}

fn parent_of(pid: libc::pid_t) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in brackets and may hold blanks and brackets.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
