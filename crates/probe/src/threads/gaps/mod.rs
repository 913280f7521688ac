//! The scheduling-gap meter: a tight loop that looks at a clock and keeps what it missed.
pub mod cause;
pub mod processes;
pub mod read_intervals;
pub mod record;
pub mod start;
pub mod watch;

use crate::trial::session::Session;
pub use record::Record;

#[derive(Clone, Debug)]
pub struct GapMeterSettings {
    pub duration_ns: u64,
    /// A look that took at least this long is a gap.
    pub threshold_ns: u64,
    pub events_max: usize,
    /// How long the loop sleeps now and then; 0 for one that is always busy.
    pub sleep_ns: u64,
    /// How long it is busy between two sleeps.
    pub busy_ns: u64,
    /// Length of a tick, to the accuracy of a short calibration; the final one is the loop's own.
    pub ns_per_tick: f64,
    pub session: Session,
}

impl GapMeterSettings {
    /// Most sleeps in the window.
    pub fn sleeps_max(&self) -> usize {
        match self.sleep_ns {
            0 => 0,
            sleep_ns => (self.duration_ns / (sleep_ns + self.busy_ns) + 2) as usize,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct LoopPlacement {
    /// The CPU to pin to; `None` leaves it free.
    pub cpu: Option<usize>,
    /// Number of the loop among those of its CPU (among all where it is not pinned).
    pub process: usize,
    /// Number of the loop among all.
    pub number: usize,
}
