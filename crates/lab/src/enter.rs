//! `enter`: executes a program inside a lab host. Control groups are joined first, so that nothing of the
//! program ever runs outside its limits; then namespaces; then the program replaces this process. Only a
//! pid namespace needs a child, because only children join it.
use crate::deadline;
use crate::error::{call_failed, failed, missing, os_error, require, usage, Result};
use nephoscope_linux::cgroup::tasks;
use nephoscope_linux::namespaces::{self, Namespace};
use nephoscope_linux::{scheduling, signals};
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Signals that are forwarded to the program if a process stands between it and the caller.
const FORWARDED: [i32; 9] = [
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGCONT,
    libc::SIGWINCH,
];

/// What to join, and the program to execute.
#[derive(Debug, Default)]
pub struct EnterConfig {
    pub netns: Option<PathBuf>,
    /// Whether /sys shows that network.
    pub sysfs: bool,
    /// Control groups, joined in this order.
    pub cgroups: Vec<PathBuf>,
    /// Process whose namespaces are joined.
    pub pid: Option<i32>,
    /// New root, after joining.
    pub root: Option<PathBuf>,
    /// Whether the program cannot see its control groups.
    pub hide_limits: bool,
    /// Whether the kernel kills the program when the caller ends.
    pub die_with_parent: bool,
    pub nice: Option<i32>,
    pub program: Vec<OsString>,
}

/// Joins and executes the program. Returns its exit code if a child was needed, else that of a failure.
pub fn run(config: &EnterConfig) -> Result<i32> {
    // SAFETY: reads a number.
    let parent = unsafe { libc::getppid() };
    let words = c_words(&config.program)?;
    let joined = open_namespaces(config)?;
    if config.die_with_parent {
        die_with_parent(parent)?;
    }
    if let Some(pids) = joined.iter().find(|namespace| namespace.is_for_children()) {
        pids.join().map_err(call_failed)?;
        return run_child(config, &joined, &words);
    }
    join_all(config, &joined).map(|()| execute(&words))
}

/// Joins everything but the pid namespace. The process that stands between caller and program has
/// none of it: it takes no memory, no CPU time and no reservation of the host.
fn join_all(config: &EnterConfig, joined: &[Namespace]) -> Result<()> {
    for folder in &config.cgroups {
        join_cgroup(folder)?;
    }
    if config.cgroups.iter().any(|folder| deadline::is_marked(folder)) {
        await_reservation()?;
    }
    if let Some(nice) = config.nice {
        scheduling::set_niceness(nice)
            .map_err(|error| os_error(&format!("Setting the niceness {nice}"), &error))?;
    }
    for namespace in joined.iter().filter(|namespace| !namespace.is_for_children()) {
        namespace.join().map_err(call_failed)?;
    }
    if config.hide_limits {
        namespaces::without_cgroups().map_err(call_failed)?;
    }
    if config.sysfs {
        namespaces::own_sysfs().map_err(call_failed)?;
    }
    match &config.root {
        Some(folder) => namespaces::change_root(folder).map_err(call_failed),
        None => Ok(()),
    }
}

fn die_with_parent(parent: i32) -> Result<()> {
    signals::die_with_parent(parent)
        .map_err(|error| os_error("Tying this process to its parent", &error))
}

fn join_cgroup(folder: &Path) -> Result<()> {
    tasks::join(folder).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSPC) => failed(
            format!("The cpuset {} has no CPUs or no memory nodes yet.", folder.display()),
            "Write cpuset.cpus and cpuset.mems of it and of its parents first.",
        ),
        Some(libc::EBUSY) => failed(
            format!("The group {} holds groups itself and takes no process.", folder.display()),
            "Name a group without children that have controllers.",
        ),
        _ => os_error(&format!("Joining the control group {}", folder.display()), &error),
    })
}

/// Opens everything that is to be joined, while paths still mean what the caller means.
fn open_namespaces(config: &EnterConfig) -> Result<Vec<Namespace>> {
    let mut joined = Vec::new();
    if let Some(path) = &config.netns {
        joined.push(Namespace::open(path, libc::CLONE_NEWNET).map_err(call_failed)?);
    }
    if let Some(pid) = config.pid {
        joined.extend(namespaces::of_process(pid).map_err(call_failed)?);
    }
    Ok(joined)
}

/// Waits until the supervisor of the group has seen this process: nothing of the program runs before.
fn await_reservation() -> Result<()> {
    for _ in 0..2000 {
        if scheduling::is_reserved() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(missing(
        "This process got no reservation within 2 s: its control group has no supervisor, or the \
         kernel admits no more.",
        "Run `nephoscope lab list`; take the lab down and up again.",
    ))
}

fn c_words(words: &[OsString]) -> Result<Vec<CString>> {
    let word = |word: &OsString| {
        CString::new(word.as_bytes())
            .map_err(|_| usage("An argument of the program holds a NUL byte."))
    };
    words.iter().map(word).collect()
}

/// Replaces this process. Reports a failure and returns its exit code.
fn execute(words: &[CString]) -> i32 {
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: C strings that live through the call, and the null pointer at their end. Rust ignores
    // SIGPIPE from the start; programs expect its default.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execvp(pointers[0], pointers.as_ptr());
    }
    let error = io::Error::last_os_error();
    let is_missing = error.raw_os_error() == Some(libc::ENOENT);
    let message = format!("{} cannot be executed there: {error}.", words[0].to_string_lossy());
    crate::output::report_failure(&failed(message, "Name a program that the lab host has."));
    if is_missing {
        127
    } else {
        126
    }
}

/// Runs the program as a child, passes signals on to it and ends as it ended.
fn run_child(config: &EnterConfig, joined: &[Namespace], words: &[CString]) -> Result<i32> {
    let watched = signals::set_of(&[&FORWARDED[..], &[libc::SIGCHLD]].concat());
    let before = signals::block(&watched);
    // SAFETY: this program has one thread, so the child may do whatever it likes.
    let child = unsafe { libc::fork() };
    require(child, "Starting a process in the pid namespace")?;
    if child == 0 {
        // The parent's number means nothing in the other pid namespace: getppid is 0 there.
        let ready = die_with_parent(0).and_then(|()| join_all(config, joined));
        signals::restore(&before);
        let code = match ready {
            Ok(()) => execute(words),
            Err(error) => crate::output::report_failure(&error),
        };
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(code) };
    }
    loop {
        let signal = signals::wait(&watched);
        if signal == libc::SIGCHLD {
            if let Some(status) = exit_status(child) {
                return end_as(status);
            }
        } else {
            // SAFETY: our own child, which has not been waited for.
            unsafe { libc::kill(child, signal) };
        }
    }
}

fn exit_status(child: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: our own child; the status is written to a plain number.
    (unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child).then_some(status)
}

fn end_as(status: i32) -> Result<i32> {
    if libc::WIFEXITED(status) {
        return Ok(libc::WEXITSTATUS(status));
    }
    let signal = libc::WTERMSIG(status);
    // SAFETY: resets a signal and sends it to ourselves; without a core file, the program has left
    // its own already.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let set = signals::set_of(&[signal]);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
    Err(failed(format!("The program was ended by signal {signal}."), ""))
}
