//! The common start of the threads of the engine, and what they report to the main thread.
use super::recorder::Interval;
use crate::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

/// From the opening of the gate to the start: every thread is awake by then.
const LEAD_NS: u64 = 1_000_000;

pub enum Message {
    /// A thread has connected and waits for the start.
    Ready,
    /// A thread has completed an interval.
    Interval(Interval),
    /// A thread failed; the others are to end.
    Failed,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Closed,
    Open(u64),
    Abandoned,
}

pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    abandoned: AtomicBool,
}

/// Opens the gate; dropped before, it sends the waiting threads home.
pub struct Opener<'a>(&'a Gate);

impl Gate {
    pub fn new() -> Self {
        let state = Mutex::new(State::Closed);
        Self { state, changed: Condvar::new(), abandoned: AtomicBool::new(false) }
    }

    pub fn opener(&self) -> Opener<'_> {
        Opener(self)
    }

    fn change(&self, state: State) {
        let mut current = self.state.lock().expect("no thread panics while it holds it");
        if *current == State::Closed {
            *current = state;
        }
        self.changed.notify_all();
    }

    /// Tells all threads that the trial is over.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.change(State::Abandoned);
    }

    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Waits for the start; `None` when there will be none.
    pub fn wait(&self) -> Option<u64> {
        let state = self.state.lock().expect("no thread panics while it holds it");
        let is_closed = |state: &mut State| *state == State::Closed;
        let state = self.changed.wait_while(state, is_closed).expect("no thread panics");
        match *state {
            State::Open(start_ns) => Some(start_ns),
            _ => None,
        }
    }
}

impl Opener<'_> {
    /// Returns the start.
    pub fn open(&self) -> u64 {
        let start_ns = clock::monotonic_ns() + LEAD_NS;
        self.0.change(State::Open(start_ns));
        start_ns
    }
}

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.0.change(State::Abandoned);
    }
}
