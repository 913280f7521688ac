//! Quotas of Linux (CFS bandwidth): CPU time of a machine in each period, distributed to processors in
//! slices.
//!
//! A processor that has used up its slices throttles its part of the machine, but only at a tick. What
//! was used beyond the quota until then is taken from the next period.
//!
//! Source: Turner, Rao and Rao, "CPU bandwidth control for CFS" (2010), and Linux up to 6.18, where
//! slices do not expire with the period.
use crate::Nanos;
use std::collections::VecDeque;

/// Runtime that a processor keeps when its part of a machine goes to sleep.
const MIN_RUNTIME: i64 = 1_000_000;
/// Delay before returned runtime is distributed, together with what is returned until then.
pub const SLACK: Nanos = 5_000_000;

/// A quota of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// CPU time of all its virtual CPUs together.
    pub quota_ns: Nanos,
    pub period_ns: Nanos,
    /// What may be saved of unused periods.
    pub burst_ns: Nanos,
    /// Time of the first refill.
    pub phase_ns: Nanos,
}

/// What is left of a quota, and the processors that wait for more.
#[derive(Clone, Debug)]
pub struct GlobalPool {
    pub quota: Quota,
    slice: i64,
    runtime: i64,
    /// Processors on which the machine is throttled, in that order.
    pub throttled: VecDeque<usize>,
    /// Whether returned runtime is about to be distributed.
    pub is_distributing: bool,
}

/// A processor's part of a quota.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalPool {
    /// What is left of its slices; negative: used beyond them.
    runtime: i64,
    pub is_throttled: bool,
}

impl GlobalPool {
    pub fn new(quota: Quota, slice: Nanos) -> Self {
        let (slice, runtime) = (slice as i64, quota.quota_ns as i64);
        Self { quota, slice, runtime, throttled: VecDeque::new(), is_distributing: false }
    }

    /// Fills a local pool up to `target`, as far as there is runtime. Returns whether it has any.
    #[inline]
    fn fill(&mut self, local: &mut LocalPool, target: i64) -> bool {
        let amount = (target - local.runtime).min(self.runtime).max(0);
        self.runtime -= amount;
        local.runtime += amount;
        local.runtime > 0
    }

    /// Charges a local pool. Returns whether it is exhausted.
    #[inline]
    pub fn charge(&mut self, local: &mut LocalPool, ran: Nanos) -> bool {
        local.runtime -= ran as i64;
        local.runtime <= 0 && !self.fill(local, self.slice)
    }

    /// Throttles a processor's part if it is exhausted. Returns whether it was.
    #[inline]
    pub fn throttle_exhausted(&mut self, local: &mut LocalPool, processor: usize) -> bool {
        let is_exhausted = local.runtime <= 0 && !self.fill(local, 1);
        if is_exhausted {
            local.is_throttled = true;
            self.throttled.push_back(processor);
        }
        is_exhausted
    }

    /// Starts a period.
    pub fn refill(&mut self) {
        let max = (self.quota.quota_ns + self.quota.burst_ns) as i64;
        self.runtime = (self.runtime + self.quota.quota_ns as i64).min(max);
    }

    /// Repays the overrun of a throttled part as far as possible. Returns whether it may run again.
    pub fn repay(&mut self, local: &mut LocalPool) -> bool {
        local.is_throttled = !self.fill(local, 1);
        !local.is_throttled
    }

    pub fn has_runtime(&self) -> bool {
        self.runtime > 0
    }

    /// Takes back what a part that went to sleep does not need. Returns whether a distribution has to
    /// be scheduled.
    #[inline]
    pub fn return_unused(&mut self, local: &mut LocalPool) -> bool {
        let unused = local.runtime - MIN_RUNTIME;
        if unused <= 0 || local.is_throttled {
            return false;
        }
        self.runtime += unused;
        local.runtime -= unused;
        let schedule =
            self.runtime > self.slice && !self.throttled.is_empty() && !self.is_distributing;
        self.is_distributing |= schedule;
        schedule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn overrun_is_repaid_in_the_next_period() {
        let quota = Quota { quota_ns: 10 * MS, period_ns: 40 * MS, burst_ns: 0, phase_ns: 0 };
        let (mut pool, mut local) = (GlobalPool::new(quota, 5 * MS), LocalPool::default());
        let mut ran = Vec::new();
        for _ in 0..4 {
            let mut ticks = 1;
            while !pool.charge(&mut local, 4 * MS) {
                ticks += 1;
            }
            assert!(pool.throttle_exhausted(&mut local, 0));
            ran.push(ticks * 4);
            pool.refill();
            assert!(pool.repay(&mut local));
        }
        // 10 of 40 ms in ticks of 4: 12, which leaves 8, then 12 again.
        assert_eq!(ran, [12, 8, 12, 8]);
    }

    #[test]
    fn unused_runtime_is_returned() {
        let quota = Quota { quota_ns: 20 * MS, period_ns: 40 * MS, burst_ns: 0, phase_ns: 0 };
        let (mut pool, mut local) = (GlobalPool::new(quota, 5 * MS), LocalPool::default());
        assert!(!pool.charge(&mut local, MS));
        assert_eq!((pool.runtime, local.runtime), (14_000_000, 5_000_000));
        pool.throttled.push_back(1);
        assert!(pool.return_unused(&mut local), "others are throttled");
        assert_eq!((pool.runtime, local.runtime), (18_000_000, MIN_RUNTIME));
    }
}
