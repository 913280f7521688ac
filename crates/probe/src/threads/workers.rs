//! Worker threads: the one way to start them, pinned to a CPU or not, and to wait for their results.
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::affinity;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// A worker calls few functions and keeps its data in mappings and on the heap.
const STACK_BYTES: usize = 256 << 10;

/// A worker that ends before the scope in which it was started.
pub struct JoinedWorker<'scope, T>(ScopedJoinHandle<'scope, Result<T>>);

impl<T> JoinedWorker<'_, T> {
    /// Waits for its result; a panic of it is one of the caller.
    pub fn join(self) -> Result<T> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Starts a worker, pinned to `cpu` if there is one.
pub fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpu: Option<usize>,
    work: impl FnOnce() -> Result<T> + Send + 'scope,
) -> Result<JoinedWorker<'scope, T>> {
    let pinned = move || {
        cpu.map_or(Ok(()), affinity::pin)?;
        work()
    };
    builder("worker")
        .spawn_scoped(scope, pinned)
        .map(JoinedWorker)
        .map_err(|error| no_thread(&error))
}

/// Starts a thread that may outlive its caller.
pub fn start_owned<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    builder(name).spawn(work).map_err(|error| no_thread(&error))
}

/// Does `work` on a thread of its own, pinned to `cpu`, so that the caller's stays where it is.
pub fn run_on<T: Send>(cpu: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| start(scope, Some(cpu), work)?.join())
}

fn builder(name: &str) -> Builder {
    Builder::new().name(name.to_owned()).stack_size(STACK_BYTES)
}

fn no_thread(error: &std::io::Error) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_threads",
        format!("A worker thread cannot be started: {error}."),
        "Ask for fewer threads, streams or operations in flight, or raise the limit on processes.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_runs_where_it_was_pinned() {
        let cpu = affinity::allowed()[0];
        assert_eq!(run_on(cpu, || Ok(affinity::allowed())).unwrap(), [cpu]);
        let error = ProbeError::usage("No.", "No.");
        assert_eq!(run_on::<()>(cpu, || Err(error.clone())).unwrap_err(), error);
    }
}
