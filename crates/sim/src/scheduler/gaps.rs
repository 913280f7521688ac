//! The benchmark `cpu.gaps` inside a simulated machine: the same parameters, the same samples.
//!
//! The machine sleeps first; then its loops read the clock for the window. A read costs 30 ns, and
//! nothing but the scheduler disturbs it. Several loops on one virtual CPU take turns at the guest's
//! own ticks; under Linux without a reservation they are tasks of the host, as in a container. The
//! guest's kernel counts what it can know: under Linux the loop's own CPU time; under a hypervisor,
//! which does not report what it takes away, all time. No cause of a gap is known.
use super::gap_meter::{obtained_over_cycles, GapMeter, GapRecord};
use super::host::{Host, Reservation};
use super::machine::simulate;
use super::scenario::{PolicyName, SchedulerScenario};
use super::workload::Workload;
use crate::error::{invalid, refuse, Result};
use crate::random::RandomStream;
use crate::samples::Sink;
use crate::{Nanos, SECOND};
use nephoscope_wire::gap_cycles::LONG_SHARE;

/// Source of randomness of the start of the window.
const WINDOW_START: u64 = 1 << 42;
const GUEST_TICK: Nanos = 4_000_000;
/// The host runs for this time before the window, and up to as much longer.
const BEFORE: Nanos = SECOND;
/// A gap that the end of the window cuts is followed to its end, unless it is longer.
const AFTER: Nanos = 5 * SECOND;

/// Parameters of `cpu.gaps` that have a meaning here, within the bounds of its declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapConfig {
    pub duration_ns: Nanos,
    /// Two reads at least this far apart enclose a gap.
    pub threshold_ns: Nanos,
    /// Virtual CPUs; empty: all.
    pub cpus: Vec<usize>,
    /// Maximum number of virtual CPUs, the first; 0: all.
    pub cpus_max: usize,
    /// Loops on each virtual CPU.
    pub processes_per_cpu: usize,
    /// Maximum number of gaps per loop that are recorded one by one.
    pub events_max: usize,
    /// Length of a loop's regular sleeps; 0 for a loop that is always busy.
    pub sleep_ns: Nanos,
    /// Busy time between two sleeps.
    pub busy_ns: Nanos,
}

/// What all loops recorded.
#[derive(Clone, Debug)]
pub struct Gaps {
    records: Vec<GapRecord>,
    duration_ns: Nanos,
    /// Whether the loops' own kernel knows what they were not given.
    sees_loss: bool,
}

/// Measures gaps inside machine `vm` of a scenario, in place of its own workload. vm: None takes the
/// only one.
pub fn run(
    scenario: &SchedulerScenario,
    vm: Option<&str>,
    config: &GapConfig,
    seed: u64,
) -> Result<Gaps> {
    scenario.check()?;
    let vm = find_vm(scenario, vm)?;
    let cpus = select_cpus(scenario, vm, config)?;
    if config.sleep_ns > 0 && config.processes_per_cpu > 1 {
        return refuse(
            "Loops that share a virtual CPU and sleep regularly cannot be simulated.",
            "Set sleep_ns or processes_per_cpu, not both.",
        );
    }
    let mut host = scenario.allocated()?.host(seed)?;
    let mut stream = RandomStream::new(seed, 0, WINDOW_START);
    let sees_loss = scenario.policy == PolicyName::Linux;
    let reservation = host.domains[vm].reservation.filter(|_| sees_loss);
    let start = wake_up(reservation, BEFORE + stream.below(SECOND));
    let tick = stream.below(GUEST_TICK);
    let loops = config.processes_per_cpu;
    let tasks = if sees_loss && reservation.is_none() { loops } else { 1 };
    let first_vcpu = insert_loops(&mut host, vm, &cpus, tasks, config, start);
    let meter_count = cpus.len() * loops;
    let mut meters: Vec<GapMeter> = (0..meter_count)
        .map(|n| GapMeter::new(config, cpus[n / loops], n % loops, start, loops > 1))
        .collect();
    let mut rotations = vec![Rotation::new(loops / tasks, tick); cpus.len()];
    let end = start + config.duration_ns + AFTER;
    simulate(&host, seed, end, 0, |run| {
        let Some(number) = run.vcpu.checked_sub(first_vcpu) else { return };
        let (place, process) = (number / tasks, number % tasks);
        if place < cpus.len() {
            let first = place * loops + process;
            rotations[place].split(run.from, run.to, |loop_index, from, to| {
                meters[first + loop_index].add_run(from, to)
            });
        }
    })?;
    let records = meters.into_iter().map(|meter| meter.into_record(end)).collect();
    Ok(Gaps { records, duration_ns: config.duration_ns, sees_loss })
}

/// Returns the first time from `earliest` on at which the machine may wake. A reservation's period
/// starts as it wakes (Linux): it wakes when a period with its phase would start.
fn wake_up(reservation: Option<Reservation>, earliest: Nanos) -> Nanos {
    let Some(reservation) = reservation else { return earliest };
    let periods = earliest.saturating_sub(reservation.phase_ns).div_ceil(reservation.period_ns);
    reservation.phase_ns + periods * reservation.period_ns
}

fn find_vm(scenario: &SchedulerScenario, vm: Option<&str>) -> Result<usize> {
    let names: Vec<&str> = scenario.vms.keys().map(String::as_str).collect();
    let list = names.join(", ");
    match vm {
        None if names.len() == 1 => Ok(0),
        None => refuse(
            format!("The scenario has {} machines.", names.len()),
            format!("Name the one to measure in: {list}."),
        ),
        Some(vm) => names.iter().position(|name| *name == vm).ok_or_else(|| {
            let what = format!("The scenario has no machine {vm:?}.");
            invalid(what, format!("It has {list}."))
        }),
    }
}

fn select_cpus(scenario: &SchedulerScenario, vm: usize, config: &GapConfig) -> Result<Vec<usize>> {
    let vcpus = scenario.vms.values().nth(vm).map_or(0, |vm| vm.vcpus);
    let mut cpus = config.cpus.clone();
    cpus.sort_unstable();
    cpus.dedup();
    if let Some(cpu) = cpus.iter().find(|cpu| **cpu >= vcpus) {
        let what = format!("cpu.gaps: the machine has no CPU {cpu}.");
        return refuse(what, format!("It has {vcpus}; they count from 0."));
    }
    if cpus.is_empty() {
        cpus = (0..vcpus).collect();
    }
    if config.cpus_max > 0 {
        cpus.truncate(config.cpus_max);
    }
    Ok(cpus)
}

/// Replaces the workload of a machine by the loops; its other virtual CPUs sleep. Returns the number
/// of the first loop's virtual CPU: those of the loops come first, each as often as it has tasks.
fn insert_loops(
    host: &mut Host,
    vm: usize,
    cpus: &[usize],
    tasks: usize,
    config: &GapConfig,
    start: Nanos,
) -> usize {
    let vcpus = host.vcpus();
    let first: usize = host.domains[..vm].iter().map(|domain| domain.vcpus.len()).sum();
    let busy_ns = if config.sleep_ns > 0 { config.busy_ns } else { Nanos::MAX / 4 };
    let meter = Workload::Meter { start_ns: start, busy_ns, sleep_ns: config.sleep_ns };
    let domain = &mut host.domains[vm];
    let idle = (0..domain.vcpus.len()).filter(|vcpu| !cpus.contains(vcpu));
    let order: Vec<(usize, Workload)> = cpus
        .iter()
        .flat_map(|cpu| std::iter::repeat_n((*cpu, meter.clone()), tasks))
        .chain(idle.map(|cpu| (cpu, Workload::Idle)))
        .collect();
    domain.cpus = order.iter().map(|(cpu, _)| vcpus[first + cpu].0).collect();
    domain.vcpus = order.into_iter().map(|(_, workload)| workload).collect();
    first
}

/// Loops that take turns on one virtual CPU at the ticks of its own kernel. A tick while the virtual
/// CPU does not run takes effect when it runs again.
#[derive(Clone, Debug)]
struct Rotation {
    loops: usize,
    active: usize,
    next_tick: Nanos,
}

impl Rotation {
    fn new(loops: usize, next_tick: Nanos) -> Self {
        Self { loops, active: 0, next_tick }
    }

    fn split(&mut self, from: Nanos, to: Nanos, mut on_run: impl FnMut(usize, Nanos, Nanos)) {
        if self.loops == 1 {
            return on_run(0, from, to);
        }
        let mut now = from;
        while now < to {
            if self.next_tick <= now {
                self.active = (self.active + 1) % self.loops;
                self.next_tick += ((now - self.next_tick) / GUEST_TICK + 1) * GUEST_TICK;
            }
            let until = self.next_tick.min(to);
            on_run(self.active, now, until);
            now = until;
        }
    }
}

impl Gaps {
    /// Emits every sample, with the names, factors and units of `cpu.gaps`. A counter that the machine
    /// would hide has none.
    pub fn emit(&self, sink: &mut Sink<'_>) {
        self.records.iter().for_each(|record| record.emit(self.sees_loss, sink));
        let obtained: f64 = self.records.iter().map(GapRecord::share).sum();
        sink.scalar("obtained_cpus", &[], obtained);
        let long = (self.duration_ns as f64 * LONG_SHARE) as Nanos;
        sink.scalar("obtained_cycles_cpus", &[], obtained_over_cycles(&self.records, long));
    }
}
