//! Xen's borrowed virtual time: the virtual CPU with the least virtual time runs.
use super::host::Host;
use super::policy::{Decision, Policy, Processor};
use crate::Nanos;
use serde::Deserialize;

/// Minimum charging unit.
const MCU: Nanos = 100_000;
const CONTEXT_ALLOWANCE: Nanos = 5_000_000;

/// Settings of BVT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BvtSettings {
    /// Whether the lead of the second virtual CPU is taken in nanoseconds instead of minimum charging
    /// units, as in Xen: every quantum is then the context allowance in effect.
    pub as_in_xen: bool,
}

struct BvtVcpu {
    /// Actual virtual time, in units of advance.
    virtual_time: u64,
    advance: u64,
    is_runnable: bool,
    home: usize,
}

pub struct Bvt {
    vcpus: Vec<BvtVcpu>,
    settings: BvtSettings,
}

impl Bvt {
    pub fn new(host: &Host, settings: BvtSettings) -> Self {
        let vcpu = |(home, domain): (usize, usize)| BvtVcpu {
            virtual_time: 0,
            advance: u64::from(host.domains[domain].mcu_advance),
            is_runnable: false,
            home,
        };
        let vcpus = host.vcpus().into_iter().map(vcpu).collect();
        Self { vcpus, settings }
    }

    /// Returns virtual time and number of the runnable virtual CPUs of a processor.
    fn runnable(&self, processor: usize) -> impl Iterator<Item = (u64, usize)> + '_ {
        let vcpus = self.vcpus.iter().enumerate();
        vcpus
            .filter(move |(_, vcpu)| vcpu.is_runnable && vcpu.home == processor)
            .map(|(number, vcpu)| (vcpu.virtual_time, number))
    }
}

impl Policy for Bvt {
    fn charge(&mut self, vcpu: usize, ran_ns: Nanos) {
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.virtual_time += ran_ns.div_ceil(MCU) * vcpu.advance;
    }

    fn wake(&mut self, vcpu: usize, _: Nanos, processors: &[Processor]) -> Option<usize> {
        let home = self.vcpus[vcpu].home;
        let min = self.runnable(home).map(|(virtual_time, _)| virtual_time).min();
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.virtual_time = vcpu.virtual_time.max(min.unwrap_or(vcpu.virtual_time));
        vcpu.is_runnable = true;
        let virtual_time = vcpu.virtual_time;
        match processors[home].current {
            Some(current) if self.vcpus[current].virtual_time <= virtual_time => None,
            _ => Some(home),
        }
    }

    fn block(&mut self, vcpu: usize, _: Nanos) {
        self.vcpus[vcpu].is_runnable = false;
    }

    fn decide(&mut self, processor: usize, _: Option<usize>, now: Nanos) -> Decision {
        let mut runnable: Vec<(u64, usize)> = self.runnable(processor).collect();
        runnable.sort_unstable();
        let Some((min, vcpu)) = runnable.first().copied() else {
            return Decision { vcpu: None, decide_at: None };
        };
        let quantum = match runnable.get(1) {
            None => 10 * CONTEXT_ALLOWANCE,
            Some((second, _)) => {
                let lead = (second - min) / self.vcpus[vcpu].advance;
                let unit = if self.settings.as_in_xen { 1 } else { MCU };
                lead * unit + CONTEXT_ALLOWANCE
            }
        };
        Decision { vcpu: Some(vcpu), decide_at: Some(now + quantum) }
    }
}
