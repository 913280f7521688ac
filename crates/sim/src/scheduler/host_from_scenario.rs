//! The host that a scenario describes.
use super::linux::{LinuxSettings, Quota};
use super::scenario::{
    PolicyName, QuotaConfig, ReservationConfig, SchedulerScenario, Vm, WorkloadConfig,
};
use super::{Domain, Host, Reservation, Scheduler, Workload};
use crate::arrivals::Arrivals;
use crate::error::{check_version, positive, refuse, within, Result};
use crate::random::{Distribution, RandomStream};
use crate::Nanos;
use nephoscope_wire::error::Error;

/// Longer durations are most likely in another unit.
const MAX_DURATION_MS: f64 = 1e9;
/// Maximum number of processors and of virtual CPUs.
const MAX_CPUS: usize = 4096;
/// Maximum number of runs of the fixed-work probe, which are all drawn before the first.
const MAX_STARTS: f64 = 1e6;
/// Source of randomness of the phases of periods; workloads have the numbers from 0 on.
const PHASES: u64 = 1 << 40;

/// Converts milliseconds above zero to nanoseconds.
fn duration(key: &str, ms: f64) -> Result<Nanos> {
    let ms = positive(key, ms)?;
    if ms > MAX_DURATION_MS {
        return refuse(format!("{key} is {ms} ms, more than 1000000 s."), "Give a shorter time.");
    }
    Ok(((ms * 1e6).round() as Nanos).max(1))
}

/// Converts milliseconds from zero on to nanoseconds.
fn duration_or_zero(key: &str, ms: f64) -> Result<Nanos> {
    if ms == 0.0 {
        return Ok(0);
    }
    duration(key, ms)
}

impl SchedulerScenario {
    /// Returns the whole duration and that of the warm-up.
    pub(super) fn durations(&self) -> Result<(Nanos, Nanos)> {
        let measured = duration("duration_s", self.duration_s * 1e3)?;
        let warm_up = duration_or_zero("warmup_s", self.warmup_s * 1e3)?;
        Ok((warm_up + measured, warm_up))
    }

    pub(super) fn threshold_ns(&self) -> Result<Nanos> {
        duration_or_zero("threshold_ms", self.threshold_ms)
    }

    /// Returns the host, with what the seed determines. Returns an error for values out of bounds, and
    /// for settings that the policy does not have.
    pub fn host(&self, seed: u64) -> Result<Host> {
        check_version(self.version)?;
        let vcpus = self.vms.values().fold(0usize, |sum, vm| sum.saturating_add(vm.vcpus));
        if self.processors > MAX_CPUS || vcpus > MAX_CPUS {
            return refuse(
                format!("The host has {} processors and {vcpus} virtual CPUs.", self.processors),
                format!("Give it at most {MAX_CPUS} of each."),
            );
        }
        self.durations()?;
        self.threshold_ns()?;
        duration_or_zero("timeline_s", self.timeline_s * 1e3)?;
        if let Some(probe) = &self.fixed_work {
            duration("fixed_work.work_ms", probe.work_ms)?;
            within("fixed_work.starts", f64::from(probe.starts), 1.0, MAX_STARTS)?;
        }
        let mut phases = RandomStream::new(seed, 0, PHASES);
        let domain = |(name, vm): (&String, &Vm)| {
            self.domain(vm, &mut phases).map_err(|error| Error {
                message: format!("vms.{name}: {}", error.message),
                ..error
            })
        };
        let domains = self.vms.iter().map(domain).collect::<Result<_, _>>()?;
        Ok(Host { processors: self.processors, domains, scheduler: self.scheduler()? })
    }

    fn scheduler(&self) -> Result<Scheduler> {
        for (key, is_given, policy) in [
            ("linux", self.linux != Default::default(), PolicyName::Linux),
            ("bvt", self.bvt != Default::default(), PolicyName::Bvt),
        ] {
            if is_given && self.policy != policy {
                return refuse(
                    format!("{key} is set, but the policy is {:?}.", self.policy),
                    format!("Remove {key}."),
                );
            }
        }
        Ok(match self.policy {
            PolicyName::Credit => Scheduler::Credit,
            PolicyName::Credit2 => Scheduler::Credit2,
            PolicyName::Sedf => Scheduler::Sedf,
            PolicyName::Bvt => Scheduler::Bvt(self.bvt),
            PolicyName::Linux => Scheduler::Linux(self.linux_settings()?),
        })
    }

    fn linux_settings(&self) -> Result<LinuxSettings> {
        let (settings, own) = (&self.linux, LinuxSettings::of(self.processors));
        let setting = |key: &str, ms: Option<f64>, own: Nanos| match ms {
            Some(ms) => duration(&format!("linux.{key}"), ms),
            None => Ok(own),
        };
        let wakeups = within("linux.wakeups_per_s", settings.wakeups_per_s, 0.0, 1e5)?;
        let (rate, length_ms) = (settings.interruptions_per_s, settings.interruption_ms);
        within("linux.interruptions_per_s", rate, 0.0, 1e5)?;
        if (rate > 0.0) != (length_ms > 0.0) {
            return refuse(
                format!("linux.interruptions_per_s is {rate}, and interruption_ms {length_ms}."),
                "Give both, or neither.",
            );
        }
        if rate * length_ms > 0.9 * 1e3 {
            return refuse(
                format!(
                    "linux: interruptions take {:.0} % of each processor.",
                    rate * length_ms / 10.0
                ),
                "Lower interruptions_per_s or interruption_ms: 90 % at most.",
            );
        }
        let interval = |per_s: f64| if per_s > 0.0 { (1e9 / per_s).round() as Nanos } else { 0 };
        let bandwidth_slice = (settings.bandwidth_slice_ms, own.bandwidth_slice_ns);
        Ok(LinuxSettings {
            wakeup_interval_ns: interval(wakeups),
            interruption_interval_ns: interval(rate),
            interruption_ns: duration_or_zero("linux.interruption_ms", length_ms)?,
            tick_ns: setting("tick_ms", settings.tick_ms, own.tick_ns)?,
            base_slice_ns: setting("base_slice_ms", settings.base_slice_ms, own.base_slice_ns)?,
            bandwidth_slice_ns: setting(
                "bandwidth_slice_ms",
                bandwidth_slice.0,
                bandwidth_slice.1,
            )?,
        })
    }

    fn domain(&self, vm: &Vm, phases: &mut RandomStream) -> Result<Domain> {
        self.check_settings(vm)?;
        positive("vcpus", vm.vcpus as f64)?;
        if let Some(cpu) = vm.cpus.iter().find(|cpu| **cpu >= self.processors) {
            let what = format!("cpus names processor {cpu}, and there are {}.", self.processors);
            return refuse(what, "They count from 0.");
        }
        let linux = self.policy == PolicyName::Linux;
        let own = Domain::default();
        let mut domain = Domain {
            weight: vm.weight.unwrap_or(if linux { 100 } else { own.weight }),
            cap: vm.cap_percent.unwrap_or(own.cap),
            mcu_advance: vm.mcu_advance.unwrap_or(own.mcu_advance),
            vcpus: vec![vm.workload.workload(vm.vcpus)?; vm.vcpus],
            cpus: vm.cpus.clone(),
            ..own
        };
        if let Some(reservation) = &vm.reservation {
            domain.reservation = Some(reservation.reservation(linux, phases)?);
        }
        if let Some(quota) = &vm.quota {
            domain.quota = Some(quota.quota(phases)?);
        }
        Ok(domain)
    }

    /// Returns an error for a setting that the policy does not have.
    fn check_settings(&self, vm: &Vm) -> Result<()> {
        use PolicyName::{Bvt, Credit, Credit2, Linux, Sedf};
        let reservation = vm.reservation.as_ref();
        let settings: [(&str, bool, &[PolicyName]); 7] = [
            ("weight", vm.weight.is_some(), &[Credit, Credit2, Linux]),
            ("cap_percent", vm.cap_percent.is_some(), &[Credit]),
            ("reservation", reservation.is_some(), &[Sedf, Linux]),
            ("reservation.extra", reservation.is_some_and(|config| config.extra), &[Sedf]),
            (
                "reservation.phase_ms",
                reservation.is_some_and(|reservation| reservation.phase_ms.is_some()),
                &[Linux],
            ),
            ("quota", vm.quota.is_some(), &[Linux]),
            ("mcu_advance", vm.mcu_advance.is_some(), &[Bvt]),
        ];
        for (key, is_given, policies) in settings {
            if is_given && !policies.contains(&self.policy) {
                return refuse(
                    format!("{key} has no meaning under {:?}.", self.policy),
                    format!("Remove it, or use a policy that has it: {policies:?}."),
                );
            }
        }
        if matches!(self.policy, Credit | Credit2) && !vm.cpus.is_empty() {
            let policy = self.policy;
            let what =
                format!("cpus is set, and {policy:?} moves virtual CPUs between processors.");
            return refuse(what, "Remove cpus.");
        }
        if reservation.is_some() && vm.quota.is_some() {
            let what = "reservation and quota are set; a quota does not apply to reserved time.";
            return refuse(what, "Remove one of them.");
        }
        Ok(())
    }
}

/// Returns the given phase, or a random one within the period.
fn phase(
    key: &str,
    phase_ms: Option<f64>,
    period: Nanos,
    phases: &mut RandomStream,
) -> Result<Nanos> {
    // Drawn in any case: a given phase does not alter those of other machines.
    let drawn = phases.below(period);
    phase_ms.map_or(Ok(drawn), |ms| Ok(duration_or_zero(key, ms)? % period))
}

impl ReservationConfig {
    fn reservation(&self, linux: bool, phases: &mut RandomStream) -> Result<Reservation> {
        // SEDF takes a slice of zero.
        let slice = if linux { duration } else { duration_or_zero };
        let slice_ns = slice("reservation.slice_ms", self.slice_ms)?;
        let period_ns = duration("reservation.period_ms", self.period_ms)?;
        let phase_ns = phase("reservation.phase_ms", self.phase_ms, period_ns, phases)?;
        Ok(Reservation { slice_ns, period_ns, extra: self.extra, phase_ns })
    }
}

impl QuotaConfig {
    fn quota(&self, phases: &mut RandomStream) -> Result<Quota> {
        let period_ns = duration("quota.period_ms", self.period_ms)?;
        let cpus = positive("quota.cpus", self.cpus)?;
        Ok(Quota {
            quota_ns: duration("quota.cpus times quota.period_ms", cpus * self.period_ms)?,
            period_ns,
            burst_ns: duration_or_zero("quota.burst_ms", self.burst_ms)?,
            phase_ns: phase("quota.phase_ms", self.phase_ms, period_ns, phases)?,
        })
    }
}

impl WorkloadConfig {
    /// Returns the workload of one of `vcpus` virtual CPUs.
    fn workload(&self, vcpus: usize) -> Result<Workload> {
        let mean = |key: &str, ms: f64| duration(key, ms).map(|ns| ns as f64);
        Ok(match *self {
            Self::Spinning => Workload::Spinning,
            Self::Periodic { every_ms, work_ms } => Workload::Periodic {
                period_ns: duration("workload.periodic.every_ms", every_ms)?,
                work_ns: duration("workload.periodic.work_ms", work_ms)?,
            },
            Self::Bursty { work_ms, sleep_ms } => Workload::Bursty {
                work: Distribution::Exponential(mean("workload.bursty.work_ms", work_ms)?),
                sleep: Distribution::Exponential(mean("workload.bursty.sleep_ms", sleep_ms)?),
            },
            Self::Web { requests_per_s, service_ms, constant, burst } => {
                let service = mean("workload.web.service_ms", service_ms)?;
                let rate = positive("workload.web.requests_per_s", requests_per_s)? / vcpus as f64;
                let utilisation = rate * service / 1e9;
                if utilisation >= 1.0 {
                    return refuse(
                        format!(
                            "workload.web offers {utilisation:.2} times the capacity of the \
                             machine's virtual CPUs on processors of their own."
                        ),
                        "Lower requests_per_s or service_ms, or add vcpus.",
                    );
                }
                let arrivals = match burst {
                    1 => Arrivals::poisson(rate)?,
                    size => Arrivals::bursts(size, rate)?,
                };
                let service = match constant {
                    true => Distribution::Constant(service),
                    false => Distribution::Exponential(service),
                };
                Workload::Web { arrivals, service }
            }
        })
    }
}
