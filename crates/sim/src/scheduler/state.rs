//! What every policy works on: processors, virtual CPUs, and who runs where since when.
use super::workload::Doing;
use crate::Nanos;

/// A virtual CPU ran from one moment to another without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Number of the virtual CPU, through all domains.
    pub vcpu: usize,
    /// Processor on which it ran.
    pub processor: usize,
    /// From when.
    pub from: Nanos,
    /// To when.
    pub to: Nanos,
}

/// A virtual CPU.
#[derive(Clone, Debug)]
pub struct Vcpu {
    /// What it does.
    pub doing: Doing,
    /// Whether it wants to run (or runs).
    pub wants: bool,
    /// The processor on which it runs.
    pub on: Option<usize>,
}

/// A processor.
#[derive(Clone, Debug, Default)]
pub struct Processor {
    /// Who runs.
    pub current: Option<usize>,
    /// Since when it has been charged for; later than now while it is taken away.
    pub since: Nanos,
    /// Until then something else has it, and nobody runs.
    pub taken_until: Nanos,
    /// When it decides again by its policy at the latest.
    pub again_at: Option<Nanos>,
    /// Number of the timer that still holds; earlier ones are void.
    pub timer: u64,
}

/// What a policy decides for a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Who runs next; None leaves it idle.
    pub vcpu: Option<usize>,
    /// When to decide again at the latest; None when something else will say so.
    pub again_at: Option<Nanos>,
}

/// A policy: decides, charges, and is told what changes.
pub trait Rules {
    /// `vcpu` ran for that long until `now`.
    fn ran(&mut self, vcpu: usize, ran_ns: Nanos, now: Nanos);
    /// `vcpu` wants to run from `now` on. Returns the processor that has to decide anew.
    fn wakes(&mut self, vcpu: usize, now: Nanos, processors: &[Processor]) -> Option<usize>;
    /// The processor that is charged before `vcpu` wakes; None where waking looks at no charge.
    fn charged_before(&self, _vcpu: usize) -> Option<usize> {
        None
    }
    /// `vcpu` has nothing to do from `now` on; it has been charged.
    fn blocks(&mut self, vcpu: usize, now: Nanos);
    /// Who runs next on a processor. `current` ran there until now and still wants to.
    fn decides(&mut self, processor: usize, current: Option<usize>, now: Nanos) -> Decision;
    /// How often [`Rules::ticks`] is called for each processor; None for never.
    fn tick_ns(&self) -> Option<Nanos> {
        None
    }
    /// Whose tick comes at that place among the ticks of one moment; asked from place 0 on.
    fn ticking(&mut self, place: usize) -> usize {
        place
    }
    /// A tick of a processor; `current` has been charged. Returns whether it decides anew.
    fn ticks(&mut self, _processor: usize, _current: Option<usize>, _now: Nanos) -> bool {
        false
    }
    /// When a processor is next looked at besides its ticks, and in the same way; None for never.
    fn accounted_after(&mut self) -> Option<Nanos> {
        None
    }
    /// For how long something else has the processor that was looked at, and nobody is charged.
    fn taken_ns(&mut self) -> Nanos {
        0
    }
    /// How often [`Rules::accounts`] is called; None for never.
    fn account_ns(&self) -> Option<Nanos> {
        None
    }
    /// The accounting of the whole host. Returns the virtual CPUs that have to stop at once, and
    /// those that may run again.
    fn accounts(&mut self, _now: Nanos) -> Accounted {
        Accounted::default()
    }
    /// An alarm that was set since the last call: when, and its number. Asked until there is none.
    fn alarm(&mut self) -> Option<(Nanos, usize)> {
        None
    }
    /// An alarm rings. Returns processors that have to decide anew.
    fn rings(&mut self, _alarm: usize, _now: Nanos, _processors: &[Processor]) -> Vec<usize> {
        Vec::new()
    }
}

/// What an accounting changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounted {
    /// They stop at once.
    pub parked: Vec<usize>,
    /// They may run again.
    pub unparked: Vec<usize>,
}
