//! # What it measures
//! Time of basic requests to the kernel: what a program pays for each system call, mapping, page
//! fault, signal, context switch and process. Platforms differ most in these: a hypervisor adds to
//! page faults and processes, a kernel in user space to every call.
//!
//! # How
//! One thread, pinned to a CPU, repeats each operation in batches of about 1 ms for `duration_ns`, after
//! batches that find the size. The time of an operation is the median over batches of the batch's mean.
//!
//! | call | operation |
//! |---|---|
//! | getpid | the system call itself, past any cache of the C library |
//! | getppid | the same for the parent: what perf and lmbench take for the shortest system call |
//! | read, write | one byte from /dev/zero, one byte to /dev/null, past the C library |
//! | mmap | maps and unmaps 64 KiB, untouched |
//! | page_fault | first touch of a page of 4 KiB of memory |
//! | kill | sends signal 0 to the own process: the kernel looks it up, and nothing arrives |
//! | signal | sends a signal to the own thread, which handles it |
//! | pipe | a byte through a pipe to another process on the same CPU, and one back |
//! | context_switch | half of that round trip, without the cost of writing and reading a byte |
//! | fork | fork, end of the child, wait |
//! | exec | the same with a child that executes `program` |
//!
//! # Known truth
//! The kernel counts one minor page fault for each touch, and one signal handler runs for each signal;
//! otherwise the trial fails. A round trip through a pipe takes longer than two switches.
//!
//! # Cross-check
//! lmbench (adapters `lmbench.…`; its time to catch a signal is `signal` less `kill`); `perf bench syscall
//! basic` and `sched pipe` (adapters `perf.…`); `cpu.switch` has the distribution of switches of threads.
//!
//! # Overhead
//! One CPU for 1.2 times `duration_ns` for each call.
//!
//! # Caveats
//! Caches are warm, so that these are lower bounds of what a program sees. The mitigations of the kernel
//! against speculative execution decide: `sys.fingerprint` lists them. fork copies the page tables of
//! the probe, which has 2 to 4 MiB; a larger program pays more. The default program is the probe
//! itself, which is static: one that loads libraries takes longer. A page fault of a huge page is another
//! operation, which is not measured.
use crate::error::{FailureKind, ProbeError, Result};
use crate::memory::buffer::{Buffer, Pages};
use crate::threads::echo_process::{transfer_byte, EchoProcess};
use crate::threads::execution::Program;
use crate::timing::closed_loop::median;
use crate::trial::affinity;
use crate::trial::factors;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use std::fs::File;
use std::io::{Error, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

const CALLS: &[&str] = &[
    "getpid",
    "getppid",
    "read",
    "write",
    "mmap",
    "page_fault",
    "kill",
    "signal",
    "pipe",
    "context_switch",
    "fork",
    "exec",
];

pub const SPEC: Spec = Spec {
    id: "sys.calls",
    summary: "Time of system calls, page faults, signals, pipes, context switches and processes",
    params: &[
        Param::choices("calls", CALLS).doc("Operations; an empty list takes all."),
        Param::text("program", "")
            .doc("Program that `exec` executes, without arguments; empty takes the probe itself."),
        Param::ints("cpus", &[], 0..=1023)
            .doc("CPU of the thread; an empty list takes the first allowed one."),
        Param::int("duration_ns", 20_000_000, 1_000_000..=60_000_000_000)
            .doc("Measured time of each operation."),
    ],
    metrics: &[Metric::lower("call_ns")
        .headline()
        .doc("Time of an operation, by `call`: median over batches of the batch's mean.")],
    overhead: "one CPU for 1.2 times duration_ns for each operation",
    source: "McVoy and Staelin, lmbench, 1996; perf bench",
    ..Spec::about(Resource::Kernel)
};

/// A batch takes about this long: short beside an interrupt's period, long beside a clock read.
const BATCH_NS: u64 = 1_000_000;
const MAPPED_BYTES: usize = 64 << 10;
const PAGE: usize = 4096;
const PAGES: usize = 1024;

pub fn run(trial: &mut Trial) -> Result<()> {
    let wanted = trial.params.texts("calls");
    let is_wanted = |call: &&&str| wanted.is_empty() || wanted.contains(call);
    let calls: Vec<&str> = CALLS.iter().filter(is_wanted).copied().collect();
    let cpus = affinity::named("sys.calls", &trial.params)?;
    let cpu = cpus.first().copied().unwrap_or(affinity::allowed()[0]);
    let duration_ns = trial.params.u64("duration_ns");
    let own = trial.params.text("program").is_empty();
    let words =
        if own { vec!["/proc/self/exe", "--version"] } else { vec![trial.params.text("program")] };
    let program = Program::find(&words, &[])?;
    affinity::pin(cpu)?;
    let mut machine = CallResources::prepare(trial.session, program)?;
    trial.prepared()?;
    for call in calls {
        let ns = machine.time(call, duration_ns)?;
        trial.out.emit("call_ns", ns, factors! {"call": call})?;
    }
    Ok(())
}

/// All that the operations work on.
struct CallResources {
    session: Session,
    zero: File,
    null: File,
    pipe: (PipeReader, PipeWriter),
    memory: Buffer,
    partner: EchoProcess,
    program: Program,
}

impl CallResources {
    fn prepare(session: Session, program: Program) -> Result<Self> {
        let open = |path: &str, write: bool| {
            let file = File::options().read(!write).write(write).open(path);
            file.map_err(|error| ProbeError::os(path, &error))
        };
        Ok(Self {
            session,
            zero: open("/dev/zero", false)?,
            null: open("/dev/null", true)?,
            pipe: std::io::pipe().map_err(|error| ProbeError::os("A pipe", &error))?,
            memory: Buffer::map(PAGE * PAGES, Pages::Small)?,
            partner: EchoProcess::start(session)?,
            program,
        })
    }

    /// Nanoseconds of one operation.
    fn time(&mut self, call: &str, duration_ns: u64) -> Result<f64> {
        match call {
            "page_fault" => self.page_faults(duration_ns),
            "signal" => self.signals(duration_ns),
            "context_switch" => {
                let round_trip = self.median(duration_ns, |own| own.partner.round_trip())?;
                let alone = self.median(duration_ns, Self::write_and_read)?;
                Ok(round_trip / 2.0 - alone)
            }
            // A loop of its own for each: choosing the call would be in its time.
            "getpid" => self.median(duration_ns, |_| {
                // SAFETY: a system call without arguments.
                done("getpid", unsafe { libc::syscall(libc::SYS_getpid) } > 0)
            }),
            "getppid" => self.median(duration_ns, |_| {
                // SAFETY: a system call without arguments; 0 is a parent of another namespace.
                done("getppid", unsafe { libc::syscall(libc::SYS_getppid) } >= 0)
            }),
            "kill" => {
                let process = std::process::id().cast_signed();
                self.median(duration_ns, |_| {
                    // SAFETY: sends nothing to this process.
                    done("kill", unsafe { libc::kill(process, 0) } == 0)
                })
            }
            "read" => self.median(duration_ns, Self::read),
            "write" => self.median(duration_ns, Self::write),
            "mmap" => self.median(duration_ns, |_| done("mmap", map_and_unmap())),
            "pipe" => self.median(duration_ns, |own| own.partner.round_trip()),
            "fork" => self.median(duration_ns, |own| own.child(false)),
            _ => self.median(duration_ns, |own| own.child(true)),
        }
    }

    #[inline]
    fn read(&mut self) -> Result<()> {
        done("read", transfer_byte(libc::SYS_read, self.zero.as_raw_fd(), &mut 0))
    }

    #[inline]
    fn write(&mut self) -> Result<()> {
        done("write", transfer_byte(libc::SYS_write, self.null.as_raw_fd(), &mut 0))
    }

    /// A byte into a pipe and out again: what a context switch through a pipe costs besides.
    fn write_and_read(&mut self) -> Result<()> {
        let (reader, writer) = (self.pipe.0.as_raw_fd(), self.pipe.1.as_raw_fd());
        let moved = transfer_byte(libc::SYS_write, writer, &mut 0)
            && transfer_byte(libc::SYS_read, reader, &mut 0);
        done("A pipe", moved)
    }

    /// A child that ends at once, or that executes the program.
    fn child(&mut self, executes: bool) -> Result<()> {
        let (path, argv, environment) =
            (self.program.path(), self.program.argv(), self.program.environment());
        let null = self.null.as_raw_fd();
        // SAFETY: the child makes only calls that are safe after a fork, on pointers that live on.
        let (child, status) = unsafe {
            let child = libc::fork();
            if child == 0 {
                if executes {
                    libc::dup2(null, 1);
                    libc::execve(path, argv, environment);
                    libc::_exit(127);
                }
                libc::_exit(0);
            }
            let mut status = 0;
            while child > 0 && libc::waitpid(child, &raw mut status, 0) < 0 {
                self.session.check()?;
            }
            (child, status)
        };
        if child < 0 {
            return Err(ProbeError::os("A new process", &Error::last_os_error()));
        }
        if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 127 {
            return Err(self.program.not_started(&Error::from_raw_os_error(libc::ENOEXEC)));
        }
        Ok(())
    }

    /// The median over batches of the mean time of an operation.
    fn median(
        &mut self,
        duration_ns: u64,
        mut operation: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<f64> {
        let mut batch = |own: &mut Self, count: u64| -> Result<u64> {
            own.session.check()?;
            let started_ns = clock::monotonic_ns();
            for _ in 0..count {
                operation(own)?;
            }
            Ok(clock::monotonic_ns() - started_ns)
        };
        let mut count = 1;
        while count < 1 << 30 && batch(self, count)? < BATCH_NS {
            count *= 2;
        }
        let mut means = Vec::new();
        let until_ns = clock::monotonic_ns() + duration_ns;
        while means.is_empty() || clock::monotonic_ns() < until_ns {
            means.push(batch(self, count)? as f64 / count as f64);
        }
        Ok(median(&mut means))
    }

    /// The same for the first touch of a page; giving the pages back is not in its time.
    fn page_faults(&mut self, duration_ns: u64) -> Result<f64> {
        let start = self.memory.as_ptr();
        let mut means = Vec::new();
        let until_ns = clock::monotonic_ns() + duration_ns + duration_ns / 5;
        while means.len() < 2 || clock::monotonic_ns() < until_ns {
            self.session.check()?;
            // SAFETY: the mapping is ours, private and of this size; nothing of it is used again.
            let given_back =
                unsafe { libc::madvise(start.cast(), PAGE * PAGES, libc::MADV_DONTNEED) };
            let before = minor_faults();
            let started_ns = clock::monotonic_ns();
            for page in 0..PAGES {
                // SAFETY: inside the mapping.
                unsafe { start.add(page * PAGE).write_volatile(1) };
            }
            means.push((clock::monotonic_ns() - started_ns) as f64 / PAGES as f64);
            let faults = minor_faults() - before;
            if given_back != 0 || faults < PAGES as i64 {
                return Err(ProbeError::new(
                    FailureKind::Failed,
                    "no_page_faults",
                    format!("{PAGES} pages were touched, and the kernel counted {faults} faults."),
                    "Leave `page_fault` out: this kernel maps several pages at once.",
                ));
            }
        }
        // The first batch grows the page tables.
        means.remove(0);
        Ok(median(&mut means))
    }

    fn signals(&mut self, duration_ns: u64) -> Result<f64> {
        let _handler = Handler::install()?;
        let mut sent = 0;
        let before = HANDLED.load(Ordering::Relaxed);
        // SAFETY: asks for the numbers of this thread.
        let (process, thread) = unsafe { (libc::getpid(), libc::syscall(libc::SYS_gettid)) };
        let median = self.median(duration_ns, |_| {
            sent += 1;
            // SAFETY: sends a signal that has a handler to this thread. raise() of some C libraries
            // makes two system calls besides.
            done(
                "A signal",
                unsafe { libc::syscall(libc::SYS_tgkill, process, thread, SIGNAL) } == 0,
            )
        })?;
        let handled = HANDLED.load(Ordering::Relaxed) - before;
        if handled == sent {
            return Ok(median);
        }
        Err(ProbeError::new(
            FailureKind::Failed,
            "lost_signals",
            format!("{sent} signals were sent, and {handled} handled."),
            "Leave `signal` out, and report it: this kernel loses signals.",
        ))
    }
}

#[inline]
fn done(what: &str, succeeded: bool) -> Result<()> {
    if succeeded {
        return Ok(());
    }
    Err(ProbeError::os(what, &Error::last_os_error()))
}

fn map_and_unmap() -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which nobody else knows.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), MAPPED_BYTES, protection, flags, -1, 0);
        start != libc::MAP_FAILED && libc::munmap(start, MAPPED_BYTES) == 0
    }
}

fn minor_faults() -> i64 {
    clock::usage(libc::RUSAGE_THREAD).map_or(0, |usage| usage.ru_minflt)
}

const SIGNAL: libc::c_int = libc::SIGUSR2;
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handle(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// The handler of the measured signal; the earlier one comes back when this is dropped.
struct Handler(libc::sigaction);

impl Handler {
    fn install() -> Result<Self> {
        // SAFETY: the handler only adds to an atomic number.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(SIGNAL, &raw const action, &raw mut before) != 0 {
                return Err(ProbeError::os("A signal handler", &Error::last_os_error()));
            }
            Ok(Self(before))
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        // SAFETY: restores what was there.
        unsafe { libc::sigaction(SIGNAL, &raw const self.0, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_takes_time() {
        let times = std::thread::spawn(move || {
            affinity::pin(affinity::allowed()[0]).unwrap();
            let program = Program::find(&["true"], &[]).unwrap();
            let mut machine = CallResources::prepare(Session::detached(), program).unwrap();
            CALLS.iter().map(|call| machine.time(call, 1_000_000).unwrap()).collect::<Vec<_>>()
        });
        for (call, ns) in CALLS.iter().zip(times.join().unwrap()) {
            // Half of a round trip less its calls may be small on a busy machine, never the others.
            assert!(ns > 10.0 || *call == "context_switch", "{call}: {ns}");
        }
    }
}
