//! Threads that use stated amounts of CPU time, so that the event loop goes on meanwhile.
use super::queue::{QueuedRequest, WorkKind};
use crate::error::{ProbeError, Result};
use crate::threads::workers;
use crate::trial::affinity;
use crate::trial::session::Session;
use nephoscope_linux::clock;
use std::collections::VecDeque;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A job that is done, and the CPU time that it used.
#[derive(Clone, Copy, Debug)]
pub struct CompletedJob {
    pub job: QueuedRequest,
    pub cpu_ns: u64,
}

#[derive(Debug)]
pub struct CpuWorkers {
    shared: Arc<WorkerQueues>,
    session: Session,
    /// Where the threads are pinned, round robin; nowhere if it is empty.
    cpus: Vec<usize>,
    threads: usize,
    busy: usize,
}

#[derive(Debug)]
struct WorkerQueues {
    jobs: Mutex<VecDeque<QueuedRequest>>,
    is_ready: Condvar,
    ended: Mutex<Vec<CompletedJob>>,
    /// Becomes readable when a job is done.
    wake: OwnedFd,
}

impl CpuWorkers {
    /// No thread is started before there is a job.
    pub fn new(session: Session, cpus: Vec<usize>) -> Result<Self> {
        // SAFETY: makes a descriptor that nobody else owns.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(ProbeError::os("eventfd", &Error::last_os_error()));
        }
        let shared = WorkerQueues {
            jobs: Mutex::default(),
            is_ready: Condvar::new(),
            ended: Mutex::default(),
            // SAFETY: as above.
            wake: unsafe { OwnedFd::from_raw_fd(fd) },
        };
        Ok(Self { shared: Arc::new(shared), session, cpus, threads: 0, busy: 0 })
    }

    pub fn wake_fd(&self) -> RawFd {
        self.shared.wake.as_raw_fd()
    }

    /// Hands a job to a thread; there are as many as jobs were ever under way at once.
    pub fn start(&mut self, job: QueuedRequest) -> Result<()> {
        self.busy += 1;
        locked(&self.shared.jobs).push_back(job);
        self.shared.is_ready.notify_one();
        if self.busy > self.threads {
            let cpu = self.cpus.get(self.threads % self.cpus.len().max(1)).copied();
            self.threads += 1;
            let (shared, session) = (Arc::clone(&self.shared), self.session);
            workers::start_owned("cpu work", move || {
                // A CPU that is gone meanwhile only costs the place.
                let _ = cpu.map(affinity::pin);
                shared.work(session);
            })?;
        }
        Ok(())
    }

    /// Returns the jobs that are done.
    pub fn take_ended(&mut self) -> Vec<CompletedJob> {
        let mut count = 0u64;
        // SAFETY: reads 8 bytes into our own; nothing is there where it was read before.
        unsafe { libc::read(self.wake_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        let ended = std::mem::take(&mut *locked(&self.shared.ended));
        self.busy -= ended.len();
        ended
    }
}

impl WorkerQueues {
    fn work(&self, session: Session) {
        loop {
            let mut jobs = locked(&self.jobs);
            let job = loop {
                if let Some(job) = jobs.pop_front() {
                    break job;
                }
                jobs = self.is_ready.wait(jobs).expect("no thread panics while it holds it");
            };
            drop(jobs);
            let WorkKind::Cpu(wanted_ns) = job.service else { unreachable!("it has no time") };
            let start_ns = clock::monotonic_ns();
            let cpu_ns = use_cpu(wanted_ns, session);
            let job = QueuedRequest { start_ns, end_ns: clock::monotonic_ns(), ..job };
            locked(&self.ended).push(CompletedJob { job, cpu_ns });
            let count = 1u64;
            // SAFETY: writes 8 bytes of our own.
            unsafe {
                libc::write(self.wake.as_raw_fd(), (&raw const count).cast(), size_of::<u64>())
            };
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while it holds it")
}

/// Uses so much CPU time of this thread; returns how much it was.
pub fn use_cpu(wanted_ns: u64, session: Session) -> u64 {
    let began_ns = clock::thread_cpu_ns();
    let mut value = wanted_ns;
    loop {
        // About 100 ns of arithmetic between two clock reads.
        for _ in 0..64 {
            value = std::hint::black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (value >> 29));
        }
        let used_ns = clock::thread_cpu_ns() - began_ns;
        if used_ns >= wanted_ns || session.is_cancelled() || session.is_stopped() {
            return used_ns;
        }
    }
}
