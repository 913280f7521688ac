//! Cancellation that always ends the program, without a helper thread: a thread cannot be created
//! under `SCHED_DEADLINE`, and would take time from the loop that is measured.
//!
//! SIGTERM, SIGINT, SIGHUP and the deadline set a flag that every instrument looks at; one second
//! later a timer ends the process with `_exit`, whatever it is doing.
use crate::args::Limits;
use crate::control;
use crate::error::{Kind, ProbeError};
use std::sync::atomic::{AtomicI32, Ordering};

/// Time an instrument has to leave in order after it was told to.
const GRACE_S: i64 = 1;

const RUNNING: i32 = 0;
/// Why the program is to end: `RUNNING`, or the exit code it will have.
static ENDING: AtomicI32 = AtomicI32::new(RUNNING);

/// Whether the instrument has to stop now.
#[inline]
pub fn requested() -> bool {
    ENDING.load(Ordering::Relaxed) != RUNNING
}

/// `Err` when the trial was cancelled or its deadline passed; called wherever a loop comes round.
pub fn check() -> Result<(), ProbeError> {
    match ENDING.load(Ordering::Relaxed) {
        RUNNING => Ok(()),
        124 => Err(ProbeError::new(
            Kind::Deadline,
            "deadline",
            "The deadline passed before the benchmark was done.",
            "Give it more time, or smaller parameters.",
        )),
        _ => Err(ProbeError::new(
            Kind::Cancelled,
            "cancelled",
            "The benchmark was cancelled.",
            "Run it again; nothing was left behind.",
        )),
    }
}

/// Installs the handlers and arms the deadline.
pub fn install(limits: &Limits) -> Result<(), ProbeError> {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGALRM, libc::SIGIO] {
        // SAFETY: the handler only touches an atomic, setitimer and _exit, all async-signal-safe.
        let rc = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            // No SA_RESTART: a blocked read or poll must come back and see the flag.
            action.sa_flags = 0;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        os_result("sigaction", rc)?;
    }
    if limits.control {
        control::activate();
        watch_input();
    }
    if limits.with_parent {
        end_with_parent()?;
    }
    let deadline = limits.deadline;
    let seconds = i64::try_from(deadline.as_secs()).unwrap_or(i64::MAX);
    arm(seconds, i64::from(deadline.subsec_micros()).max(i64::from(seconds == 0)));
    Ok(())
}

fn end_with_parent() -> Result<(), ProbeError> {
    // SAFETY: plain system calls on our own process and descriptor 0.
    unsafe {
        os_result("prctl", libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM))?;
        // Standard input closing tells of a lost connection; a terminal or a file cannot do that,
        // and then the parent's death has to be enough.
        if !control::active() && libc::isatty(0) == 0 && is_pipe_or_socket() {
            watch_input();
        }
        if libc::getppid() == 1 && std::env::var_os("NEPHOSCOPE_PARENT_IS_INIT").is_none() {
            // The parent may have died before prctl; under an init that is the parent this is
            // normal, and the deadline still holds.
            eprintln!("nephoscope-probe: the parent is process 1; the deadline alone bounds this.");
        }
    }
    Ok(())
}

/// Asks for SIGIO when something happens on standard input.
fn watch_input() {
    // SAFETY: plain system calls on descriptor 0.
    unsafe {
        let flags = libc::fcntl(0, libc::F_GETFL);
        if flags >= 0 {
            libc::fcntl(0, libc::F_SETOWN, libc::getpid());
            libc::fcntl(0, libc::F_SETFL, flags | libc::O_ASYNC);
        }
    }
}

fn is_pipe_or_socket() -> bool {
    // SAFETY: `stat` is a plain struct filled in by the kernel.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(0, &raw mut stat) != 0 {
            return false;
        }
        matches!(stat.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFSOCK)
    }
}

/// What came on standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing that ends the trial.
    Nothing,
    /// The word to stop, to a trial that can only be cancelled.
    Stop,
    /// Its end.
    End,
}

/// Looks at standard input now, as the signal handler does when something comes.
pub fn hear() {
    on_signal(libc::SIGIO);
}

extern "C" fn on_signal(signal: libc::c_int) {
    if signal == libc::SIGIO {
        let ends = match control::active() {
            true => control::hear() != Heard::Nothing,
            false => stdin_is_closed(),
        };
        if !ends {
            return;
        }
    }
    let code = if signal == libc::SIGALRM { 124 } else { 130 };
    let first =
        ENDING.compare_exchange(RUNNING, code, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if first {
        arm(GRACE_S, 0);
    } else if signal == libc::SIGALRM {
        // SAFETY: _exit is async-signal-safe; files we made are unlinked while open, so the
        // kernel takes them back.
        unsafe { libc::_exit(ENDING.load(Ordering::Relaxed)) }
    }
}

fn stdin_is_closed() -> bool {
    let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd; poll and read are async-signal-safe.
    unsafe {
        if libc::poll(&raw mut poll, 1, 0) <= 0 {
            return false;
        }
        if poll.revents & libc::POLLIN != 0 {
            let mut byte = 0u8;
            return libc::read(0, (&raw mut byte).cast(), 1) == 0;
        }
        poll.revents & (libc::POLLHUP | libc::POLLERR) != 0
    }
}

fn arm(seconds: i64, micros: i64) {
    // Repeats every second, so that an alarm lost to a race is followed by another.
    let timer = libc::itimerval {
        it_interval: libc::timeval { tv_sec: GRACE_S, tv_usec: 0 },
        it_value: libc::timeval { tv_sec: seconds, tv_usec: micros },
    };
    // SAFETY: setitimer copies the struct and is async-signal-safe on Linux.
    unsafe {
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

fn os_result(what: &str, rc: libc::c_int) -> Result<(), ProbeError> {
    if rc == 0 {
        Ok(())
    } else {
        Err(ProbeError::os(what, &std::io::Error::last_os_error()))
    }
}
