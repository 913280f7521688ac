//! Quotas of Linux (CFS bandwidth): time of a whole machine in each period, handed out to processors
//! in slices.
//!
//! A processor that has used up what it took stops its part of the machine, but only when it looks:
//! at a tick. What was used beyond the quota until then is taken from the next period.
//!
//! Source: Turner, Rao and Rao, "CPU bandwidth control for CFS" (2010), and Linux up to 6.18, where
//! what a processor took does not expire with the period.
use crate::Nanos;
use std::collections::VecDeque;

/// A processor keeps that much when its part of a machine goes to sleep; the rest goes back.
const KEPT: i64 = 1_000_000;
/// What was given back is handed out after this time, other returns together with it.
pub const SLACK: Nanos = 5_000_000;

/// Time of a machine in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Time of all its virtual CPUs together.
    pub quota_ns: Nanos,
    /// The period.
    pub period_ns: Nanos,
    /// What may be saved of periods in which it was not used.
    pub burst_ns: Nanos,
    /// When the first refill comes.
    pub phase_ns: Nanos,
}

/// What is left of a quota, and who waits for more.
#[derive(Clone, Debug)]
pub struct Pool {
    /// As it was set.
    pub quota: Quota,
    slice: i64,
    left: i64,
    /// Processors whose part was stopped, in that order.
    pub stopped: VecDeque<usize>,
    /// Whether what was given back is about to be handed out.
    pub handing_out: bool,
}

/// A processor's part of a quota.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// What is left of what it took; below zero: used before it was given.
    left: i64,
    /// Whether it is stopped.
    pub stopped: bool,
}

impl Pool {
    /// The first period's quota is there.
    pub fn new(quota: Quota, slice: Nanos) -> Self {
        let (slice, left) = (slice as i64, quota.quota_ns as i64);
        Self { quota, slice, left, stopped: VecDeque::new(), handing_out: false }
    }

    /// Takes so much that the part has `target`, or what there is. Whether the part has anything.
    #[inline]
    fn take(&mut self, part: &mut Part, target: i64) -> bool {
        let amount = (target - part.left).min(self.left).max(0);
        self.left -= amount;
        part.left += amount;
        part.left > 0
    }

    /// A part was used. Returns whether it has used up what it can have.
    #[inline]
    pub fn used(&mut self, part: &mut Part, length: Nanos) -> bool {
        part.left -= length as i64;
        part.left <= 0 && !self.take(part, self.slice)
    }

    /// Whether a part has to stop now: it has nothing and gets nothing.
    #[inline]
    pub fn must_stop(&mut self, part: &mut Part) -> bool {
        part.left <= 0 && !self.take(part, 1)
    }

    /// A processor's part stops.
    pub fn stops(&mut self, part: &mut Part, processor: usize) {
        part.stopped = true;
        self.stopped.push_back(processor);
    }

    /// A period begins.
    pub fn refill(&mut self) {
        let most = (self.quota.quota_ns + self.quota.burst_ns) as i64;
        self.left = (self.left + self.quota.quota_ns as i64).min(most);
    }

    /// Pays a stopped part's debt, so far as there is anything. Whether it may go on.
    pub fn pay(&mut self, part: &mut Part) -> bool {
        let amount = (1 - part.left).min(self.left).max(0);
        self.left -= amount;
        part.left += amount;
        part.stopped = part.left <= 0;
        !part.stopped
    }

    /// Whether there is something to hand out.
    pub fn has(&self) -> bool {
        self.left > 0
    }

    /// A part's last one went to sleep: what it does not need goes back. Returns whether that is to
    /// be handed out to others.
    #[inline]
    pub fn give_back(&mut self, part: &mut Part) -> bool {
        let rest = part.left - KEPT;
        if rest <= 0 || part.stopped {
            return false;
        }
        self.left += rest;
        part.left -= rest;
        let begin = self.left > self.slice && !self.stopped.is_empty() && !self.handing_out;
        self.handing_out |= begin;
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn what_was_used_too_much_is_paid_in_the_next_period() {
        let quota = Quota { quota_ns: 10 * MS, period_ns: 40 * MS, burst_ns: 0, phase_ns: 0 };
        let (mut pool, mut part) = (Pool::new(quota, 5 * MS), Part::default());
        let mut ran = Vec::new();
        for _ in 0..4 {
            let mut ticks = 1;
            while !pool.used(&mut part, 4 * MS) {
                ticks += 1;
            }
            assert!(pool.must_stop(&mut part));
            part.stopped = true;
            ran.push(ticks * 4);
            pool.refill();
            assert!(pool.pay(&mut part));
        }
        // 10 of 40 ms in ticks of 4: 12, which leaves 8, then 12 again.
        assert_eq!(ran, [12, 8, 12, 8]);
    }

    #[test]
    fn what_is_not_needed_goes_back() {
        let quota = Quota { quota_ns: 20 * MS, period_ns: 40 * MS, burst_ns: 0, phase_ns: 0 };
        let (mut pool, mut part) = (Pool::new(quota, 5 * MS), Part::default());
        assert!(!pool.used(&mut part, MS));
        assert_eq!((pool.left, part.left), (14_000_000, 5_000_000));
        pool.stopped.push_back(1);
        assert!(pool.give_back(&mut part), "somebody waits");
        assert_eq!((pool.left, part.left), (18_000_000, KEPT));
    }
}
