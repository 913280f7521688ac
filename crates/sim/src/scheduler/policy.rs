//! What every scheduling policy implements, and the processors and virtual CPUs it decides about.
use super::workload::WorkloadTask;
use crate::Nanos;

/// An uninterrupted run of a virtual CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunInterval {
    /// Number of the virtual CPU, through all domains.
    pub vcpu: usize,
    pub processor: usize,
    pub from: Nanos,
    pub to: Nanos,
}

#[derive(Clone, Debug)]
pub struct Vcpu {
    pub task: WorkloadTask,
    /// It is running or waiting to run.
    pub is_runnable: bool,
    /// The processor on which it runs.
    pub processor: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Processor {
    /// The virtual CPU that runs.
    pub current: Option<usize>,
    /// Time up to which `current` has been charged; in the future during an interruption.
    pub charged_until: Nanos,
    /// End of an interruption, during which nothing runs.
    pub interrupted_until: Nanos,
    /// When the policy decides again at the latest.
    pub decide_at: Option<Nanos>,
    /// Number of the valid timer; earlier ones are void.
    pub timer: u64,
}

/// A decision for one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The virtual CPU that runs next; None leaves the processor idle.
    pub vcpu: Option<usize>,
    /// When to decide again at the latest; None if an event will require it.
    pub decide_at: Option<Nanos>,
}

pub trait Policy {
    /// `vcpu` ran for `ran_ns` until now.
    fn charge(&mut self, vcpu: usize, ran_ns: Nanos);
    /// `vcpu` becomes runnable. Returns the processor that has to decide again.
    fn wake(&mut self, vcpu: usize, now: Nanos, processors: &[Processor]) -> Option<usize>;
    /// Returns the processor to charge before `vcpu` wakes; None if waking depends on no charge.
    fn charged_before_wake(&self, _vcpu: usize) -> Option<usize> {
        None
    }
    /// `vcpu`, which has been charged, has nothing to do from `now` on.
    fn block(&mut self, vcpu: usize, now: Nanos);
    /// Decides what runs next on a processor. `current` ran there until now and is still runnable.
    fn decide(&mut self, processor: usize, current: Option<usize>, now: Nanos) -> Decision;
    /// Returns the interval at which [`Policy::tick`] is called for each processor; None for never.
    fn tick_ns(&self) -> Option<Nanos> {
        None
    }
    /// Returns the processor of the `place`th of simultaneous ticks; called from place 0 on.
    fn tick_order(&mut self, place: usize) -> usize {
        place
    }
    /// A tick of a processor; `current` has been charged. Returns whether the processor decides again.
    fn tick(&mut self, _processor: usize, _current: Option<usize>) -> bool {
        false
    }
    /// Returns when a processor is checked next besides its ticks, in the same way; None for never.
    fn next_check_in(&mut self) -> Option<Nanos> {
        None
    }
    /// Returns for how long the processor that was just checked is interrupted, uncharged.
    fn interruption_ns(&mut self) -> Nanos {
        0
    }
    /// Returns the interval at which [`Policy::account`] is called; None for never.
    fn accounting_ns(&self) -> Option<Nanos> {
        None
    }
    /// Accounts for the whole host.
    fn account(&mut self) -> Parking {
        Parking::default()
    }
    /// Returns a timer that was set since the last call: its time and number. Called until None.
    fn take_timer(&mut self) -> Option<(Nanos, usize)> {
        None
    }
    /// A timer expires. Returns the processors that have to decide again.
    fn expire(&mut self, _timer: usize, _now: Nanos) -> Vec<usize> {
        Vec::new()
    }
}

/// Virtual CPUs whose state an accounting changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parking {
    /// They stop at once.
    pub parked: Vec<usize>,
    /// They may run again.
    pub unparked: Vec<usize>,
}
