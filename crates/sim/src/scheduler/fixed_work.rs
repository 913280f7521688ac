//! A probe that times a fixed amount of CPU work.
//!
//! It starts at times that are independent of the scheduler, and reads work over elapsed time. With
//! pauses of one length a run of it contains k or k + 1 of them, so it reads one of two values, neither
//! of which need be the share: the systematic error of measurements of this kind.
use super::scenario::FixedWork;
use crate::random::RandomStream;
use crate::Nanos;
use std::collections::{BTreeMap, VecDeque};

/// Source of randomness of the starts; workloads have the numbers from 0 on.
const STARTS: u64 = 1 << 41;

/// The probe in one virtual CPU that never blocks.
#[derive(Clone, Debug)]
pub struct FixedWorkProbe {
    work: Nanos,
    /// Times of the runs that have not started, in order.
    starts: VecDeque<Nanos>,
    /// Start, and CPU time at completion, of the runs under way, in order.
    running: VecDeque<(Nanos, Nanos)>,
    cpu_time: Nanos,
    /// Number of runs by elapsed time.
    elapsed: BTreeMap<Nanos, u64>,
}

impl FixedWorkProbe {
    /// Returns a probe that starts at random times within a window.
    pub fn new(probe: &FixedWork, window: (Nanos, Nanos), seed: u64, vcpu: u64) -> Self {
        let mut stream = RandomStream::new(seed, vcpu, STARTS);
        let (from, to) = window;
        let mut starts: Vec<Nanos> =
            (0..probe.starts).map(|_| from + stream.below(to - from)).collect();
        starts.sort_unstable();
        Self {
            work: ((probe.work_ms * 1e6).round() as Nanos).max(1),
            starts: starts.into(),
            running: VecDeque::new(),
            cpu_time: 0,
            elapsed: BTreeMap::new(),
        }
    }

    /// Accounts for a run interval; they come in order.
    pub fn add(&mut self, from: Nanos, to: Nanos) {
        while let Some(start) = self.starts.front().copied().filter(|start| *start < to) {
            self.starts.pop_front();
            // It reads the clock when it runs for the first time.
            let start = start.max(from);
            self.running.push_back((start, self.cpu_time + (start - from) + self.work));
        }
        self.cpu_time += to - from;
        while let Some((start, done)) = self.running.front().copied() {
            if done > self.cpu_time {
                return;
            }
            self.running.pop_front();
            *self.elapsed.entry(to - (self.cpu_time - done) - start).or_default() += 1;
        }
    }

    /// Returns the shares that it read with their counts, ascending; unfinished runs do not count.
    pub fn shares(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let share = |(elapsed, count): (&Nanos, &u64)| (self.work as f64 / *elapsed as f64, *count);
        self.elapsed.iter().rev().map(share)
    }
}
