//! The two ends of a measured connection as threads, and the check that all went through.
use crate::affinity;
use crate::error::{Kind, ProbeError};
use std::thread::{Scope, ScopedJoinHandle};

/// The CPUs of the sending and of the receiving ends; `None` leaves them to the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Pins {
    /// Of the ends that send or ask.
    pub sender: Option<usize>,
    /// Of the ends that receive or answer.
    pub receiver: Option<usize>,
}

/// A thread that ends in a result.
pub type Thread<'scope, T> = ScopedJoinHandle<'scope, Result<T, ProbeError>>;

/// Starts one end, pinned to `cpu` if there is one. What it measures with is made by the caller or by
/// `work` before its time runs.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpu: Option<usize>,
    work: impl FnOnce() -> Result<T, ProbeError> + Send + 'scope,
) -> Result<Thread<'scope, T>, ProbeError> {
    let pinned = move || {
        cpu.map_or(Ok(()), affinity::pin)?;
        work()
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, pinned).map_err(|error| {
        ProbeError::new(
            Kind::Lacks,
            "no_threads",
            format!("A thread for one end of a connection cannot be had: {error}."),
            "Set fewer `streams`, or raise the limit on processes.",
        )
    })
}

/// Waits for one end.
pub fn join<T>(thread: Result<Thread<'_, T>, ProbeError>) -> Result<T, ProbeError> {
    thread?.join().expect("an end of a connection does not panic")
}

/// All that was sent has to arrive.
pub fn check_nothing_lost(what: &str, sent: u64, received: u64) -> Result<(), ProbeError> {
    if sent == received {
        return Ok(());
    }
    Err(ProbeError::new(
        Kind::Failed,
        "bytes_lost",
        format!("{sent} {what} were sent on 127.0.0.1 and {received} arrived."),
        "Run it again; if it happens again, look at the kernel's log (dmesg).",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_byte_is_noticed() {
        assert_eq!(check_nothing_lost("bytes", 2, 1).unwrap_err().name, "bytes_lost");
        assert!(check_nothing_lost("bytes", 2, 2).is_ok());
    }
}
