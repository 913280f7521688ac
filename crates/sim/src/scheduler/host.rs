//! The host: processors, what runs on them, and how they are given out.
use super::bvt::BvtSettings;
use super::linux::{LinuxSettings, Quota, Reservation};
use super::workload::Workload;
use crate::error::{above_zero, Refused};
use crate::Nanos;

/// Slice, period, and whether it may use what nobody else wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SedfTriple {
    /// Time in each period.
    pub slice_ns: Nanos,
    /// The period.
    pub period_ns: Nanos,
    /// Whether it may use idle time too.
    pub extra: bool,
}

/// A virtual machine.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Weight under contention (Credit, Linux), 256 as a rule.
    pub weight: u32,
    /// At most so many per cent of one processor (Credit); 0 is no cap.
    pub cap: u32,
    /// Of each of its virtual CPUs (SEDF).
    pub sedf: SedfTriple,
    /// Inverse weight (BVT), 10 as a rule.
    pub mcu_advance: u32,
    /// Time of all its virtual CPUs together in each period (Linux); None is no quota.
    pub quota: Option<Quota>,
    /// Time of each of its virtual CPUs in each period (Linux); None for one that has a weight.
    pub reservation: Option<Reservation>,
    /// Processors on which its virtual CPUs stay, in turn; none given: in turn over all.
    pub cpus: Vec<usize>,
    /// One workload for each virtual CPU.
    pub vcpus: Vec<Workload>,
}

impl Default for Domain {
    fn default() -> Self {
        let sedf = SedfTriple { slice_ns: 0, period_ns: 100_000_000, extra: true };
        Self {
            weight: 256,
            cap: 0,
            sedf,
            mcu_advance: 10,
            quota: None,
            reservation: None,
            cpus: Vec::new(),
            vcpus: vec![Workload::Spinning],
        }
    }
}

/// How processors are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Xen's Credit scheduler, of release 4.1.
    Credit,
    /// Xen's simple earliest deadline first.
    Sedf,
    /// Xen's borrowed virtual time.
    Bvt(BvtSettings),
    /// Linux: weights (EEVDF), quotas (CFS bandwidth), reservations (`SCHED_DEADLINE`).
    Linux(LinuxSettings),
}

/// A physical machine with what runs on it.
#[derive(Clone, Debug)]
pub struct Host {
    /// Processors.
    pub processors: usize,
    /// Virtual machines.
    pub domains: Vec<Domain>,
    /// How processors are given out.
    pub policy: Policy,
}

impl Host {
    /// Domain of each virtual CPU, through all domains.
    pub(super) fn domain_of_vcpus(&self) -> Vec<usize> {
        let of = |(number, domain): (usize, &Domain)| vec![number; domain.vcpus.len()];
        self.domains.iter().enumerate().flat_map(of).collect()
    }

    /// Where each virtual CPU stays, through all domains: on the processors that its domain names,
    /// in turn, else on all in turn.
    pub(super) fn homes(&self) -> Vec<usize> {
        let mut homes = Vec::new();
        for domain in &self.domains {
            for number in 0..domain.vcpus.len() {
                let home = match domain.cpus.len() {
                    0 => homes.len() % self.processors,
                    named => domain.cpus[number % named],
                };
                homes.push(home);
            }
        }
        homes
    }

    /// Refused: no processor, no virtual CPU, weights that are none.
    pub(super) fn check(&self) -> Result<(), Refused> {
        above_zero("the number of processors", self.processors as f64)?;
        if self.domain_of_vcpus().is_empty() {
            return Err(Refused::new("No domain has a virtual CPU.", "Give one a workload."));
        }
        for (number, domain) in self.domains.iter().enumerate() {
            above_zero(&format!("the weight of domain {number}"), f64::from(domain.weight))?;
            above_zero(&format!("mcu_advance of domain {number}"), f64::from(domain.mcu_advance))?;
        }
        Ok(())
    }
}
