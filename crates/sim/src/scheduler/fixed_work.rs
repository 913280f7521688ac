//! A probe that does a fixed amount of CPU work and takes the time.
//!
//! It is begun at moments that have nothing to do with the scheduler, and reads work over elapsed
//! time. With pauses of one length a run of it has k or k + 1 of them: it reads one of two values,
//! neither of which need be the share. That is what measurements of this kind deviate by.
use super::scenario::FixedWork;
use crate::random::Stream;
use crate::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// Source of chance of the starts; workloads have the numbers from 0 on.
const STARTS: u64 = 1 << 41;

/// The probe in one virtual CPU that never waits.
#[derive(Clone, Debug)]
pub struct FixedWorks {
    work: Nanos,
    /// Moments at which it is still to be begun, the earliest first.
    starts: VecDeque<Nanos>,
    /// (when it began to run, CPU time at which it will be done), in order.
    under_way: VecDeque<(Nanos, Nanos)>,
    /// CPU time so far.
    ran: Nanos,
    /// Elapsed times and how often.
    elapsed: BTreeMap<Nanos, u64>,
}

impl FixedWorks {
    /// A probe begun at moments drawn from a window.
    pub fn new(probe: &FixedWork, window: (Nanos, Nanos), seed: u64, vcpu: u64) -> Self {
        let mut stream = Stream::of(seed, vcpu, STARTS);
        let (from, to) = window;
        let mut starts: Vec<Nanos> =
            (0..probe.starts).map(|_| from + stream.below(to - from)).collect();
        starts.sort_unstable();
        Self {
            work: ((probe.work_ms * 1e6).round() as Nanos).max(1),
            starts: starts.into(),
            under_way: VecDeque::new(),
            ran: 0,
            elapsed: BTreeMap::new(),
        }
    }

    /// It ran; stretches come in order.
    pub fn add(&mut self, from: Nanos, to: Nanos) {
        while let Some(start) = self.starts.front().copied().filter(|start| *start < to) {
            self.starts.pop_front();
            // It looks at the clock when it runs for the first time.
            let start = start.max(from);
            self.under_way.push_back((start, self.ran + (start - from) + self.work));
        }
        self.ran += to - from;
        while let Some((start, done)) = self.under_way.front().copied() {
            if done > self.ran {
                return;
            }
            self.under_way.pop_front();
            *self.elapsed.entry(to - (self.ran - done) - start).or_default() += 1;
        }
    }

    /// (share that it read, how often), ascending; runs that the end has cut off are not among them.
    pub fn shares(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let share = |(elapsed, count): (&Nanos, &u64)| (self.work as f64 / *elapsed as f64, *count);
        self.elapsed.iter().rev().map(share)
    }
}
