//! The synchronous engine: `pread` and `pwrite`, one thread for each operation in flight.
use super::job::DiskJob;
use super::mover::Mover;
use crate::error::Result;
use crate::threads::workers;
use crate::timing::closed_loop::{ClosedLoopResult, CompletionWindow};
use crate::timing::timed;
use nephoscope_linux::clock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the job; a single operation in flight runs in the calling thread. Calls `gate` when all is
/// prepared.
pub fn run(job: &DiskJob<'_>, gate: impl FnOnce() -> Result<()>) -> Result<ClosedLoopResult> {
    let stop = AtomicBool::new(false);
    let made: Result<Vec<_>, _> =
        (0..job.depth as u64).map(|number| SyncWorker::new(job, &stop, number)).collect();
    let mut all = made?;
    gate()?;
    // All windows are the same one; starting the threads lies in its warm-up.
    let now_ns = clock::monotonic_ns();
    all.iter_mut().for_each(|worker| worker.window.begin(now_ns));
    if job.depth == 1 {
        return CompletionWindow::outcome([all.remove(0).run()?]);
    }
    let windows: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let threads: Result<Vec<_>, _> = all
            .into_iter()
            .map(|worker| workers::start(scope, None, move || worker.run()))
            .collect();
        let threads = threads.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        threads.into_iter().map(workers::JoinedWorker::join).collect()
    });
    CompletionWindow::outcome(windows?)
}

/// One operation in flight: everything it touches is made before the time runs.
struct SyncWorker<'a> {
    stop: &'a AtomicBool,
    mover: Mover<'a>,
    window: CompletionWindow,
}

impl<'a> SyncWorker<'a> {
    fn new(job: &'a DiskJob<'a>, stop: &'a AtomicBool, number: u64) -> Result<Self> {
        let window = CompletionWindow::open(clock::monotonic_ns(), job.duration_ns);
        Ok(Self { stop, mover: Mover::new(job, number)?, window })
    }

    fn run(mut self) -> Result<CompletionWindow> {
        let section = timed::start();
        let mut started_ns = clock::monotonic_ns();
        while !self.stop.load(Ordering::Relaxed) {
            self.mover.session().check()?;
            self.mover.move_next()?;
            let now_ns = clock::monotonic_ns();
            if !self.window.completed(now_ns, now_ns - started_ns) {
                break;
            }
            started_ns = now_ns;
        }
        section.stop_with_kernel_io();
        Ok(self.window)
    }
}
