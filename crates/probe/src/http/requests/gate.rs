//! The common start of the threads of the engine.
use crate::error::Result;
use crate::threads::barriers::Latch;
use crate::trial::session::Session;
use nephoscope_linux::clock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// From the opening of the gate to the start: every thread is awake by then.
const LEAD_NS: u64 = 1_000_000;

pub struct Gate {
    latch: Latch,
    start_ns: AtomicU64,
    abandoned: AtomicBool,
}

impl Gate {
    pub fn new(session: Session, threads: usize) -> Self {
        let latch = Latch::new(session, threads);
        Self { latch, start_ns: AtomicU64::new(0), abandoned: AtomicBool::new(false) }
    }

    /// Waits for the start; `None` when there will be none.
    pub fn wait(&self) -> Option<u64> {
        self.latch.wait().then(|| self.start_ns.load(Ordering::Acquire))
    }

    /// Calls `prepared` when all threads wait, and lets them start. Returns the start; `None` where
    /// one of them failed.
    pub fn open(&self, prepared: impl FnOnce() -> Result<()>) -> Result<Option<u64>> {
        self.latch.open_behind(|| {
            prepared()?;
            let start_ns = clock::monotonic_ns() + LEAD_NS;
            self.start_ns.store(start_ns, Ordering::Release);
            Ok(start_ns)
        })
    }

    /// Tells all threads that the trial is over.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.latch.give_up();
    }

    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}
