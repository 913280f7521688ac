//! Settings of the simulated kernel.
use crate::Nanos;

const MS: Nanos = 1_000_000;

/// Settings of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxSettings {
    pub tick_ns: Nanos,
    pub base_slice_ns: Nanos,
    /// Part of a quota that a processor takes at a time.
    pub bandwidth_slice_ns: Nanos,
    /// Mean time between two wake-ups of other tasks on a processor; 0 for none.
    ///
    /// They run for microseconds, but make the kernel account for what ran: a quota's slice is then
    /// taken, or its exhaustion noticed, between two ticks. Processors that took slices at the same
    /// ticks no longer do, and share the rest of a quota more evenly.
    pub wakeup_interval_ns: Nanos,
    /// Mean time between two interruptions of a processor, by a task of the host or by a machine below
    /// the host; 0 for none. Nothing is charged for that time.
    pub interruption_interval_ns: Nanos,
    /// Mean length of an interruption; exponentially distributed.
    pub interruption_ns: Nanos,
}

impl LinuxSettings {
    /// Returns the kernel's defaults: 250 ticks a second, a base slice of 0.7 ms times 1 + log2 of the
    /// number of processors (8 at most), quotas in slices of 5 ms.
    pub fn of(processors: usize) -> Self {
        let factor = 1 + processors.clamp(1, 8).ilog2();
        Self {
            tick_ns: 4 * MS,
            base_slice_ns: 700_000 * Nanos::from(factor),
            bandwidth_slice_ns: 5 * MS,
            wakeup_interval_ns: 0,
            interruption_interval_ns: 0,
            interruption_ns: 0,
        }
    }

    /// Returns the rate of checks of a processor besides its ticks.
    pub(super) fn checks_per_ns(&self) -> f64 {
        let rate = |interval: Nanos| if interval > 0 { 1.0 / interval as f64 } else { 0.0 };
        rate(self.wakeup_interval_ns) + rate(self.interruption_interval_ns)
    }
}
