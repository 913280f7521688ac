//! When a thread works and when it sleeps, so that it uses a set share of a CPU, or of its own time.
//! Pure: both clocks are arguments.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleStep {
    Work,
    /// Sleep until this time on the monotonic clock.
    SleepUntil(u64),
}

/// Periods of a fixed length, in each of which a budget of CPU time is used up as early as possible.
/// A thread that waits for something else takes the time of its operations for the CPU's.
///
/// What a period could not get is not made up for later: a load that lost the CPU shows less in
/// that interval instead of more in the next. What it used too much (the last bit of work, going
/// to sleep, an operation longer than a period) is taken from the next periods' budgets.
#[derive(Clone, Copy, Debug)]
pub struct DutyCycle {
    period_ns: u64,
    /// CPU time of a period; `None` works all the time.
    budget_ns: Option<u64>,
    starts_ns: u64,
    /// Thread CPU clock at which this period's budget is used up.
    until_cpu_ns: u64,
}

impl DutyCycle {
    /// Begins at `now_ns` of the monotonic and `cpu_ns` of the thread's CPU clock.
    pub fn begin(intensity_ratio: f64, period_ns: u64, now_ns: u64, cpu_ns: u64) -> Self {
        let budget = (intensity_ratio * period_ns as f64).round() as u64;
        let budget_ns = (budget < period_ns).then_some(budget);
        let until_cpu_ns = cpu_ns + budget_ns.unwrap_or(0);
        Self { period_ns, budget_ns, starts_ns: now_ns, until_cpu_ns }
    }

    /// What to do at `now_ns`, with `cpu_ns` used.
    pub fn next(&mut self, now_ns: u64, cpu_ns: u64) -> CycleStep {
        let Some(budget_ns) = self.budget_ns else { return CycleStep::Work };
        let passed = now_ns.saturating_sub(self.starts_ns) / self.period_ns;
        if passed > 0 {
            self.starts_ns += passed * self.period_ns;
            let earned_ns = self.until_cpu_ns.saturating_add(passed.saturating_mul(budget_ns));
            self.until_cpu_ns = earned_ns.min(cpu_ns + budget_ns);
        }
        if cpu_ns < self.until_cpu_ns {
            CycleStep::Work
        } else {
            CycleStep::SleepUntil(self.starts_ns + self.period_ns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread on a CPU of which it gets `share` while it wants to work; each bit of work takes
    /// `bit_ns` of CPU time, each sleep ends late by `late_ns` and costs `cost_ns` of CPU time.
    fn used(intensity: f64, share: f64, bit_ns: u64, late_ns: u64, cost_ns: u64) -> f64 {
        const END_NS: u64 = 2_000_000_000;
        let (mut now_ns, mut cpu_ns) = (5_000, 700);
        let mut duty_cycle = DutyCycle::begin(intensity, 10_000_000, now_ns, cpu_ns);
        while now_ns < END_NS {
            match duty_cycle.next(now_ns, cpu_ns) {
                CycleStep::Work => {
                    cpu_ns += bit_ns;
                    now_ns += (bit_ns as f64 / share) as u64;
                }
                CycleStep::SleepUntil(at_ns) => {
                    assert!(at_ns > now_ns);
                    cpu_ns += cost_ns;
                    now_ns = at_ns + late_ns;
                }
            }
        }
        cpu_ns as f64 / now_ns as f64
    }

    #[test]
    fn the_share_is_what_was_set() {
        for intensity in [0.01, 0.1, 0.25, 0.5, 0.73, 0.95, 1.0] {
            let share = used(intensity, 1.0, 5_000, 100_000, 20_000);
            assert!((share - intensity).abs() < 0.001, "{intensity}: {share}");
        }
    }

    #[test]
    fn work_in_pieces_longer_than_a_period_keeps_its_share() {
        for intensity in [0.1, 0.25, 0.75] {
            let share = used(intensity, 1.0, 23_000_000, 100_000, 0);
            assert!((share - intensity).abs() < 0.02, "{intensity}: {share}");
        }
    }

    #[test]
    fn what_was_lost_is_not_made_up_for() {
        // Half of a CPU is not enough for three quarters, and enough for a quarter.
        assert!((used(0.75, 0.5, 5_000, 0, 0) - 0.5).abs() < 0.005);
        assert!((used(0.25, 0.5, 5_000, 0, 0) - 0.25).abs() < 0.001);
        // A period without the CPU, then all of it: that period's budget and no more.
        let mut duty_cycle = DutyCycle::begin(0.5, 1_000, 0, 0);
        assert_eq!(duty_cycle.next(1_000, 0), CycleStep::Work);
        assert_eq!(duty_cycle.next(1_400, 499), CycleStep::Work);
        assert_eq!(duty_cycle.next(1_600, 500), CycleStep::SleepUntil(2_000));
        // 30 too many leave 470 of the next budget.
        assert_eq!(duty_cycle.next(2_000, 530), CycleStep::Work);
        assert_eq!(duty_cycle.next(2_469, 999), CycleStep::Work);
        assert_eq!(duty_cycle.next(2_470, 1_000), CycleStep::SleepUntil(3_000));
    }
}
