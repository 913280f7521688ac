//! How threads start together: a latch that lets them sleep until it is opened, and a barrier that
//! lets them spin until all are there.
use crate::error::Result;
use crate::trial::session::Session;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A barrier that spins: a sleeping one wakes its threads one by one, microseconds apart.
#[derive(Debug)]
pub struct Barrier {
    session: Session,
    size: usize,
    arrived: AtomicUsize,
    is_abandoned: AtomicBool,
}

impl Barrier {
    /// For `size` threads; can be passed again and again.
    pub fn new(session: Session, size: usize) -> Self {
        Self { session, size, arrived: AtomicUsize::new(0), is_abandoned: AtomicBool::new(false) }
    }

    /// Waits for the others. `false` when one of them failed or the trial was cancelled.
    pub fn wait(&self) -> bool {
        let ticket = self.arrived.fetch_add(1, Ordering::AcqRel);
        let goal = (ticket / self.size + 1) * self.size;
        let mut spins = 0u32;
        while self.arrived.load(Ordering::Acquire) < goal {
            if self.is_abandoned.load(Ordering::Relaxed) || self.session.is_cancelled() {
                return false;
            }
            spins += 1;
            if spins.is_multiple_of(256) {
                // With more threads than CPUs the missing one may need this one's place.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Tells the others not to wait any longer.
    pub fn give_up(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }
}

/// A latch that sleeps: threads wait behind it, without using a CPU, until it is opened.
#[derive(Debug)]
pub struct Latch {
    session: Session,
    size: usize,
    state: Mutex<LatchState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LatchState {
    arrived: usize,
    open: bool,
    is_abandoned: bool,
}

/// A sleeper looks this often whether the trial was cancelled.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl Latch {
    pub fn new(session: Session, size: usize) -> Self {
        Self { session, size, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits behind the latch. `false` when another failed or the trial was cancelled.
    pub fn wait(&self) -> bool {
        self.lock().arrived += 1;
        self.changed.notify_all();
        self.sleep_until(|state| state.open)
    }

    /// Calls `gate` when all have arrived, and lets them through if it succeeds. `None` when a thread
    /// failed, which that thread tells.
    pub fn open_behind<T>(&self, gate: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
        if !self.sleep_until(|state| state.arrived == self.size) {
            return self.session.check().map(|()| None);
        }
        let opened = gate().inspect_err(|_| self.give_up())?;
        self.lock().open = true;
        self.changed.notify_all();
        Ok(Some(opened))
    }

    /// Tells the others not to wait any longer.
    pub fn give_up(&self) {
        self.lock().is_abandoned = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, LatchState> {
        // What the lock guards is whole at any time, even if a holder panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep_until(&self, done: impl Fn(&LatchState) -> bool) -> bool {
        let mut state = self.lock();
        while !done(&state) {
            if state.is_abandoned || self.session.is_cancelled() {
                return false;
            }
            let woken = self.changed.wait_timeout(state, CHECK_INTERVAL);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        !state.is_abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_can_be_passed_again() {
        let barrier = Barrier::new(Session::detached(), 2);
        let rounds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..50 {
                        assert!(barrier.wait());
                        assert!(rounds.fetch_add(1, Ordering::SeqCst) / 2 == round);
                        assert!(barrier.wait());
                    }
                });
            }
        });
    }

    #[test]
    fn nobody_passes_a_latch_before_it_is_opened() {
        let latch = Latch::new(Session::detached(), 3);
        let through = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    assert!(latch.wait());
                    through.fetch_add(1, Ordering::SeqCst);
                });
            }
            let before = latch.open_behind(|| Ok(through.load(Ordering::SeqCst)));
            assert_eq!(before.unwrap(), Some(0));
        });
        assert_eq!(through.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_latch_that_was_given_up_lets_nobody_sleep() {
        let latch = Latch::new(Session::detached(), 2);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| latch.wait());
            latch.give_up();
            assert!(!waiting.join().unwrap());
            assert!(latch.open_behind(|| Ok(())).unwrap().is_none());
        });
    }
}
