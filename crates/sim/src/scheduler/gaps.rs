//! The benchmark `cpu.gaps` inside a simulated machine: the same parameters, the same samples.
//!
//! The machine sleeps before; then its loops look at the clock for the window. A look costs 30 ns
//! and nothing but the scheduler disturbs it. Several loops on one virtual CPU take turns at the
//! guest's own ticks; under Linux without a reservation they are tasks of the host, as in a
//! container. What the kernel of the guest counts is what it can know: under Linux the loop's own
//! CPU time, under a hypervisor, which does not tell what it takes, all time. No cause is known.
use super::host::Host;
use super::machine::simulate;
use super::meter::{obtained_over_cycles, Meter, Record};
use super::scenario::{Named, Scenario};
use super::workload::Workload;
use crate::error::{above_zero, Refused};
use crate::random::Stream;
use crate::{Nanos, SECOND};
use serde_json::{json, Value};

/// Source of chance of the moment at which the window begins.
const BEGINNING: u64 = 1 << 42;
/// The guest's own tick.
const GUEST_TICK: Nanos = 4_000_000;
/// The host runs that long before, and that much longer at most.
const BEFORE: Nanos = SECOND;
/// A pause that the window's end has cut is seen to its end, unless it is longer.
const AFTER: Nanos = 5 * SECOND;
/// Loops on one virtual CPU at most.
const LOOPS_MOST: usize = 16;

/// Parameters of `cpu.gaps`; those that have no meaning here are not among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// How long each loop looks.
    pub duration_ns: Nanos,
    /// Two looks at least this far apart enclose a gap.
    pub threshold_ns: Nanos,
    /// The virtual CPUs; none given means all.
    pub cpus: Vec<usize>,
    /// At most so many of them, the first; 0 means all.
    pub cpus_max: usize,
    /// Loops on each.
    pub processes_per_cpu: usize,
    /// Gaps kept one by one per loop.
    pub events_max: usize,
    /// How long each loop sleeps now and then; 0 for one that is always busy.
    pub sleep_ns: Nanos,
    /// How long it is busy between two sleeps.
    pub busy_ns: Nanos,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            duration_ns: SECOND,
            threshold_ns: 100_000,
            cpus: Vec::new(),
            cpus_max: 0,
            processes_per_cpu: 1,
            events_max: 1000,
            sleep_ns: 0,
            busy_ns: SECOND / 2,
        }
    }
}

/// What all loops saw.
#[derive(Clone, Debug)]
pub struct Gaps {
    records: Vec<Record>,
    duration_ns: Nanos,
    /// Whether the loops' own kernel knows what they were not given.
    known: bool,
}

/// Takes a sample: metric, factors, value, count, moment since the window began (of series).
pub type Emit<'a> = &'a mut dyn FnMut(&str, &[(&str, Value)], f64, u64, Option<Nanos>);

/// Looks from inside the machine `vm` of a scenario, whose own workload is left away; None takes the
/// only one. Refused: a machine or a virtual CPU that is not there, a look that cannot be.
pub fn run(scenario: &Scenario, vm: Option<&str>, look: &Look, seed: u64) -> Result<Gaps, Refused> {
    scenario.check()?;
    let vm = place_of(scenario, vm)?;
    let cpus = cpus_of(scenario, vm, look)?;
    check(look)?;
    let mut host = scenario.host(seed)?;
    let mut stream = Stream::of(seed, 0, BEGINNING);
    let begins = beginning(&host, vm, BEFORE + stream.below(SECOND));
    let tick_at = stream.below(GUEST_TICK);
    let reserved = host.domains[vm].reservation.is_some();
    let as_tasks = scenario.policy == Named::Linux && !reserved;
    let loops = look.processes_per_cpu;
    let tasks = if as_tasks { loops } else { 1 };
    let numbers = occupy(&mut host, vm, &cpus, tasks, look, begins);
    let mut meters: Vec<Meter> = Vec::new();
    let mut of_vcpu = vec![None; numbers.end];
    for (place, cpu) in cpus.iter().enumerate() {
        for process in 0..loops {
            if process < tasks {
                of_vcpu[numbers.first(place) + process] = Some(meters.len());
            }
            meters.push(Meter::new(look, *cpu, process, begins, loops > 1));
        }
    }
    let mut turns: Vec<Turns> = vec![Turns::new(loops / tasks, tick_at); cpus.len()];
    let end = begins + look.duration_ns + AFTER;
    simulate(&host, seed, end, |stretch| {
        let Some(meter) = of_vcpu.get(stretch.vcpu).copied().flatten() else { return };
        let one = &mut turns[meter / loops];
        one.split(stretch.from, stretch.to, |turn, from, to| meters[meter + turn].ran(from, to));
    })?;
    let records = meters.into_iter().map(|meter| meter.record(end)).collect();
    Ok(Gaps { records, duration_ns: look.duration_ns, known: scenario.policy == Named::Linux })
}

/// The first moment from `earliest` on at which the machine may wake. With a reservation its period
/// begins as it wakes: it wakes when a period with its phase would begin.
fn beginning(host: &Host, vm: usize, earliest: Nanos) -> Nanos {
    let Some(one) = host.domains[vm].reservation else { return earliest };
    let periods = earliest.saturating_sub(one.phase_ns).div_ceil(one.period_ns);
    one.phase_ns + periods * one.period_ns
}

fn place_of(scenario: &Scenario, vm: Option<&str>) -> Result<usize, Refused> {
    let names: Vec<&str> = scenario.vms.keys().map(String::as_str).collect();
    match vm {
        None if names.len() == 1 => Ok(0),
        None => Err(Refused::new(
            format!("The scenario has {} machines.", names.len()),
            format!("Name the one to look from: {}.", names.join(", ")),
        )),
        Some(vm) => names.iter().position(|name| *name == vm).ok_or_else(|| {
            let what = format!("The scenario has no machine {vm:?}.");
            Refused::new(what, format!("It has {}.", names.join(", ")))
        }),
    }
}

fn cpus_of(scenario: &Scenario, vm: usize, look: &Look) -> Result<Vec<usize>, Refused> {
    let vcpus = scenario.vms.values().nth(vm).map_or(0, |vm| vm.vcpus);
    let mut cpus = look.cpus.clone();
    cpus.sort_unstable();
    cpus.dedup();
    if let Some(cpu) = cpus.iter().find(|cpu| **cpu >= vcpus) {
        return Err(Refused::new(
            format!("cpu.gaps: the machine has no CPU {cpu}."),
            format!("It has {vcpus}; they count from 0."),
        ));
    }
    if cpus.is_empty() {
        cpus = (0..vcpus).collect();
    }
    if look.cpus_max > 0 {
        cpus.truncate(look.cpus_max);
    }
    Ok(cpus)
}

fn check(look: &Look) -> Result<(), Refused> {
    above_zero("duration_ns", look.duration_ns as f64)?;
    above_zero("threshold_ns", look.threshold_ns as f64)?;
    above_zero("processes_per_cpu", look.processes_per_cpu as f64)?;
    if look.processes_per_cpu > LOOPS_MOST {
        let what = format!("processes_per_cpu is {}.", look.processes_per_cpu);
        return Err(Refused::new(what, format!("Give at most {LOOPS_MOST}.")));
    }
    if look.sleep_ns > 0 {
        above_zero("busy_ns", look.busy_ns as f64)?;
        if look.processes_per_cpu > 1 {
            let what = "Loops that share a virtual CPU and sleep now and then are not simulated.";
            return Err(Refused::new(what, "Set sleep_ns or processes_per_cpu, not both."));
        }
    }
    Ok(())
}

/// Numbers of the loops' virtual CPUs among all of the host.
struct Numbers {
    begin: usize,
    tasks: usize,
    end: usize,
}

impl Numbers {
    /// Of the first loop on the virtual CPU of that place among those looked at.
    fn first(&self, place: usize) -> usize {
        self.begin + place * self.tasks
    }
}

/// Puts the loops into the machine, instead of what it does; its other virtual CPUs sleep.
fn occupy(
    host: &mut Host,
    vm: usize,
    cpus: &[usize],
    tasks: usize,
    look: &Look,
    begins: Nanos,
) -> Numbers {
    let homes = host.homes();
    let begin: usize = host.domains[..vm].iter().map(|domain| domain.vcpus.len()).sum();
    let busy_ns = if look.sleep_ns > 0 { look.busy_ns } else { Nanos::MAX / 4 };
    let meter = Workload::Meter { begins_ns: begins, busy_ns, sleep_ns: look.sleep_ns };
    let domain = &mut host.domains[vm];
    // Those looked at come first, each as often as it has tasks; where each stays is told in full.
    let others = (0..domain.vcpus.len()).filter(|vcpu| !cpus.contains(vcpu));
    let order: Vec<(usize, bool)> = cpus
        .iter()
        .flat_map(|cpu| std::iter::repeat_n((*cpu, true), tasks))
        .chain(others.map(|cpu| (cpu, false)))
        .collect();
    domain.cpus = order.iter().map(|(cpu, _)| homes[begin + cpu]).collect();
    let workload = |(_, looked): &(usize, bool)| match looked {
        true => meter.clone(),
        false => Workload::Idle,
    };
    domain.vcpus = order.iter().map(workload).collect();
    let end = begin + cpus.len() * tasks;
    Numbers { begin, tasks, end }
}

/// Loops that take turns on one virtual CPU, at the ticks of its own kernel. A tick that comes while
/// the virtual CPU does not run takes effect when it runs again.
#[derive(Clone, Debug)]
struct Turns {
    loops: usize,
    turn: usize,
    next_tick: Nanos,
}

impl Turns {
    fn new(loops: usize, tick_at: Nanos) -> Self {
        Self { loops, turn: 0, next_tick: tick_at }
    }

    fn split(&mut self, from: Nanos, to: Nanos, mut ran: impl FnMut(usize, Nanos, Nanos)) {
        if self.loops == 1 {
            return ran(0, from, to);
        }
        let mut at = from;
        while at < to {
            if self.next_tick <= at {
                self.turn = (self.turn + 1) % self.loops;
                self.next_tick += ((at - self.next_tick) / GUEST_TICK + 1) * GUEST_TICK;
            }
            let until = self.next_tick.min(to);
            ran(self.turn, at, until);
            at = until;
        }
    }
}

impl Gaps {
    /// What each loop saw.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Every sample, with the names, factors and units of `cpu.gaps`. A counter that the machine
    /// would hide yields none.
    pub fn samples(&self, emit: Emit<'_>) {
        for record in &self.records {
            let factors = [("cpu", json!(record.cpu)), ("process", json!(record.process))];
            record.samples(&factors, self.known, emit);
        }
        let obtained: f64 = self.records.iter().map(Record::share).sum();
        emit("obtained_cpus", &[], obtained, 1, None);
        let long = (self.duration_ns as f64 * super::meter::LONG_SHARE) as Nanos;
        if let Some(obtained) = obtained_over_cycles(&self.records, long) {
            emit("obtained_cycles_cpus", &[], obtained, 1, None);
        }
    }
}
