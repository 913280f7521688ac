//! A probe by the exit code of a program.
use super::datagrams::wait_readable;
use super::failure::{Deadline, ProbeFailure};
use crate::error::{FailureKind, ProbeError, Result};
use crate::threads::execution::program::Program;
use nephoscope_linux::signals::on_end_of_parent;
use std::collections::BTreeSet;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// Between looks at a program where the kernel has no descriptors of processes (before 5.3).
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Process groups of the scripts that run.
static GROUPS: Mutex<BTreeSet<libc::pid_t>> = Mutex::new(BTreeSet::new());
/// Held for reading from the start of a script until its group is known, and for writing, to the end of
/// the process, once all are killed: a script that started meanwhile would outlive its observer.
static STARTS: RwLock<()> = RwLock::new(());

pub struct Script {
    argv: Vec<String>,
}

impl Script {
    pub fn new(argv: Vec<String>) -> Result<Self> {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        Program::find(&words, &[])?;
        Ok(Self { argv })
    }

    pub fn run(&self, deadline: Deadline) -> Result<(), ProbeFailure> {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: one system call on the child's own state, async-signal-safe.
        unsafe { command.pre_exec(|| on_end_of_parent(libc::SIGKILL)) };
        let starting = STARTS.read().unwrap_or_else(PoisonError::into_inner);
        let mut child = command.spawn().map_err(|error| self.not_started(&error))?;
        let group = libc::pid_t::try_from(child.id()).unwrap_or(libc::pid_t::MAX);
        groups().insert(group);
        drop(starting);
        let in_time = wait(&mut child, deadline);
        if in_time.is_err() {
            kill(group);
        }
        let status = child.wait();
        groups().remove(&group);
        in_time?;
        let status = status.map_err(|error| self.not_started(&error))?;
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok(()),
            (Some(code), _) => Err(ProbeFailure::Answer(format!("exit code {code}"))),
            (None, signal) => {
                Err(ProbeFailure::Answer(format!("ended by signal {}", signal.unwrap_or_default())))
            }
        }
    }

    fn not_started(&self, error: &std::io::Error) -> ProbeFailure {
        ProbeFailure::Observer(ProbeError::new(
            FailureKind::Lacks,
            "not_started",
            format!("'{}' cannot be started: {error}.", self.argv[0]),
            "Check that this user may run it there.",
        ))
    }
}

/// Waits for the end of a program; after a failure it still runs.
fn wait(child: &mut Child, deadline: Deadline) -> Result<(), ProbeFailure> {
    // SAFETY: a plain system call that returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
    // SAFETY: nobody else has the new descriptor.
    let end = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) });
    while matches!(child.try_wait(), Ok(None)) {
        let left = deadline.left()?;
        let Some(end) = &end else {
            std::thread::sleep(left.min(CHECK_INTERVAL));
            continue;
        };
        // What fails is tried again until the time is over.
        let _ = wait_readable(end, left);
    }
    Ok(())
}

fn groups() -> MutexGuard<'static, BTreeSet<libc::pid_t>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill(group: libc::pid_t) {
    // SAFETY: a plain system call; the group is that of a child that was not reaped yet.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// Kills the scripts that still run, with what they started; none starts afterwards.
pub fn kill_all() {
    std::mem::forget(STARTS.write().unwrap_or_else(PoisonError::into_inner));
    groups().iter().copied().for_each(kill);
}
