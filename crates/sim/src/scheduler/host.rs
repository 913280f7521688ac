//! The host: what happens, in which order, and who is told.
use super::bvt::{Bvt, BvtSettings};
use super::credit::Credit;
use super::sedf::Sedf;
use super::state::{Processor, Rules, Stretch, Vcpu};
use super::workload::{Doing, Workload};
use crate::error::{above_zero, Refused};
use crate::random::Stream;
use crate::{simulate as run, Agenda, Model, Nanos, Stop};

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
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// Weight under contention (Credit), 256 as a rule.
    pub weight: u32,
    /// At most so many per cent of one processor (Credit); 0 is no cap.
    pub cap: u32,
    /// Of each of its virtual CPUs (SEDF).
    pub sedf: SedfTriple,
    /// Inverse weight (BVT), 10 as a rule.
    pub mcu_advance: u32,
    /// One workload for each virtual CPU.
    pub vcpus: Vec<Workload>,
}

impl Default for Domain {
    fn default() -> Self {
        let sedf = SedfTriple { slice_ns: 0, period_ns: 100_000_000, extra: true };
        Self { weight: 256, cap: 0, sedf, mcu_advance: 10, vcpus: vec![Workload::Spinning] }
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
}

/// A physical machine with what runs on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Processors.
    pub processors: usize,
    /// Virtual machines.
    pub domains: Vec<Domain>,
    /// How processors are given out.
    pub policy: Policy,
}

/// Simulates a host for a while; `tell` is told of every stretch that a virtual CPU ran, in order of
/// its end. Returns the number of scheduling events. Refused: no processor, no virtual CPU, a triple
/// outside Xen's limits, more time promised on a processor than it has.
pub fn simulate(
    host: &Host,
    seed: u64,
    length_ns: Nanos,
    tell: impl FnMut(Stretch),
) -> Result<u64, Refused> {
    host.check()?;
    Ok(match host.policy {
        Policy::Credit => drive(host, Credit::new(host), seed, length_ns, tell),
        Policy::Sedf => drive(host, Sedf::new(host)?, seed, length_ns, tell),
        Policy::Bvt(settings) => drive(host, Bvt::new(host, settings), seed, length_ns, tell),
    })
}

impl Host {
    /// Domain of each virtual CPU, through all domains.
    pub(super) fn domain_of_vcpus(&self) -> Vec<usize> {
        let of = |(number, domain): (usize, &Domain)| vec![number; domain.vcpus.len()];
        self.domains.iter().enumerate().flat_map(of).collect()
    }

    fn check(&self) -> Result<(), Refused> {
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

fn drive<R: Rules>(
    host: &Host,
    rules: R,
    seed: u64,
    length_ns: Nanos,
    tell: impl FnMut(Stretch),
) -> u64 {
    let workloads = host.domains.iter().flat_map(|domain| domain.vcpus.iter());
    let vcpus: Vec<Vcpu> = workloads
        .enumerate()
        .map(|(number, workload)| Vcpu {
            doing: Doing::new(workload.clone(), Stream::of(seed, 0, number as u64)),
            wants: false,
            on: None,
        })
        .collect();
    let mut agenda = Agenda::default();
    for (number, vcpu) in vcpus.iter().enumerate() {
        agenda.at(vcpu.doing.first_wake(), Happens::Wakes(number));
    }
    if let Some(every) = rules.tick_ns() {
        (0..host.processors).for_each(|processor| agenda.at(every, Happens::Ticks(processor)));
    }
    if let Some(every) = rules.account_ns() {
        agenda.at(every, Happens::Accounts);
    }
    let processors = vec![Processor::default(); host.processors];
    let mut machine = Machine { rules, vcpus, processors, tell };
    run(&mut machine, &mut agenda, length_ns);
    for processor in 0..host.processors {
        machine.charge(processor, length_ns);
    }
    agenda.passed()
}

enum Happens {
    Wakes(usize),
    /// The timer of a processor with that number.
    Timer(usize, u64),
    Ticks(usize),
    Accounts,
}

struct Machine<R, T> {
    rules: R,
    vcpus: Vec<Vcpu>,
    processors: Vec<Processor>,
    tell: T,
}

impl<R: Rules, T: FnMut(Stretch)> Machine<R, T> {
    /// Charges who runs on a processor for the time until now. Whether it has finished its work.
    fn charge(&mut self, processor: usize, now: Nanos) -> bool {
        let place = &mut self.processors[processor];
        let Some(vcpu) = place.current else { return false };
        let from = std::mem::replace(&mut place.since, now);
        if from < now {
            (self.tell)(Stretch { vcpu, processor, from, to: now });
            self.rules.ran(vcpu, now - from, now);
        }
        let left = &mut self.vcpus[vcpu].doing.left_ns;
        *left = left.map(|left| left - (now - from).min(left));
        *left == Some(0)
    }

    fn decide(&mut self, processor: usize, agenda: &mut Agenda<Happens>) {
        let now = agenda.now();
        let finished = self.charge(processor, now);
        let mut current = self.processors[processor].current.take();
        if let Some(vcpu) = current {
            self.vcpus[vcpu].on = None;
            if finished {
                current = None;
                self.vcpus[vcpu].wants = false;
                self.rules.blocks(vcpu, now);
                if let Some(at) = self.vcpus[vcpu].doing.sleeps_until(now) {
                    agenda.at(at, Happens::Wakes(vcpu));
                }
            }
        }
        let decision = self.rules.decides(processor, current, now);
        let place = &mut self.processors[processor];
        place.timer += 1;
        place.since = now;
        place.current = decision.vcpu;
        let mut again_at = decision.again_at;
        if let Some(vcpu) = decision.vcpu {
            self.vcpus[vcpu].on = Some(processor);
            let done_at = self.vcpus[vcpu].doing.left_ns.map(|left| now + left);
            again_at = again_at.into_iter().chain(done_at).min();
        }
        if let Some(at) = again_at {
            agenda.at(at, Happens::Timer(processor, place.timer));
        }
    }

    fn wake(&mut self, vcpu: usize, agenda: &mut Agenda<Happens>) {
        let now = agenda.now();
        if let Some(processor) = self.vcpus[vcpu].on {
            // More work for one that runs: its timer would end it too early.
            self.charge(processor, now);
        }
        if let Some(at) = self.vcpus[vcpu].doing.wake(now) {
            agenda.at(at, Happens::Wakes(vcpu));
        }
        if let Some(processor) = self.vcpus[vcpu].on {
            self.decide(processor, agenda);
        } else if !self.vcpus[vcpu].wants {
            self.vcpus[vcpu].wants = true;
            for processor in self.rules.wakes(vcpu, now, &self.processors) {
                self.decide(processor, agenda);
            }
        }
    }

    fn account(&mut self, agenda: &mut Agenda<Happens>) {
        let now = agenda.now();
        (0..self.processors.len()).for_each(|processor| {
            self.charge(processor, now);
        });
        let accounted = self.rules.accounts(now);
        for vcpu in accounted.parked {
            if let Some(processor) = self.vcpus[vcpu].on {
                self.decide(processor, agenda);
            }
        }
        for vcpu in accounted.unparked {
            if self.vcpus[vcpu].wants && self.vcpus[vcpu].on.is_none() {
                for processor in self.rules.wakes(vcpu, now, &self.processors) {
                    self.decide(processor, agenda);
                }
            }
        }
    }
}

impl<R: Rules, T: FnMut(Stretch)> Model for Machine<R, T> {
    type Event = Happens;

    fn happens(&mut self, event: Happens, agenda: &mut Agenda<Happens>) -> Stop {
        match event {
            Happens::Wakes(vcpu) => self.wake(vcpu, agenda),
            Happens::Timer(processor, number) => {
                if number == self.processors[processor].timer {
                    self.decide(processor, agenda);
                }
            }
            Happens::Ticks(processor) => {
                let now = agenda.now();
                self.charge(processor, now);
                let current = self.processors[processor].current;
                if self.rules.ticks(processor, current, now) {
                    self.decide(processor, agenda);
                }
                if let Some(every) = self.rules.tick_ns() {
                    agenda.after(every, Happens::Ticks(processor));
                }
            }
            Happens::Accounts => {
                self.account(agenda);
                if let Some(every) = self.rules.account_ns() {
                    agenda.after(every, Happens::Accounts);
                }
            }
        }
        Stop::No
    }
}
