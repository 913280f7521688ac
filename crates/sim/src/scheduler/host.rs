//! The host: processors, virtual machines, and the scheduling policy.
use super::bvt::BvtSettings;
use super::linux::{LinuxSettings, Quota};
use super::workload::Workload;
use crate::error::{positive, refuse, Result};
use crate::Nanos;

/// CPU time of a virtual CPU in each period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    pub slice_ns: Nanos,
    pub period_ns: Nanos,
    /// Whether it may use idle time too (SEDF).
    pub extra: bool,
    /// Start of the first period (Linux).
    pub phase_ns: Nanos,
}

#[derive(Clone, Debug)]
pub struct Domain {
    /// Weight under contention (Credit, Credit2, Linux).
    pub weight: u32,
    /// Maximum in percent of one processor (Credit); 0 is no cap.
    pub cap: u32,
    /// Inverse weight (BVT).
    pub mcu_advance: u32,
    /// Time of all its virtual CPUs together in each period (Linux).
    pub quota: Option<Quota>,
    /// Of each of its virtual CPUs. None for a domain that has a weight (Linux), or idle time alone (SEDF).
    pub reservation: Option<Reservation>,
    /// Processors to which its virtual CPUs are pinned in turn; empty: all.
    pub cpus: Vec<usize>,
    /// One workload for each virtual CPU.
    pub vcpus: Vec<Workload>,
}

impl Default for Domain {
    fn default() -> Self {
        Self {
            weight: 256,
            cap: 0,
            mcu_advance: 10,
            quota: None,
            reservation: None,
            cpus: Vec::new(),
            vcpus: vec![Workload::Spinning],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Xen's Credit scheduler, of release 4.1.
    Credit,
    /// Xen's Credit2 scheduler, with one queue and without caps.
    Credit2,
    /// Xen's simple earliest deadline first.
    Sedf,
    /// Xen's borrowed virtual time.
    Bvt(BvtSettings),
    /// Linux: weights (EEVDF), quotas (CFS bandwidth), reservations (`SCHED_DEADLINE`).
    Linux(LinuxSettings),
}

/// A physical machine and its virtual machines.
#[derive(Clone, Debug)]
pub struct Host {
    pub processors: usize,
    pub domains: Vec<Domain>,
    pub scheduler: Scheduler,
}

impl Host {
    /// Returns home processor and domain of each virtual CPU, through all domains.
    pub(super) fn vcpus(&self) -> Vec<(usize, usize)> {
        let mut vcpus = Vec::new();
        for (number, domain) in self.domains.iter().enumerate() {
            for vcpu in 0..domain.vcpus.len() {
                let home = match domain.cpus.len() {
                    0 => vcpus.len() % self.processors,
                    pinned => domain.cpus[vcpu % pinned],
                };
                vcpus.push((home, number));
            }
        }
        vcpus
    }

    /// Returns an error for no processors, no virtual CPUs, or a weight of 0.
    pub(super) fn check(&self) -> Result<()> {
        positive("processors", self.processors as f64)?;
        if self.domains.iter().all(|domain| domain.vcpus.is_empty()) {
            return refuse("vms: no machine has a virtual CPU.", "Give one a workload.");
        }
        for (number, domain) in self.domains.iter().enumerate() {
            positive(&format!("The weight of domain {number}"), f64::from(domain.weight))?;
            positive(&format!("mcu_advance of domain {number}"), f64::from(domain.mcu_advance))?;
        }
        Ok(())
    }
}
