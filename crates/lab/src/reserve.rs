//! `reserve`: keeps every thread of a control group under `SCHED_DEADLINE`.
//!
//! The kernel gives a reservation to a thread, not to a group, and a new thread does not inherit
//! it (`RESET_ON_FORK`; without that flag it could not be made at all). So the group is checked
//! every two milliseconds, and new threads get their reservation. Each thread has its own: two threads
//! that spin get two slices. What the kernel's admission control refuses is reported.
//! Source: sched_setattr(2), sched(7), `scheduler/sched-deadline.rst`.
use crate::deadline;
use crate::error::{missing, os_error, usage, Result};
use crate::output::report;
use nephoscope_linux::cgroup::tasks;
use nephoscope_linux::scheduling::{self, Attributes};
use nephoscope_linux::{affinity, signals};
use nephoscope_wire::error::Error;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;

const CHECK_INTERVAL_NS: i64 = 2_000_000;
/// Checks between two searches for child groups, and between two verifications of all threads.
const CHECKS_PER_WALK: u64 = 25;

/// A group and its reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupReservation {
    pub cgroup: PathBuf,
    /// CPU time in each period.
    pub slice_ns: u64,
    pub period_ns: u64,
}

/// Supervises the group until SIGTERM.
pub fn run(config: &GroupReservation) -> Result<i32> {
    check(config)?;
    let watched = signals::set_of(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP]);
    signals::block(&watched);
    admit(config)?;
    let priority = scheduling::raise_priority(true);
    let mut supervisor = Supervisor::new(config)?;
    supervisor.check();
    let marked = deadline::mark(&config.cgroup, true);
    report(&json!({ "ready": {
        "pid": std::process::id(), "threads": supervisor.threads.len(), "priority": priority,
        "marked": marked,
    }}));
    while !signals::wait_for(&watched, CHECK_INTERVAL_NS) {
        supervisor.check();
        if !supervisor.config.cgroup.is_dir() {
            break;
        }
    }
    deadline::mark(&config.cgroup, false);
    supervisor.release();
    report(&json!({ "kept": {
        "threads": supervisor.threads_seen, "refused": supervisor.refused, "unpinned": supervisor.unpinned,
    }}));
    Ok(0)
}

fn check(config: &GroupReservation) -> Result<()> {
    // The kernel counts slices in 1024 ns, and a slice of 100 ns could not be kept by any timer.
    if config.slice_ns < 1024 || config.slice_ns > config.period_ns {
        return Err(usage(format!(
            "A slice of {} ns in a period of {} ns is no reservation.",
            config.slice_ns, config.period_ns
        )));
    }
    if !config.cgroup.join("cgroup.procs").is_file() {
        return Err(usage(format!("{} is no control group.", config.cgroup.display())));
    }
    Ok(())
}

/// Asks the kernel for one such reservation, and gives it back.
fn admit(config: &GroupReservation) -> Result<()> {
    let reserved = Attributes::reserved(config.slice_ns, config.period_ns).set(0);
    let _ = Attributes::ordinary().set(0);
    reserved.map_err(|error| refusal(config, &error))
}

/// Why the kernel refused, in one sentence.
fn refusal(config: &GroupReservation, error: &io::Error) -> Error {
    let requested_cpus = Attributes::reserved(config.slice_ns, config.period_ns).cpus();
    match error.raw_os_error() {
        Some(libc::EBUSY) => {
            let (sum, most) = (reserved_cpus(), admitted_cpus());
            missing(
                format!(
                    "The kernel admits no reservation of {requested_cpus:.3} CPUs more: reservations of \
                     {sum:.3} CPUs are held, of at most {most:.3}."
                ),
                "Give smaller slices, or run fewer threads under a reservation.",
            )
        }
        Some(libc::EINVAL) => missing(
            format!(
                "The kernel takes no reservation of {} ns in {} ns.",
                config.slice_ns, config.period_ns
            ),
            "Choose a period between /proc/sys/kernel/sched_deadline_period_min_us and _max_us.",
        ),
        Some(libc::ENOSYS | libc::EOPNOTSUPP) => missing(
            "This kernel has no SCHED_DEADLINE.",
            "Boot a kernel of 3.14 or newer that has it.",
        ),
        _ => os_error("Reserving CPU time", error),
    }
}

/// CPUs that all threads of the machine hold now.
fn reserved_cpus() -> f64 {
    let threads = |process: fs::DirEntry| fs::read_dir(process.path().join("task")).ok();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(threads)
        .flatten()
        .flatten()
        .filter_map(number)
        .filter_map(Attributes::of)
        .map(|attributes| attributes.cpus())
        .sum()
}

/// CPUs that the kernel gives to reservations at most.
fn admitted_cpus() -> f64 {
    let number = |name| -> Option<f64> {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim().parse().ok().filter(|number| *number > 0.0)
    };
    let cpus = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
    let part = number("sched_rt_runtime_us").zip(number("sched_rt_period_us"));
    cpus * part.map_or(1.0, |(runtime, period)| runtime / period)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReservationState {
    Reserved,
    Refused,
}

#[derive(Default)]
struct Supervisor {
    config: GroupReservation,
    attributes: Attributes,
    files: Vec<PathBuf>,
    threads: HashMap<i32, ReservationState>,
    checks: u64,
    threads_seen: u64,
    refused: u64,
    unpinned: u64,
}

impl Supervisor {
    fn new(config: &GroupReservation) -> Result<Self> {
        let attributes = Attributes::reserved(config.slice_ns, config.period_ns);
        let files = tasks::thread_files(&config.cgroup);
        if files.is_empty() {
            return Err(usage(format!("{} lists no threads.", config.cgroup.display())));
        }
        Ok(Self { config: config.clone(), attributes, files, ..Self::default() })
    }

    /// Gives new threads of the group their reservation.
    fn check(&mut self) {
        self.checks += 1;
        let thorough = self.checks.is_multiple_of(CHECKS_PER_WALK);
        if thorough {
            self.files = tasks::thread_files(&self.config.cgroup);
        }
        let threads = tasks::threads(&self.files);
        self.threads.retain(|thread, _| threads.contains(thread));
        for thread in threads {
            match self.threads.get(&thread) {
                // Somebody may have set another policy, or the number is another thread's by now.
                Some(ReservationState::Reserved) if !thorough || self.is_reserved(thread) => {}
                known => {
                    let before = known.copied();
                    self.reserve(thread, before);
                }
            }
        }
    }

    fn is_reserved(&self, thread: i32) -> bool {
        Attributes::of(thread).is_some_and(|attributes| attributes.is_slice_of(&self.attributes))
    }

    fn reserve(&mut self, thread: i32, before: Option<ReservationState>) {
        if before.is_none() {
            self.threads_seen += 1;
        }
        match self.set(thread) {
            Ok(()) => {
                self.threads.insert(thread, ReservationState::Reserved);
            }
            // It ended in between.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => {
                self.threads.insert(thread, ReservationState::Refused);
                // Told once for each thread, and tried again at every look.
                if before != Some(ReservationState::Refused) {
                    self.refused += 1;
                    report(&self.refusal_line(thread, &error));
                }
            }
        }
    }

    /// A thread that is pinned is not admitted: it is let onto all CPUs of its group first.
    fn set(&mut self, thread: i32) -> io::Result<()> {
        let first = self.attributes.set(thread);
        match &first {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
            _ => return first,
        }
        if affinity::allow_all(thread).is_ok() {
            self.attributes.set(thread)?;
            self.unpinned += 1;
            return Ok(());
        }
        first
    }

    fn refusal_line(&self, thread: i32, error: &io::Error) -> Value {
        let Error { message, hint, .. } = match error.raw_os_error() {
            Some(libc::EPERM) => missing(
                "The kernel takes no reservation for a thread: its cpuset leaves it a part of the \
                 CPUs, and is not exclusive.",
                "Leave `cpus` out beside `reservation`.",
            ),
            _ => refusal(&self.config, error),
        };
        let name = fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
        json!({ "refused": {
            "thread": thread, "name": name.trim(), "message": message, "hint": hint,
        }})
    }

    fn release(&self) {
        for (thread, state) in &self.threads {
            if *state == ReservationState::Reserved && self.is_reserved(*thread) {
                let _ = Attributes::ordinary().set(*thread);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_wire::error::FailureKind;

    #[test]
    fn wrong_times_and_folders_are_reported() {
        let cgroup = PathBuf::from("/nowhere");
        for (slice_ns, period_ns, wanted_text) in
            [(100, 1000, "is no reservation"), (3000, 2000, "is no"), (2000, 3000, "no control")]
        {
            let error = check(&GroupReservation { cgroup: cgroup.clone(), slice_ns, period_ns })
                .unwrap_err();
            assert!(
                error.message.contains(wanted_text) && error.kind == FailureKind::Usage,
                "{error}"
            );
        }
    }

    #[test]
    fn a_refusal_says_the_sums() {
        let config =
            GroupReservation { slice_ns: 30_000, period_ns: 40_000, cgroup: PathBuf::new() };
        let refused = refusal(&config, &io::Error::from_raw_os_error(libc::EBUSY));
        assert!(refused.message.starts_with("The kernel admits no reservation of 0.750 CPUs more"));
        assert_eq!(refused.kind, FailureKind::Lacks);
    }
}
