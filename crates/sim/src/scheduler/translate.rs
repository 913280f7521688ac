//! From a scenario as it is written to a host as it is simulated.
use super::linux::{LinuxSettings, Quota, Reservation};
use super::scenario::{Named, QuotaGiven, ReservationGiven, Scenario, Vm, Work};
use super::{BvtSettings, Domain, Host, Policy, SedfTriple, Workload};
use crate::arrivals::Arrivals;
use crate::error::{above_zero, Refused};
use crate::random::{Lengths, Stream};
use crate::Nanos;

const MS: f64 = 1e6;
/// Longer, and what is wanted is most likely another unit.
const LONGEST_S: f64 = 1e6;
/// More of them are no machine.
const MOST: usize = 4096;
/// All starts are drawn before the first.
const STARTS_MOST: u32 = 1_000_000;
/// Source of chance of the moments at which periods begin; workloads have the numbers from 0 on.
const PHASES: u64 = 1 << 40;

/// Milliseconds as nanoseconds. Refused: what is not above zero, what is too long.
fn length(name: &str, ms: f64) -> Result<Nanos, Refused> {
    let ms = above_zero(name, ms)?;
    if ms > LONGEST_S * 1e3 {
        let hint = "Give a shorter length.";
        return Err(Refused::new(format!("{name} is {ms} ms, more than {LONGEST_S:.0} s."), hint));
    }
    Ok(((ms * MS).round() as Nanos).max(1))
}

/// As [`length`], with zero allowed.
fn length_or_zero(name: &str, ms: f64) -> Result<Nanos, Refused> {
    if ms == 0.0 {
        return Ok(0);
    }
    length(name, ms)
}

impl Scenario {
    /// The whole length and the part of it that is not counted. Refused: lengths that are none.
    pub(super) fn lengths(&self) -> Result<(Nanos, Nanos), Refused> {
        let counted = length("duration_s", self.duration_s * 1e3)?;
        let before = length_or_zero("warmup_s", self.warmup_s * 1e3)?;
        Ok((before + counted, before))
    }

    /// The pause below which nothing is seen.
    pub(super) fn threshold_ns(&self) -> Result<Nanos, Refused> {
        length_or_zero("threshold_ms", self.threshold_ms)
    }

    /// The host that it describes, with what the seed decides. Refused: a value that is none, a
    /// setting that its policy does not know.
    pub fn host(&self, seed: u64) -> Result<Host, Refused> {
        if self.version != 1 {
            return Err(Refused::new(
                format!("The scheduler scenario is of version {}.", self.version),
                "This program knows version 1.",
            ));
        }
        let vcpus: usize = self.vms.values().map(|vm| vm.vcpus.min(MOST)).sum();
        if self.processors > MOST || vcpus > MOST {
            return Err(Refused::new(
                format!("The host has {} processors and {vcpus} virtual CPUs.", self.processors),
                format!("Give it at most {MOST} of each."),
            ));
        }
        self.lengths()?;
        self.threshold_ns()?;
        length_or_zero("timeline_s", self.timeline_s * 1e3)?;
        if let Some(probe) = &self.fixed_work {
            length("fixed_work.work_ms", probe.work_ms)?;
            above_zero("fixed_work.starts", f64::from(probe.starts))?;
            if probe.starts > STARTS_MOST {
                let what = format!("fixed_work.starts is {}.", probe.starts);
                return Err(Refused::new(what, format!("Give at most {STARTS_MOST}.")));
            }
        }
        let mut phases = Stream::of(seed, 0, PHASES);
        let domain = |(name, vm): (&String, &Vm)| {
            self.domain(name, vm, &mut phases).map_err(|refused| Refused {
                what: format!("vms.{name}: {}", refused.what),
                hint: refused.hint,
            })
        };
        let domains = self.vms.iter().map(domain).collect::<Result<_, _>>()?;
        Ok(Host { processors: self.processors, domains, policy: self.policy()? })
    }

    fn policy(&self) -> Result<Policy, Refused> {
        let other = |given: bool, name: &str| {
            let what = format!("The policy is {:?}, and {name} is set.", self.policy);
            match given {
                true => Err(Refused::new(what, format!("Leave {name} away."))),
                false => Ok(()),
            }
        };
        if self.policy != Named::Linux {
            other(self.linux != Default::default(), "linux")?;
        }
        if self.policy != Named::Bvt {
            other(self.bvt != Default::default(), "bvt")?;
        }
        Ok(match self.policy {
            Named::Credit => Policy::Credit,
            Named::Sedf => Policy::Sedf,
            Named::Bvt => Policy::Bvt(BvtSettings { as_in_xen: self.bvt.as_in_xen }),
            Named::Linux => Policy::Linux(self.linux_settings()?),
        })
    }

    fn linux_settings(&self) -> Result<LinuxSettings, Refused> {
        let own = LinuxSettings::of(self.processors);
        let given = |name: &str, ms: Option<f64>, own: Nanos| match ms {
            Some(ms) => length(&format!("linux.{name}"), ms),
            None => Ok(own),
        };
        let wakeups = self.linux.wakeups_per_s;
        if !(0.0..=1e5).contains(&wakeups) {
            let what = format!("linux.wakeups_per_s is {wakeups}.");
            return Err(Refused::new(what, "Give 0 to 100,000."));
        }
        let (taken, taken_ms) = (self.linux.taken_per_s, self.linux.taken_ms);
        if !(0.0..=1e5).contains(&taken) || (taken > 0.0) != (taken_ms > 0.0) {
            let what = format!("linux.taken_per_s is {taken}, and linux.taken_ms {taken_ms}.");
            return Err(Refused::new(what, "Give both, or neither; 0 to 100,000 a second."));
        }
        if taken * taken_ms > 0.9 * 1e3 {
            let what =
                format!("Something else has {:.0} % of each processor.", taken * taken_ms / 10.0);
            return Err(Refused::new(
                what,
                "Lower linux.taken_per_s or linux.taken_ms: 90 % at most.",
            ));
        }
        let every = |per_s: f64| if per_s > 0.0 { (1e9 / per_s).round() as Nanos } else { 0 };
        Ok(LinuxSettings {
            wakeup_every_ns: every(wakeups),
            taken_every_ns: every(taken),
            taken_ns: length_or_zero("linux.taken_ms", taken_ms)?,
            tick_ns: given("tick_ms", self.linux.tick_ms, own.tick_ns)?,
            base_slice_ns: given("base_slice_ms", self.linux.base_slice_ms, own.base_slice_ns)?,
            bandwidth_slice_ns: given(
                "bandwidth_slice_ms",
                self.linux.bandwidth_slice_ms,
                own.bandwidth_slice_ns,
            )?,
        })
    }

    fn domain(&self, _: &str, vm: &Vm, phases: &mut Stream) -> Result<Domain, Refused> {
        self.knows(vm)?;
        above_zero("vcpus", vm.vcpus as f64)?;
        if let Some(cpu) = vm.cpus.iter().find(|cpu| **cpu >= self.processors) {
            return Err(Refused::new(
                format!("cpus names processor {cpu}, and there are {}.", self.processors),
                "They count from 0.",
            ));
        }
        let linux = self.policy == Named::Linux;
        let own = Domain::default();
        let mut domain = Domain {
            weight: vm.weight.unwrap_or(if linux { 100 } else { own.weight }),
            cap: vm.cap_percent.unwrap_or(own.cap),
            mcu_advance: vm.mcu_advance.unwrap_or(own.mcu_advance),
            vcpus: vec![vm.workload.workload(vm.vcpus)?; vm.vcpus],
            cpus: vm.cpus.clone(),
            ..own
        };
        match &vm.reservation {
            Some(given) if linux => domain.reservation = Some(given.of_linux(phases)?),
            Some(given) => domain.sedf = given.triple()?,
            None => {}
        }
        if let Some(given) = &vm.quota {
            domain.quota = Some(given.quota(phases)?);
        }
        Ok(domain)
    }

    /// Refused: a setting that the policy does not know.
    fn knows(&self, vm: &Vm) -> Result<(), Refused> {
        use Named::{Bvt, Credit, Linux, Sedf};
        let reserved = vm.reservation.as_ref();
        let settings: [(&str, bool, &[Named]); 7] = [
            ("weight", vm.weight.is_some(), &[Credit, Linux]),
            ("cap_percent", vm.cap_percent.is_some(), &[Credit]),
            ("reservation", reserved.is_some(), &[Sedf, Linux]),
            ("reservation.extra", reserved.is_some_and(|one| one.extra), &[Sedf]),
            ("reservation.phase_ms", reserved.is_some_and(|one| one.phase_ms.is_some()), &[Linux]),
            ("quota", vm.quota.is_some(), &[Linux]),
            ("mcu_advance", vm.mcu_advance.is_some(), &[Bvt]),
        ];
        let stray = settings.iter().find(|(_, set, of)| *set && !of.contains(&self.policy));
        if let Some((name, _, of)) = stray {
            return Err(Refused::new(
                format!("{name} has no meaning under {:?}.", self.policy),
                format!("Leave it away, or take one of {of:?}."),
            ));
        }
        if self.policy == Credit && !vm.cpus.is_empty() {
            let what = "cpus is set, and Credit moves virtual CPUs to where there is room.";
            return Err(Refused::new(what, "Leave it away."));
        }
        if reserved.is_some() && vm.quota.is_some() {
            let what =
                "It has a reservation and a quota; a quota does not hold for what is reserved.";
            return Err(Refused::new(what, "Leave one of them away."));
        }
        Ok(())
    }
}

/// The phase as given, or drawn from a whole period.
fn phase(
    name: &str,
    given: Option<f64>,
    period: Nanos,
    phases: &mut Stream,
) -> Result<Nanos, Refused> {
    // Drawn in any case: to give one machine's phase does not move the others'.
    let drawn = phases.below(period);
    Ok(match given {
        Some(ms) => length_or_zero(name, ms)? % period,
        None => drawn,
    })
}

impl ReservationGiven {
    fn of_linux(&self, phases: &mut Stream) -> Result<Reservation, Refused> {
        let slice_ns = length("reservation.slice_ms", self.slice_ms)?;
        let period_ns = length("reservation.period_ms", self.period_ms)?;
        let phase_ns = phase("reservation.phase_ms", self.phase_ms, period_ns, phases)?;
        Ok(Reservation { slice_ns, period_ns, phase_ns })
    }

    fn triple(&self) -> Result<SedfTriple, Refused> {
        let slice_ns = length_or_zero("reservation.slice_ms", self.slice_ms)?;
        let period_ns = length("reservation.period_ms", self.period_ms)?;
        Ok(SedfTriple { slice_ns, period_ns, extra: self.extra })
    }
}

impl QuotaGiven {
    fn quota(&self, phases: &mut Stream) -> Result<Quota, Refused> {
        let period_ns = length("quota.period_ms", self.period_ms)?;
        let cpus = above_zero("quota.cpus", self.cpus)?;
        Ok(Quota {
            quota_ns: length("quota.cpus times quota.period_ms", cpus * self.period_ms)?,
            period_ns,
            burst_ns: length_or_zero("quota.burst_ms", self.burst_ms)?,
            phase_ns: phase("quota.phase_ms", self.phase_ms, period_ns, phases)?,
        })
    }
}

impl Work {
    /// The workload of one of `vcpus` virtual CPUs.
    fn workload(&self, vcpus: usize) -> Result<Workload, Refused> {
        Ok(match *self {
            Self::Spinning => Workload::Spinning,
            Self::Periodic { every_ms, work_ms } => Workload::Periodic {
                every_ns: length("periodic.every_ms", every_ms)?,
                work_ns: length("periodic.work_ms", work_ms)?,
            },
            Self::Bursty { work_ms, sleep_ms } => Workload::Bursty {
                work: Lengths::Exponential(length("bursty.work_ms", work_ms)? as f64),
                sleep: Lengths::Exponential(length("bursty.sleep_ms", sleep_ms)? as f64),
            },
            Self::Web { requests_per_s, service_ms, constant, burst } => {
                let service = length("web.service_ms", service_ms)? as f64;
                let rate = above_zero("web.requests_per_s", requests_per_s)? / vcpus as f64;
                let offered = rate * service / 1e9;
                if offered >= 1.0 {
                    return Err(Refused::new(
                        format!(
                            "Its web server is offered {offered:.2} times what its virtual CPUs \
                             could do with whole processors."
                        ),
                        "Lower requests_per_s or service_ms, or add vcpus.",
                    ));
                }
                let arrivals = match burst {
                    1 => Arrivals::poisson(rate)?,
                    size => Arrivals::bursts(size, rate)?,
                };
                let service = match constant {
                    true => Lengths::Constant(service),
                    false => Lengths::Exponential(service),
                };
                Workload::Web { arrivals, service }
            }
        })
    }
}
