//! Signal handlers, and the only mutable state of a trial that is static: a handler gets nothing but
//! the number of its signal, so what it changes cannot be passed to it. Everything else looks at this
//! state through the [`Session`](crate::trial::session::Session) that it was given.
//!
//! SIGTERM, SIGINT, SIGHUP, the deadline and the end of standard input set a flag that every benchmark
//! looks at; one second later a timer ends the process with `_exit`, whatever it is doing. No helper
//! thread: a thread cannot be created under `SCHED_DEADLINE`, and would take time from the loop that
//! is measured.
use crate::error::{os_result, ProbeError, Result};
use nephoscope_linux::signals::on_end_of_parent;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicU8, Ordering};
use std::time::Duration;

/// Time that a benchmark has to leave in order after it was cancelled.
const GRACE_S: i64 = 1;
/// Value of [`Flags::ending`] while nothing ends the trial.
const RUNNING: i32 = 0;

#[derive(Debug)]
pub struct Flags {
    /// Exit code with which the program is to end; [`RUNNING`] while it is not.
    ending: AtomicI32,
    stopped: AtomicBool,
}

impl Flags {
    pub const fn new() -> Self {
        Self { ending: AtomicI32::new(RUNNING), stopped: AtomicBool::new(false) }
    }

    /// Returns the exit code with which the program is to end, if it is.
    #[inline]
    pub fn ending(&self) -> Option<i32> {
        Some(self.ending.load(Ordering::Relaxed)).filter(|code| *code != RUNNING)
    }

    #[inline]
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Flags of the one trial of this process.
pub static FLAGS: Flags = Flags::new();

/// How the handler of SIGIO reads standard input.
struct ControlInput {
    /// One of the constants below.
    role: AtomicU8,
    /// Whether `stop` lets the trial end in order instead of cancelling it.
    orderly_stop: AtomicBool,
    /// One handler reads at a time; another that comes meanwhile leaves a mark.
    reading: AtomicBool,
    again: AtomicBool,
    /// The first bytes of the line that is being read, and how many there were.
    word: AtomicU64,
    length: AtomicU64,
}

/// Only the end of the input counts; what comes is read and dropped.
const WATCH_FOR_END: u8 = 0;
/// The main thread reads control lines; the handler only notices that the other side is gone.
const READ_BY_TRIAL: u8 = 1;
/// The handler reads control lines.
const READ_BY_HANDLER: u8 = 2;

static INPUT: ControlInput = ControlInput {
    role: AtomicU8::new(WATCH_FOR_END),
    orderly_stop: AtomicBool::new(false),
    reading: AtomicBool::new(false),
    again: AtomicBool::new(false),
    word: AtomicU64::new(0),
    length: AtomicU64::new(0),
};

/// Installs the handlers and arms the deadline.
pub fn install(deadline: Duration, control: bool, with_parent: bool) -> Result<()> {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGALRM, libc::SIGIO] {
        // SAFETY: the handler only touches atomics, setitimer and _exit, all async-signal-safe.
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
    if control {
        INPUT.role.store(READ_BY_TRIAL, Ordering::SeqCst);
        watch_input();
    }
    if with_parent {
        end_with_parent(control)?;
    }
    let seconds = i64::try_from(deadline.as_secs()).unwrap_or(i64::MAX);
    arm(seconds, i64::from(deadline.subsec_micros()).max(i64::from(seconds == 0)));
    Ok(())
}

/// Returns the time until the deadline.
#[cfg(feature = "storage")]
pub fn time_left() -> Duration {
    // SAFETY: a plain struct that the kernel fills.
    let left = unsafe {
        let mut timer: libc::itimerval = std::mem::zeroed();
        libc::getitimer(libc::ITIMER_REAL, &raw mut timer);
        timer.it_value
    };
    Duration::from_secs(left.tv_sec.cast_unsigned())
}

/// Lets `stop` end the trial in order instead of cancelling it.
pub fn allow_orderly_stop() {
    INPUT.orderly_stop.store(true, Ordering::Relaxed);
}

/// Lets the handler read control lines from now on; what has come already is read at once.
pub fn read_control_lines() {
    INPUT.role.store(READ_BY_HANDLER, Ordering::SeqCst);
    on_signal(libc::SIGIO);
}

fn end_with_parent(control: bool) -> Result<()> {
    // SAFETY: plain system calls on our own process and descriptor 0.
    unsafe {
        on_end_of_parent(libc::SIGTERM).map_err(|error| ProbeError::os("prctl", &error))?;
        // Standard input closing tells of a lost connection; a terminal or a file cannot do that,
        // and then the parent's death has to be enough.
        if !control && libc::isatty(0) == 0 && is_pipe_or_socket() {
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

extern "C" fn on_signal(signal: libc::c_int) {
    // The handler's own calls must not change what the interrupted code is about to look at.
    // SAFETY: the address of this thread's errno is valid, and getting it is async-signal-safe.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        handle(signal);
        *errno = saved;
    }
}

fn handle(signal: libc::c_int) {
    if signal == libc::SIGIO && !input_ends_trial() {
        return;
    }
    let code = if signal == libc::SIGALRM { 124 } else { 130 };
    let ending = &FLAGS.ending;
    let first =
        ending.compare_exchange(RUNNING, code, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if first {
        arm(GRACE_S, 0);
    } else if signal == libc::SIGALRM {
        // SAFETY: _exit is async-signal-safe; files we made are unlinked while open, so the
        // kernel takes them back.
        unsafe { libc::_exit(ending.load(Ordering::Relaxed)) }
    }
}

/// Whether what came on standard input, or its end, ends the trial.
fn input_ends_trial() -> bool {
    match INPUT.role.load(Ordering::SeqCst) {
        WATCH_FOR_END => end_is_read(),
        READ_BY_TRIAL => {
            // Nothing may be taken from the input.
            poll_input(libc::POLLRDHUP, 0) & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0
        }
        _ => loop {
            INPUT.again.store(true, Ordering::SeqCst);
            if INPUT.reading.swap(true, Ordering::SeqCst) {
                return false;
            }
            INPUT.again.store(false, Ordering::SeqCst);
            let ends = lines_end_trial();
            INPUT.reading.store(false, Ordering::SeqCst);
            if ends || !INPUT.again.load(Ordering::SeqCst) {
                return ends;
            }
        },
    }
}

fn lines_end_trial() -> bool {
    let mut bytes = [0u8; 64];
    while input_is_readable(0) {
        // SAFETY: reads into our own array; read is async-signal-safe.
        let count = unsafe { libc::read(0, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            // After `stop` the other side may hang up: the trial ends in order all the same.
            Ok(0) => return !FLAGS.stopped(),
            Ok(count) => {
                // Both are looked at later: a cancellation must not hide behind a `stop`.
                if INPUT.holds_stop(&bytes[..count]) {
                    if !INPUT.orderly_stop.load(Ordering::Relaxed) {
                        return true;
                    }
                    FLAGS.stopped.store(true, Ordering::Relaxed);
                }
            }
            Err(_) => return false,
        }
    }
    false
}

impl ControlInput {
    /// Adds bytes to the current line; returns whether they ended a line `stop`.
    fn holds_stop(&self, bytes: &[u8]) -> bool {
        let (mut word, mut length) =
            (self.word.load(Ordering::Relaxed), self.length.load(Ordering::Relaxed));
        let mut stop = false;
        for byte in bytes {
            match byte {
                b'\n' => {
                    stop |= length == 4 && word == u64::from(u32::from_be_bytes(*b"stop"));
                    (word, length) = (0, 0);
                }
                b'\r' => {}
                _ => {
                    word = word << 8 | u64::from(*byte);
                    length += 1;
                }
            }
        }
        self.word.store(word, Ordering::Relaxed);
        self.length.store(length, Ordering::Relaxed);
        stop
    }
}

fn end_is_read() -> bool {
    let events = poll_input(libc::POLLIN, 0);
    if events & libc::POLLIN != 0 {
        let mut byte = 0u8;
        // SAFETY: reads one byte into our own; read is async-signal-safe.
        return unsafe { libc::read(0, (&raw mut byte).cast(), 1) == 0 };
    }
    events & (libc::POLLHUP | libc::POLLERR) != 0
}

/// Returns whether something is there to be read on standard input, or its end.
pub fn input_is_readable(timeout_ms: libc::c_int) -> bool {
    poll_input(libc::POLLIN, timeout_ms) != 0
}

fn poll_input(events: libc::c_short, timeout_ms: libc::c_int) -> libc::c_short {
    let mut poll = libc::pollfd { fd: 0, events, revents: 0 };
    // SAFETY: one valid pollfd; poll is async-signal-safe.
    match unsafe { libc::poll(&raw mut poll, 1, timeout_ms) } {
        1.. => poll.revents,
        _ => 0,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_that_says_stop_is_one() {
        for (bytes, stop) in [
            (&b"st"[..], false),
            (b"op\n", true),
            (b"stopp\n", false),
            (b"nonstop\n\n", false),
            (b"go 17\nsto", false),
            (b"p\r\n", true),
            (b"what\nstop\nmore\n", true),
        ] {
            assert_eq!(INPUT.holds_stop(bytes), stop, "{bytes:?}");
        }
    }
}
