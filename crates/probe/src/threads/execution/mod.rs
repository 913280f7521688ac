//! Executes a program once and measures it: wall time from start to end, and what the kernel
//! accounted to it.
//!
//! The child shares the memory of the probe until it executes the program (`CLONE_VM`,
//! `CLONE_VFORK`), so that a start costs the same however large the probe is, and a failed start
//! leaves its error number in that memory. The kernel kills the program when the probe dies.
mod figures;
pub mod program;
mod streams;

pub use figures::Figure;
pub use program::{first_line, Program};
pub use streams::{StandardStreams, COLLECTED};

use crate::error::{ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_linux::clock;
use nephoscope_linux::signals::on_end_of_parent;
use nephoscope_linux::signals::without_signals;
use std::ffi::{c_char, c_int, c_void};
use std::io::Error;
use std::os::fd::RawFd;

/// The child needs little stack: it makes some system calls and executes the program.
const STACK_BYTES: usize = 64 << 10;

/// What one execution took.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    /// When it was started, on the monotonic clock.
    pub started_ns: u64,
    pub wall_ns: u64,
    pub user_ns: u64,
    pub system_ns: u64,
    /// Peak of the resident set; at least the probe's own at the start.
    pub max_rss_bytes: u64,
    pub ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Exit(i32),
    Signal(i32),
}

impl Ending {
    fn of(status: c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(libc::WTERMSIG(status))
        } else {
            Self::Exit(libc::WEXITSTATUS(status))
        }
    }

    /// The exit code, as a shell states it: 128 and the number of the signal.
    pub fn code(self) -> i32 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
        }
    }
}

/// Executes programs one after the other.
pub struct Executor {
    stack: Vec<u8>,
    /// What the last program wrote is read from them.
    pub streams: StandardStreams,
}

/// What the child needs, prepared before it exists: it shares the probe's memory and may neither
/// allocate nor take a lock.
struct ChildStart {
    path: *const c_char,
    argv: *const *const c_char,
    environment: *const *const c_char,
    files: [RawFd; 3],
    error: c_int,
}

impl Executor {
    pub fn new(streams: StandardStreams) -> Self {
        Self { stack: vec![0; STACK_BYTES], streams }
    }

    /// Executes the program to its end. A cancelled trial kills it, with all that it started.
    pub fn execute(&mut self, session: Session, program: &Program) -> Result<Execution> {
        session.check()?;
        let mut pipe = self.streams.prepare()?;
        let mut start = ChildStart {
            path: program.path(),
            argv: program.argv(),
            environment: program.environment(),
            files: self.streams.files(pipe.as_ref()),
            error: 0,
        };
        let started_ns = clock::monotonic_ns();
        let child = self.start(&mut start).map_err(|error| program.not_started(&error))?;
        let waited = pipe
            .as_mut()
            .map_or(Ok(()), |pipe| pipe.drain(session))
            .and_then(|()| wait(session, child));
        let wall_ns = clock::monotonic_ns() - started_ns;
        let (status, usage) = waited.inspect_err(|_| kill(child))?;
        Ok(Execution {
            started_ns,
            wall_ns,
            user_ns: clock::of_timeval_ns(usage.ru_utime),
            system_ns: clock::of_timeval_ns(usage.ru_stime),
            max_rss_bytes: usage.ru_maxrss.cast_unsigned() << 10,
            ending: Ending::of(status),
        })
    }

    fn start(&mut self, start: &mut ChildStart) -> Result<libc::pid_t, Error> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the stack grows down from its aligned end and is used by the child alone; the
        // parent goes on when the child has executed the program or ended, so that `start` outlives
        // it. No signal handler runs in the child, which would change the probe's flags: all are
        // blocked until it executes.
        let child = without_signals(|| unsafe {
            let end = self.stack.as_mut_ptr().add(STACK_BYTES - STACK_BYTES % 16);
            let end = end.sub(end as usize % 16);
            match libc::clone(become_program, end.cast(), flags, (&raw mut *start).cast()) {
                -1 => Err(Error::last_os_error()),
                child => Ok(child),
            }
        })?;
        if start.error != 0 {
            kill(child);
            return Err(Error::from_raw_os_error(start.error));
        }
        Ok(child)
    }
}

/// The child: its own group, its streams, and the program.
extern "C" fn become_program(start: *mut c_void) -> c_int {
    // SAFETY: the parent waits with `start` intact. Every call is a system call on the child's own
    // state; signal dispositions are not shared (no CLONE_SIGHAND).
    unsafe {
        let start = &mut *start.cast::<ChildStart>();
        let _ = on_end_of_parent(libc::SIGKILL);
        libc::setpgid(0, 0);
        for (descriptor, file) in (0..).zip(start.files) {
            libc::dup2(file, descriptor);
        }
        // Rust programs ignore it, and what is ignored stays ignored in the program.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::execve(start.path, start.argv, start.environment);
        start.error = Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        libc::_exit(127)
    }
}

fn wait(session: Session, child: libc::pid_t) -> Result<(c_int, libc::rusage)> {
    loop {
        // SAFETY: fills plain structs.
        let (rc, status, usage) = unsafe {
            let (mut status, mut usage) = (0, std::mem::zeroed());
            (libc::wait4(child, &raw mut status, 0, &raw mut usage), status, usage)
        };
        if rc == child {
            return Ok((status, usage));
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(ProbeError::os("Waiting for the program", &error));
        }
        session.check()?;
    }
}

/// Ends the child with its group, and waits for it.
fn kill(child: libc::pid_t) {
    // SAFETY: the child was not waited for, so that its number and its group are still ours.
    unsafe {
        libc::kill(-child, libc::SIGKILL);
        libc::kill(child, libc::SIGKILL);
        while libc::waitpid(child, std::ptr::null_mut(), 0) < 0
            && Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(argv: &[&str], streams: StandardStreams) -> (Execution, String) {
        let program = Program::find(argv, &[]).unwrap();
        let mut executor = Executor::new(streams);
        let execution = executor.execute(Session::detached(), &program).unwrap();
        (execution, executor.streams.last_error_line())
    }

    fn discarded_streams() -> StandardStreams {
        StandardStreams::open("", "null").unwrap()
    }

    #[test]
    fn exit_codes_and_signals_are_distinguished() {
        for (script, ending) in [
            ("exit 0", Ending::Exit(0)),
            ("exit 7", Ending::Exit(7)),
            ("kill -9 $$", Ending::Signal(9)),
            ("kill -PIPE $$", Ending::Signal(libc::SIGPIPE)),
        ] {
            let (execution, _) = executed(&["sh", "-c", script], discarded_streams());
            assert_eq!(execution.ending, ending, "{script}");
        }
    }

    #[test]
    fn the_last_line_of_standard_error_is_that_of_the_last_execution() {
        let program = Program::find(&["sh", "-c", "echo first >&2; echo last >&2"], &[]);
        let silent = Program::find(&["true"], &[]).unwrap();
        let mut executor = Executor::new(discarded_streams());
        executor.execute(Session::detached(), &program.unwrap()).unwrap();
        assert_eq!(executor.streams.last_error_line(), "last");
        executor.execute(Session::detached(), &silent).unwrap();
        assert_eq!(executor.streams.last_error_line(), "");
    }

    #[test]
    fn every_execution_reads_its_input_from_the_start_and_pipes_are_drained() {
        let path = std::env::temp_dir().join(format!("nephoscope-input-{}", std::process::id()));
        std::fs::write(&path, vec![b'x'; 300_000]).unwrap();
        let script = "test $(wc -c) = 300000 && head -c 300000 /dev/zero";
        let program = Program::find(&["sh", "-c", script], &[]).unwrap();
        let mut executor =
            Executor::new(StandardStreams::open(path.to_str().unwrap(), "pipe").unwrap());
        for _ in 0..2 {
            let execution = executor.execute(Session::detached(), &program).unwrap();
            assert_eq!(execution.ending, Ending::Exit(0));
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn variables_are_those_that_are_given() {
        let script = "test \"$COLOUR\" = 'dark red'";
        let program = Program::find(&["sh", "-c", script], &["COLOUR=dark red"]).unwrap();
        let mut executor = Executor::new(discarded_streams());
        let execution = executor.execute(Session::detached(), &program).unwrap();
        assert_eq!(execution.ending, Ending::Exit(0));
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        let missing = Program::find(&["no-such-program-here"], &[]).unwrap_err();
        assert_eq!((missing.name, missing.kind.exit_code()), ("no_program", 4));
        let folder = Program::find(&["/etc/passwd"], &[]).unwrap_err();
        assert_eq!((folder.name, folder.kind.exit_code()), ("not_executable", 4));
    }
}
