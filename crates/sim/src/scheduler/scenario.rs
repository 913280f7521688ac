//! A scheduler scenario: JSON, checked, and run.
//!
//! | key | meaning | default |
//! |---|---|---|
//! | `version` | 1 | |
//! | `name`, `note` | what it is called, and what it shows | none |
//! | `policy` | `credit`, `sedf`, `bvt`, `linux` | |
//! | `processors` | of the host | |
//! | `duration_s`, `warmup_s` | what is counted, and what goes before it | 60, 10 |
//! | `threshold_ms` | a shorter pause is not seen | 1 |
//! | `timeline_s` | so much of the beginning is told interval by interval | 2 |
//! | `linux` | `tick_ms` (4), `base_slice_ms` (0.7 times 1 + log2 of the processors, 8 at most), `bandwidth_slice_ms` (5), `wakeups_per_s` (0), `taken_per_s` (0), `taken_ms` (0) | |
//! | `bvt` | `as_in_xen` (false) | |
//! | `fixed_work` | `work_ms`, `starts` (1000): the probe that does a fixed amount of work | none |
//! | `vms` | by name; they are placed in the order of their names | |
//!
//! A virtual machine: `vcpus` (1), `workload` (`spinning`, `periodic`, `bursty`, `web`), `cpus` (where
//! its virtual CPUs stay, in turn), and what its policy knows: `weight` (256; Linux 100), `cap_percent`
//! of one processor (Credit), `reservation` of each virtual CPU with `slice_ms`, `period_ms`, `extra`
//! (SEDF; Linux: `SCHED_DEADLINE`, without `extra`), `mcu_advance` (10, BVT), `quota` with `cpus`,
//! `period_ms` (100), `burst_ms` (0) (Linux). Reservations and quotas of Linux begin at a moment drawn
//! from the seed, or at `phase_ms`.
use crate::error::Refused;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use super::outcome::{run, Interval, Outcome};

/// The name of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Named {
    /// Xen's Credit scheduler.
    Credit,
    /// Xen's simple earliest deadline first.
    Sedf,
    /// Xen's borrowed virtual time.
    Bvt,
    /// Linux: weights, quotas and reservations together.
    Linux,
}

/// A host, what runs on it, and what is looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// 1.
    pub version: u32,
    /// What it is called.
    #[serde(default)]
    pub name: String,
    /// What it shows, and where its figures come from.
    #[serde(default)]
    pub note: String,
    /// How processors are given out.
    pub policy: Named,
    /// Processors of the host.
    pub processors: usize,
    /// Length of what is counted, in seconds.
    #[serde(default = "sixty")]
    pub duration_s: f64,
    /// Length of what goes before it, in seconds.
    #[serde(default = "ten")]
    pub warmup_s: f64,
    /// A shorter pause is not seen, in milliseconds.
    #[serde(default = "one")]
    pub threshold_ms: f64,
    /// So many seconds of what is counted are told interval by interval.
    #[serde(default = "two")]
    pub timeline_s: f64,
    /// Settings of Linux.
    #[serde(default)]
    pub linux: LinuxGiven,
    /// Settings of BVT.
    #[serde(default)]
    pub bvt: BvtGiven,
    /// The probe that does a fixed amount of work.
    #[serde(default)]
    pub fixed_work: Option<FixedWork>,
    /// Virtual machines by name.
    pub vms: BTreeMap<String, Vm>,
}

/// Settings of Linux; None takes the kernel's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinuxGiven {
    /// The tick: 4 at `CONFIG_HZ` 250.
    pub tick_ms: Option<f64>,
    /// What a runnable one is given at a time.
    pub base_slice_ms: Option<f64>,
    /// What a processor takes of a quota at a time.
    pub bandwidth_slice_ms: Option<f64>,
    /// How often a second something else of the host wakes on a processor, for no time worth telling;
    /// what runs there is accounted for then, and not only at ticks.
    pub wakeups_per_s: f64,
    /// How often a second something else has a processor for a while: a program of the host, or a
    /// machine below the host. No quota and no reservation is charged for it.
    pub taken_per_s: f64,
    /// How long it has it, on average; exponentially distributed.
    pub taken_ms: f64,
}

/// Settings of BVT.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BvtGiven {
    /// See [`BvtSettings::as_in_xen`].
    pub as_in_xen: bool,
}

/// A probe that does a fixed amount of work, begun at moments without preference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedWork {
    /// CPU time of the work.
    pub work_ms: f64,
    /// How often it is begun.
    #[serde(default = "thousand")]
    pub starts: u32,
}

/// A virtual machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// Virtual CPUs, all with the same workload.
    #[serde(default = "one_vcpu")]
    pub vcpus: usize,
    /// What each of them does.
    #[serde(default)]
    pub workload: Work,
    /// Processors on which its virtual CPUs stay, in turn; none: in turn over all.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Weight under contention.
    #[serde(default)]
    pub weight: Option<u32>,
    /// At most so many per cent of one processor, for all its virtual CPUs.
    #[serde(default)]
    pub cap_percent: Option<u32>,
    /// Time of each virtual CPU in each period.
    #[serde(default)]
    pub reservation: Option<ReservationGiven>,
    /// Time of all its virtual CPUs in each period.
    #[serde(default)]
    pub quota: Option<QuotaGiven>,
    /// Inverse weight of BVT.
    #[serde(default)]
    pub mcu_advance: Option<u32>,
}

/// What each virtual CPU of a machine does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Work {
    /// It never waits.
    #[default]
    Spinning,
    /// It works at every multiple of a period.
    Periodic {
        /// The period.
        every_ms: f64,
        /// CPU time of each.
        work_ms: f64,
    },
    /// It works and sleeps, each exponentially distributed.
    Bursty {
        /// Mean CPU time of a burst.
        work_ms: f64,
        /// Mean sleep.
        sleep_ms: f64,
    },
    /// It serves requests; those of the machine are spread over its virtual CPUs.
    Web {
        /// Requests of the whole machine.
        requests_per_s: f64,
        /// Mean CPU time of a request.
        service_ms: f64,
        /// Whether every request takes as long; else exponentially distributed.
        #[serde(default)]
        constant: bool,
        /// Requests that come at one moment.
        #[serde(default = "one_request")]
        burst: u32,
    },
}

/// Slice and period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReservationGiven {
    /// Time in each period.
    pub slice_ms: f64,
    /// The period.
    pub period_ms: f64,
    /// Whether it may use what nobody else wants (SEDF).
    #[serde(default)]
    pub extra: bool,
    /// When the first period begins (Linux).
    #[serde(default)]
    pub phase_ms: Option<f64>,
}

/// Quota and period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaGiven {
    /// So many processors' time.
    pub cpus: f64,
    /// The period.
    #[serde(default = "hundred")]
    pub period_ms: f64,
    /// What may be saved for later.
    #[serde(default)]
    pub burst_ms: f64,
    /// When the first refill comes.
    #[serde(default)]
    pub phase_ms: Option<f64>,
}

impl Scenario {
    /// A scenario from its JSON. Refused: what is no JSON, an unknown or missing key, and whatever
    /// [`Scenario::check`] refuses.
    pub fn from_json(text: &str) -> Result<Self, Refused> {
        let scenario: Self = serde_json::from_str(text).map_err(|why| {
            Refused::new(
                format!("The scheduler scenario cannot be read: {why}."),
                "Put the key named there right.",
            )
        })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Whether it can be simulated.
    pub fn check(&self) -> Result<(), Refused> {
        self.host(0).and_then(|host| host.check())
    }
}

fn sixty() -> f64 {
    60.0
}
fn ten() -> f64 {
    10.0
}
fn one() -> f64 {
    1.0
}
fn two() -> f64 {
    2.0
}
fn hundred() -> f64 {
    100.0
}
fn thousand() -> u32 {
    1000
}
fn one_vcpu() -> usize {
    1
}
fn one_request() -> u32 {
    1
}
