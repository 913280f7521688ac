//! The synchronous engine: `pread` and `pwrite`, one thread for each operation in flight.
use super::job::Job;
use super::mover::Mover;
use crate::error::{Kind, ProbeError};
use crate::window::{Outcome, Window};
use crate::{cancel, clock, timed};
use std::io::Error;
use std::sync::atomic::{AtomicBool, Ordering};

/// A worker calls few functions and keeps its data in mappings and on the heap.
const STACK_BYTES: usize = 256 << 10;

/// Runs the job; a single operation in flight runs in the calling thread. Calls `gate` when all is
/// prepared.
pub fn run(
    job: &Job<'_>,
    gate: impl FnOnce() -> Result<(), ProbeError>,
) -> Result<Outcome, ProbeError> {
    let stop = AtomicBool::new(false);
    let workers: Result<Vec<_>, _> =
        (0..job.depth as u64).map(|number| Worker::new(job, &stop, number)).collect();
    let mut workers = workers?;
    gate()?;
    // All windows are the same one; starting the threads lies in its warm-up.
    let now_ns = clock::monotonic_ns();
    workers.iter_mut().for_each(|worker| worker.window.begin(now_ns));
    if job.depth == 1 {
        return Window::outcome([workers.remove(0).run()?]);
    }
    let windows: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(workers.len());
        for worker in workers {
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, move || worker.run()) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(no_threads(job.depth, &error));
                }
            }
        }
        threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
    });
    Window::outcome(windows?)
}

fn no_threads(depth: usize, error: &Error) -> ProbeError {
    ProbeError::new(
        Kind::Lacks,
        "no_threads",
        format!("The synchronous engine needs {depth} threads and cannot have them: {error}."),
        "Set a smaller `queue_depth`, or raise the limit on processes.",
    )
}

/// One operation in flight: everything it touches is made before the time runs.
struct Worker<'a> {
    stop: &'a AtomicBool,
    mover: Mover<'a>,
    window: Window,
}

impl<'a> Worker<'a> {
    fn new(job: &'a Job<'a>, stop: &'a AtomicBool, number: u64) -> Result<Self, ProbeError> {
        let window = Window::open(clock::monotonic_ns(), job.duration_ns);
        Ok(Self { stop, mover: Mover::new(job, number)?, window })
    }

    fn run(mut self) -> Result<Window, ProbeError> {
        let section = timed::start();
        let mut started_ns = clock::monotonic_ns();
        while !self.stop.load(Ordering::Relaxed) {
            cancel::check()?;
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
