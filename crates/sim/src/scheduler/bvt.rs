//! Xen's borrowed virtual time: the one that is furthest behind runs.
use super::host::Host;
use super::state::{Decision, Processor, Rules};
use crate::Nanos;

const MCU: Nanos = 100_000;
const ALLOWANCE: Nanos = 5_000_000;

/// A switch of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BvtSettings {
    /// Whether the time until the second would be ahead is in nanoseconds where it should be in
    /// MCU, as in Xen, which makes every quantum the context allowance in effect.
    pub as_in_xen: bool,
}

struct Virtual {
    /// Actual virtual time, in units of advance.
    avt: u64,
    advance: u64,
    wants: bool,
    running: bool,
    home: usize,
}

/// The scheduler's state.
pub struct Bvt {
    vcpus: Vec<Virtual>,
    settings: BvtSettings,
}

impl Bvt {
    /// All at virtual time zero; a virtual CPU stays on one processor.
    pub fn new(host: &Host, settings: BvtSettings) -> Self {
        let one = |(home, domain): (usize, usize)| Virtual {
            avt: 0,
            advance: u64::from(host.domains[domain].mcu_advance),
            wants: false,
            running: false,
            home,
        };
        let vcpus = host.homes().into_iter().zip(host.domain_of_vcpus()).map(one).collect();
        Self { vcpus, settings }
    }

    /// Those that want to run on a processor, the furthest behind first.
    fn line(&self, processor: usize) -> impl Iterator<Item = (u64, usize)> + '_ {
        let here = self.vcpus.iter().enumerate();
        here.filter(move |(_, one)| one.wants && one.home == processor)
            .map(|(number, one)| (one.avt, number))
    }
}

impl Rules for Bvt {
    fn ran(&mut self, vcpu: usize, ran_ns: Nanos, _: Nanos) {
        let one = &mut self.vcpus[vcpu];
        one.avt += ran_ns.div_ceil(MCU) * one.advance;
    }

    fn wakes(&mut self, vcpu: usize, _: Nanos, processors: &[Processor]) -> Option<usize> {
        let home = self.vcpus[vcpu].home;
        let least = self.line(home).map(|(avt, _)| avt).min();
        let one = &mut self.vcpus[vcpu];
        one.avt = one.avt.max(least.unwrap_or(one.avt));
        one.wants = true;
        let avt = one.avt;
        match processors[home].current {
            Some(current) if self.vcpus[current].avt <= avt => None,
            _ => Some(home),
        }
    }

    fn blocks(&mut self, vcpu: usize, _: Nanos) {
        self.vcpus[vcpu].wants = false;
    }

    fn decides(&mut self, processor: usize, _: Option<usize>, now: Nanos) -> Decision {
        let mut line: Vec<(u64, usize)> = self.line(processor).collect();
        line.sort_unstable();
        for (_, vcpu) in &line {
            self.vcpus[*vcpu].running = false;
        }
        let Some((least, vcpu)) = line.first().copied() else {
            return Decision { vcpu: None, again_at: None };
        };
        self.vcpus[vcpu].running = true;
        let quantum = match line.get(1) {
            None => 10 * ALLOWANCE,
            Some((second, _)) => {
                let behind = (second - least) / self.vcpus[vcpu].advance;
                let unit = if self.settings.as_in_xen { 1 } else { MCU };
                behind * unit + ALLOWANCE
            }
        };
        Decision { vcpu: Some(vcpu), again_at: Some(now + quantum) }
    }
}
