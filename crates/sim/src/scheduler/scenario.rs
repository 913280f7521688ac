//! Keys of a scheduler scenario. Reservations and quotas of Linux start at a time drawn from the seed,
//! or at their `phase_ms`. Machines are placed on processors in the order of their names.
use super::bvt::BvtSettings;
use crate::error::Result;
use crate::scenarios::{default, default_count};
use serde::Deserialize;
use std::collections::BTreeMap;

pub use super::outcome::{run, SchedulerOutcome};

/// A scheduling policy by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// Xen's Credit scheduler.
    Credit,
    /// Xen's Credit2 scheduler, with one queue for all processors and without caps.
    Credit2,
    /// Xen's simple earliest deadline first.
    Sedf,
    /// Xen's borrowed virtual time.
    Bvt,
    /// Linux: weights (EEVDF), quotas (CFS bandwidth) and reservations (`SCHED_DEADLINE`).
    Linux,
}

/// A host, its virtual machines, and what is measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerScenario {
    /// Version of this format: 1.
    pub version: u32,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Purpose, and sources of the values.
    #[serde(default)]
    pub note: String,
    /// Scheduling policy.
    pub policy: PolicyName,
    /// Number of processors of the host.
    pub processors: usize,
    /// Speed of each processor, relative to a reference; all 1 if left out. `work_ratio` counts by it.
    #[serde(default)]
    pub speeds: Vec<f64>,
    /// Quotas by the speeds of the processors (Linux).
    #[serde(default)]
    pub allocation: Allocation,
    /// Length of the measured part, in seconds.
    #[serde(default = "default::<60>")]
    pub duration_s: f64,
    /// Length of the warm-up before it, in seconds.
    #[serde(default = "default::<10>")]
    pub warmup_s: f64,
    /// Shorter pauses are not observed, in milliseconds.
    #[serde(default = "default::<1>")]
    pub threshold_ms: f64,
    /// Length of the timeline from the start of the measured part, in seconds.
    #[serde(default = "default::<2>")]
    pub timeline_s: f64,
    /// Settings of Linux.
    #[serde(default)]
    pub linux: LinuxConfig,
    /// Settings of BVT.
    #[serde(default)]
    pub bvt: BvtSettings,
    /// Probe that times a fixed amount of work in every virtual CPU.
    pub fixed_work: Option<FixedWork>,
    /// Virtual machines by name.
    pub vms: BTreeMap<String, Vm>,
}

/// What machines get on processors of unequal speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// What the policy gives: the same machine does more work on a faster processor.
    #[default]
    AsScheduled,
    /// Equal work per weight for all machines, as much as the slowest processor can give.
    EqualWork,
}

/// Settings of Linux; a setting that is left out has the kernel's own default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinuxConfig {
    /// Tick; 4 (`CONFIG_HZ` 250) if left out.
    pub tick_ms: Option<f64>,
    /// Base slice of EEVDF; 0.7 times 1 + log2 of the processors (8 at most) if left out.
    pub base_slice_ms: Option<f64>,
    /// Part of a quota that a processor takes at a time; 5 if left out.
    pub bandwidth_slice_ms: Option<f64>,
    /// Rate at which other tasks of the host wake up on a processor, for a negligible time; what runs
    /// there is accounted for then, not only at ticks.
    pub wakeups_per_s: f64,
    /// Rate at which something else takes a processor for a while: a task of the host, or a machine
    /// below the host. No quota and no reservation is charged for it.
    pub interruptions_per_s: f64,
    /// Mean length of such an interruption; exponentially distributed.
    pub interruption_ms: f64,
}

/// A probe that times a fixed amount of work, started at random times.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedWork {
    /// CPU time of the work.
    pub work_ms: f64,
    /// Number of runs.
    #[serde(default = "default_count::<1000, _>")]
    pub starts: u32,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// Number of virtual CPUs, all with the same workload.
    #[serde(default = "default_count::<1, _>")]
    pub vcpus: usize,
    /// Workload of each virtual CPU.
    #[serde(default)]
    pub workload: WorkloadConfig,
    /// Processors to which its virtual CPUs are pinned in turn; empty: all processors.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Weight under contention (Credit, Linux); 256 (Linux: 100) if left out.
    pub weight: Option<u32>,
    /// Maximum CPU time of all its virtual CPUs, in percent of one processor (Credit).
    pub cap_percent: Option<u32>,
    /// CPU time of each virtual CPU in each period (SEDF, Linux).
    pub reservation: Option<ReservationConfig>,
    /// CPU time of all its virtual CPUs in each period (Linux).
    pub quota: Option<QuotaConfig>,
    /// Inverse weight (BVT); 10 if left out.
    pub mcu_advance: Option<u32>,
}

/// Workload of each virtual CPU of a machine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum WorkloadConfig {
    /// Always runnable.
    #[default]
    Spinning,
    /// Works at every multiple of a period.
    Periodic {
        /// Period.
        every_ms: f64,
        /// CPU time in each period.
        work_ms: f64,
    },
    /// Works and sleeps in turn, both exponentially distributed.
    Bursty {
        /// Mean CPU time of a burst.
        work_ms: f64,
        /// Mean length of a sleep.
        sleep_ms: f64,
    },
    /// Serves requests, which are distributed over the virtual CPUs.
    Web {
        /// Arrival rate for the whole machine.
        requests_per_s: f64,
        /// Mean CPU time of a request.
        service_ms: f64,
        /// Whether all requests take the same CPU time; else it is exponentially distributed.
        #[serde(default)]
        constant: bool,
        /// Number of simultaneous requests.
        #[serde(default = "default_count::<1, _>")]
        burst: u32,
    },
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReservationConfig {
    /// CPU time in each period.
    pub slice_ms: f64,
    /// Period.
    pub period_ms: f64,
    /// Whether it may use idle time too (SEDF).
    #[serde(default)]
    pub extra: bool,
    /// Start of the first period (Linux); random if left out.
    pub phase_ms: Option<f64>,
}

/// A quota.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaConfig {
    /// CPU time in each period as a number of processors.
    pub cpus: f64,
    /// Period.
    #[serde(default = "default::<100>")]
    pub period_ms: f64,
    /// CPU time that may be saved for later periods.
    #[serde(default)]
    pub burst_ms: f64,
    /// First refill; random if left out.
    pub phase_ms: Option<f64>,
}

impl QuotaConfig {
    /// A quota of so many processors, with the default period.
    pub(super) fn of(cpus: f64) -> Self {
        Self { cpus, period_ms: default::<100>(), burst_ms: 0.0, phase_ms: None }
    }
}

impl SchedulerScenario {
    /// Returns an error for a scenario that cannot be simulated.
    pub fn check(&self) -> Result<()> {
        self.allocated()?.host(0).and_then(|host| host.check())
    }
}
