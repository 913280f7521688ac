//! Loops in forked processes, several on a CPU: what each gets of it when they contend.
//!
//! The processes share one anonymous mapping: the barrier and the common start, and a place for
//! what each saw. A common window, with every loop contending when it opens, makes their shares of
//! a CPU comparable.
use super::record::Record;
use super::watch::Watch;
use super::{GapMeterSettings, LoopPlacement};
use crate::error::{FailureKind, ProbeError, Result};
use crate::timing::ticks::Ticks;
use crate::timing::timed;
use crate::timing::touch;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
use nephoscope_linux::signals::on_end_of_parent;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// From the last arrival to the start of the window: every process has been given the CPU by then.
const LEAD_NS: u64 = 20_000_000;
/// Within this time every process has its reservation: its keeper looks every few milliseconds.
const RESERVED_WITHIN_NS: u64 = 2_000_000_000;
/// Bytes of a record that do not depend on the number of events: three histograms as text.
const RECORD_BYTES: usize = 4 << 20;
/// Bytes of one event as text.
const EVENT_BYTES: usize = 96;

/// The head of the mapping.
struct MappingHead {
    arrived: AtomicUsize,
    start_ns: AtomicU64,
}

/// The mapping: the head in its first page, then one place per process.
struct SharedMapping {
    start: *mut u8,
    bytes: usize,
    place_bytes: usize,
}

impl SharedMapping {
    fn map(processes: usize, place_bytes: usize) -> Result<Self> {
        let bytes = 4096 + processes * place_bytes;
        // SAFETY: a fresh anonymous mapping, zero-filled, which is a valid `Head`. Pages that
        // nobody writes take no memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(ProbeError::os("mmap", &std::io::Error::last_os_error()));
        }
        Ok(Self { start: start.cast(), bytes, place_bytes })
    }

    fn head(&self) -> &MappingHead {
        // SAFETY: the first page holds the head for as long as the mapping lives.
        unsafe { &*self.start.cast::<MappingHead>() }
    }

    /// The place of one process: eight bytes of length, then JSON.
    fn place(&self, process: usize) -> *mut u8 {
        // SAFETY: `process` is below the number that the mapping was made for.
        unsafe { self.start.add(4096 + process * self.place_bytes) }
    }

    fn write(&self, process: usize, text: &[u8]) -> bool {
        if text.len() + 8 > self.place_bytes {
            return false;
        }
        let place = self.place(process);
        // SAFETY: the place is this process's alone and long enough.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), place.add(8), text.len());
            place.cast::<u64>().write(text.len() as u64);
        }
        true
    }

    fn read(&self, process: usize) -> &[u8] {
        let place = self.place(process);
        // SAFETY: the process that wrote it has ended.
        unsafe {
            let length = place.cast::<u64>().read() as usize;
            std::slice::from_raw_parts(place.add(8), length.min(self.place_bytes - 8))
        }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// The forked processes; those that still run are killed when this goes away.
struct Children(Vec<libc::pid_t>);

impl Drop for Children {
    fn drop(&mut self) {
        for pid in &self.0 {
            // SAFETY: our own children that were not waited for yet, so the ids are theirs.
            unsafe {
                libc::kill(*pid, libc::SIGKILL);
                libc::waitpid(*pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// Runs a loop at each place in a process of its own; records in the order of the places.
pub fn run<C: Ticks>(
    trial: &mut Trial,
    settings: &GapMeterSettings,
    places: &[LoopPlacement],
) -> Result<Vec<Record>> {
    let place_bytes = RECORD_BYTES + (settings.events_max + settings.sleeps_max()) * EVENT_BYTES;
    let shared = SharedMapping::map(places.len(), place_bytes.next_multiple_of(4096))?;
    let mut children = Children(Vec::with_capacity(places.len()));
    // SAFETY: asks for our own process id.
    let parent = unsafe { libc::getpid() };
    let reserved = scheduling::is_reserved();
    for place in places {
        // SAFETY: this process has one thread, so the child may go on as it is.
        match unsafe { libc::fork() } {
            -1 => return Err(refused(place.number, places.len())),
            0 => {
                let code = child::<C>(settings, &shared, *place, parent, reserved);
                // SAFETY: ends without running what belongs to the parent (buffered output).
                unsafe { libc::_exit(code) }
            }
            pid => children.0.push(pid),
        }
    }
    start_together(trial, &shared, &mut children, places.len(), reserved)?;
    wait_for_all(trial.session, &shared, settings.duration_ns, &mut children)?;
    let record = |number| {
        serde_json::from_slice(shared.read(number))
            .map_err(|error| broken(&format!("left no readable result: {error}")))
    };
    (0..places.len()).map(record).collect()
}

fn start_together(
    trial: &mut Trial,
    shared: &SharedMapping,
    children: &mut Children,
    processes: usize,
    reserved: bool,
) -> Result<()> {
    let asked_ns = clock::monotonic_ns();
    while shared.head().arrived.load(Ordering::Acquire) < processes {
        trial.session.check()?;
        reap(children)?;
        if reserved {
            // What this process holds may be just what the last child lacks.
            let _ = scheduling::leave_reservation();
            if clock::monotonic_ns() > asked_ns + RESERVED_WITHIN_NS {
                return Err(unreserved(processes));
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    trial.prepared()?;
    shared.head().start_ns.store(clock::monotonic_ns() + LEAD_NS, Ordering::Release);
    Ok(())
}

/// Every wake-up here takes the CPU from a loop: few of them until the window is over.
fn wait_for_all(
    session: Session,
    shared: &SharedMapping,
    duration_ns: u64,
    children: &mut Children,
) -> Result<()> {
    let end_ns = shared.head().start_ns.load(Ordering::Relaxed) + duration_ns;
    while !children.0.is_empty() {
        session.check()?;
        reap(children)?;
        let left_ns = end_ns.saturating_sub(clock::monotonic_ns());
        std::thread::sleep(std::time::Duration::from_nanos(left_ns.clamp(2_000_000, 50_000_000)));
    }
    Ok(())
}

/// Takes leave of the processes that ended; an error if one of them failed.
fn reap(children: &mut Children) -> Result<()> {
    let mut failed = None;
    children.0.retain(|pid| {
        let mut status = 0;
        // SAFETY: waits for a child of ours without blocking.
        let ended = unsafe { libc::waitpid(*pid, &raw mut status, libc::WNOHANG) } != 0;
        if ended && status != 0 {
            failed = Some(status);
        }
        !ended
    });
    match failed {
        None => Ok(()),
        Some(status) if libc::WIFSIGNALED(status) => {
            Err(broken(&format!("was ended by signal {}", libc::WTERMSIG(status))))
        }
        Some(status) => Err(broken(&format!("ended with code {}", libc::WEXITSTATUS(status)))),
    }
}

/// One loop; the process's exit code. reserved: whether it is to wait for a reservation of its own.
fn child<C: Ticks>(
    settings: &GapMeterSettings,
    shared: &SharedMapping,
    place: LoopPlacement,
    parent: libc::pid_t,
    reserved: bool,
) -> i32 {
    // SAFETY: plain system calls. The parent may have ended before the first of them.
    unsafe {
        let _ = on_end_of_parent(libc::SIGKILL);
        if libc::getppid() != parent {
            return 1;
        }
    }
    let work = || {
        let mut watch = Watch::prepare::<C>(settings, place);
        touch::own_pages();
        while reserved && !scheduling::is_reserved() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        shared.head().arrived.fetch_add(1, Ordering::AcqRel);
        let start_ns = loop {
            match shared.head().start_ns.load(Ordering::Acquire) {
                0 => std::thread::sleep(std::time::Duration::from_micros(500)),
                start_ns => break start_ns,
            }
        };
        let section = timed::start();
        watch.watch_clock::<C>(Some(start_ns));
        section.stop();
        let text = watch.record().ok().and_then(|record| serde_json::to_vec(&record).ok());
        text.is_some_and(|text| shared.write(place.number, &text))
    };
    // A debug assertion that fails must not unwind into what belongs to the parent.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(_) => 101,
    }
}

fn refused(number: usize, processes: usize) -> ProbeError {
    let error = std::io::Error::last_os_error();
    ProbeError::new(
        FailureKind::Lacks,
        "no_more_processes",
        format!("Process {} of {processes} could not be started: {error}.", number + 1),
        "Raise the limit on processes (ulimit -u, pids.max), or ask for fewer per CPU.",
    )
}

fn unreserved(processes: usize) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_reservation",
        format!("Not every one of {processes} loops got a reservation within 2 s."),
        "Give smaller slices: all loops' reservations together may take 95 % of the CPUs.",
    )
}

fn broken(how: &str) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "loop_process_failed",
        format!("One of the looping processes {how}."),
        "Run it again; if it happens again, look for a memory limit or a killer of processes.",
    )
}
