//! What a virtual CPU wants to do.
use crate::random::{Lengths, Stream};
use crate::Nanos;

/// A virtual CPU's wish for time.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// It never waits.
    Spinning,
    /// It wakes at every multiple of a period and works for a while; what is not done by the next
    /// wake-up goes on, and that wake-up is added to it.
    Periodic { every_ns: Nanos, work_ns: Nanos },
    /// It works, sleeps, works, …, each for a length drawn anew.
    Bursty { work: Lengths, sleep: Lengths },
}

/// A workload under way: what is left of the present work.
#[derive(Clone, Debug)]
pub struct Doing {
    workload: Workload,
    stream: Stream,
    /// CPU time until it blocks; None when it never does.
    pub left_ns: Option<Nanos>,
    wakes: u64,
}

impl Doing {
    /// Asleep, with its first wake-up at the moment given by [`Doing::first_wake`].
    pub fn new(workload: Workload, stream: Stream) -> Self {
        let left_ns = match workload {
            Workload::Spinning => None,
            _ => Some(0),
        };
        Self { workload, stream, left_ns, wakes: 0 }
    }

    /// When it wants time for the first time.
    pub fn first_wake(&self) -> Nanos {
        0
    }

    /// It wakes: takes up new work. Returns when it wakes again whatever happens (periodic work).
    pub fn wake(&mut self, now: Nanos) -> Option<Nanos> {
        match &self.workload {
            Workload::Spinning => None,
            Workload::Periodic { every_ns, work_ns } => {
                self.left_ns = self.left_ns.map(|left| left + work_ns);
                self.wakes += 1;
                Some((self.wakes * every_ns).max(now))
            }
            Workload::Bursty { work, .. } => {
                let length = work.draw(&mut self.stream);
                self.left_ns = Some(self.stream.rounded(length).max(1));
                None
            }
        }
    }

    /// Its work is done at `now`: when it wakes again, if that is not told already.
    pub fn sleeps_until(&mut self, now: Nanos) -> Option<Nanos> {
        match &self.workload {
            Workload::Bursty { sleep, .. } => {
                let length = sleep.draw(&mut self.stream);
                Some(now + self.stream.rounded(length).max(1))
            }
            _ => None,
        }
    }
}
