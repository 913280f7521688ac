//! What happens on a host, in which order, and who is told.
use super::bvt::Bvt;
use super::credit::Credit;
use super::host::{Host, Policy};
use super::linux::Linux;
use super::sedf::Sedf;
use super::state::{Decision, Processor, Rules, Stretch, Vcpu};
use super::workload::Doing;
use crate::error::Refused;
use crate::random::Stream;
use crate::tally::Times;
use crate::{simulate as run, Agenda, Model, Nanos, Stop};

/// What was counted of a whole run, beside its stretches.
#[derive(Clone, Debug)]
pub struct Told {
    /// Scheduling events that happened.
    pub events: u64,
    /// Response times of every virtual CPU that serves requests.
    pub responses: Vec<Option<Times>>,
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
    Ok(observe(host, seed, length_ns, 0, tell)?.events)
}

/// As [`simulate`], with the response times of requests that came from `before_ns` on.
pub fn observe(
    host: &Host,
    seed: u64,
    length_ns: Nanos,
    before_ns: Nanos,
    tell: impl FnMut(Stretch),
) -> Result<Told, Refused> {
    host.check()?;
    let how = How { seed, length_ns, before_ns };
    Ok(match host.policy {
        Policy::Credit => drive(host, Credit::new(host), how, tell),
        Policy::Sedf => drive(host, Sedf::new(host)?, how, tell),
        Policy::Bvt(settings) => drive(host, Bvt::new(host, settings), how, tell),
        Policy::Linux(settings) => drive(host, Linux::new(host, settings, seed)?, how, tell),
    })
}

#[derive(Clone, Copy)]
struct How {
    seed: u64,
    length_ns: Nanos,
    before_ns: Nanos,
}

fn drive<R: Rules>(host: &Host, mut rules: R, how: How, tell: impl FnMut(Stretch)) -> Told {
    let workloads = host.domains.iter().flat_map(|domain| domain.vcpus.iter());
    let mut vcpus: Vec<Vcpu> = workloads
        .enumerate()
        .map(|(number, workload)| Vcpu {
            doing: Doing::new(workload, Stream::of(how.seed, 0, number as u64), how.before_ns),
            wants: false,
            on: None,
        })
        .collect();
    let mut agenda = Agenda::default();
    for (number, vcpu) in vcpus.iter_mut().enumerate() {
        if let Some(at) = vcpu.doing.first_wake() {
            agenda.at(at, Happens::Wakes(number as u32));
        }
    }
    if let Some(every) = rules.tick_ns() {
        (0..host.processors).for_each(|place| agenda.at(every, Happens::Ticks(place as u32)));
    }
    for processor in 0..host.processors {
        if let Some(after) = rules.accounted_after() {
            agenda.at(after, Happens::Looks(processor as u32));
        }
    }
    if let Some(every) = rules.account_ns() {
        agenda.at(every, Happens::Accounts);
    }
    let processors = vec![Processor::default(); host.processors];
    let mut machine = Machine { rules, vcpus, processors, tell };
    machine.set_alarms(&mut agenda);
    run(&mut machine, &mut agenda, how.length_ns);
    for processor in 0..host.processors {
        machine.charge(processor, how.length_ns);
    }
    let responses = machine.vcpus.into_iter().map(|vcpu| vcpu.doing.into_responses());
    Told { events: agenda.passed(), responses: responses.collect() }
}

/// Numbers of virtual CPUs, processors and alarms are kept short: the agenda moves these about.
#[derive(Clone, Copy)]
enum Happens {
    Wakes(u32),
    /// The timer of a processor with that number.
    Timer(u32, u64),
    /// The tick of one processor: at that place among those of the moment.
    Ticks(u32),
    /// A processor is looked at besides its ticks.
    Looks(u32),
    Accounts,
    /// An alarm that the policy has set.
    Rings(u32),
}

impl Processor {
    /// When it decides again at the latest: as it was decided, or when the one that runs is done.
    #[inline]
    fn set_timer(
        &mut self,
        processor: usize,
        done_at: Option<Nanos>,
        agenda: &mut Agenda<Happens>,
    ) {
        self.timer += 1;
        let at = match (self.again_at, done_at) {
            (Some(again_at), Some(done_at)) => Some(again_at.min(done_at)),
            (one, None) | (None, one) => one,
        };
        if let Some(at) = at {
            agenda.at(at, Happens::Timer(processor as u32, self.timer));
        }
    }
}

struct Machine<R, T> {
    rules: R,
    vcpus: Vec<Vcpu>,
    processors: Vec<Processor>,
    tell: T,
}

impl<R: Rules, T: FnMut(Stretch)> Machine<R, T> {
    /// Charges who runs on a processor for the time until now.
    #[inline]
    fn charge(&mut self, processor: usize, now: Nanos) {
        let place = &mut self.processors[processor];
        let until = place.since.max(now);
        let from = std::mem::replace(&mut place.since, until);
        if let Some(vcpu) = place.current {
            self.ran(vcpu, processor, from, now);
        }
    }

    /// One that runs did so until now. Whether it has finished its work.
    fn ran(&mut self, vcpu: usize, processor: usize, from: Nanos, now: Nanos) -> bool {
        let doing = &mut self.vcpus[vcpu].doing;
        if from < now {
            (self.tell)(Stretch { vcpu, processor, from, to: now });
            self.rules.ran(vcpu, now - from, now);
            doing.works(from, now);
        }
        doing.finished(now)
    }

    fn set_alarms(&mut self, agenda: &mut Agenda<Happens>) {
        while let Some((at, alarm)) = self.rules.alarm() {
            agenda.at(at, Happens::Rings(alarm as u32));
        }
    }

    fn decide(&mut self, processor: usize, agenda: &mut Agenda<Happens>) {
        let now = agenda.now();
        let place = &mut self.processors[processor];
        let (mut current, from) = (place.current.take(), place.since);
        if let Some(vcpu) = current {
            let finished = self.ran(vcpu, processor, from, now);
            let one = &mut self.vcpus[vcpu];
            one.on = None;
            if finished {
                current = None;
                one.wants = false;
                self.rules.blocks(vcpu, now);
                if let Some(at) = one.doing.sleeps_until(now) {
                    agenda.at(at, Happens::Wakes(vcpu as u32));
                }
            }
        }
        let Decision { vcpu, again_at } = self.rules.decides(processor, current, now);
        let place = &mut self.processors[processor];
        let begins = now.max(place.taken_until);
        let done_at = vcpu.and_then(|vcpu| {
            let one = &mut self.vcpus[vcpu];
            one.on = Some(processor);
            one.doing.done_at(begins)
        });
        place.since = begins;
        (place.current, place.again_at) = (vcpu, again_at);
        place.set_timer(processor, done_at, agenda);
    }

    /// A processor's timer anew, when what the one that runs there has to do has changed.
    fn set_timer(&mut self, processor: usize, agenda: &mut Agenda<Happens>) {
        let place = &mut self.processors[processor];
        let begins = agenda.now().max(place.since);
        let done_at = place.current.and_then(|vcpu| self.vcpus[vcpu].doing.done_at(begins));
        place.set_timer(processor, done_at, agenda);
    }

    /// Charges for what ran; decides anew where that says so.
    fn look(&mut self, processor: usize, agenda: &mut Agenda<Happens>) {
        let now = agenda.now();
        self.charge(processor, now);
        let current = self.processors[processor].current;
        if self.rules.ticks(processor, current, now) {
            self.decide(processor, agenda);
        }
    }

    /// Something else has a processor for a while; whoever runs there goes on after it.
    fn take_away(&mut self, processor: usize, length: Nanos, agenda: &mut Agenda<Happens>) {
        let place = &mut self.processors[processor];
        place.taken_until = place.taken_until.max(agenda.now()) + length;
        place.since = place.taken_until;
        self.set_timer(processor, agenda);
    }

    fn wake(&mut self, vcpu: usize, agenda: &mut Agenda<Happens>) {
        let now = agenda.now();
        if let Some(processor) = self.vcpus[vcpu].on {
            // More work for one that runs: its timer would end it too early.
            self.charge(processor, now);
        }
        let one = &mut self.vcpus[vcpu];
        if let Some(at) = one.doing.wake(now) {
            agenda.at(at, Happens::Wakes(vcpu as u32));
        }
        if let Some(processor) = one.on {
            self.set_timer(processor, agenda);
        } else if !std::mem::replace(&mut one.wants, true) {
            if let Some(home) = self.rules.charged_before(vcpu) {
                self.charge(home, now);
            }
            if let Some(processor) = self.rules.wakes(vcpu, now, &self.processors) {
                self.decide(processor, agenda);
            }
        }
    }

    fn account(&mut self, agenda: &mut Agenda<Happens>) {
        let now = agenda.now();
        (0..self.processors.len()).for_each(|processor| self.charge(processor, now));
        let accounted = self.rules.accounts(now);
        for vcpu in accounted.parked {
            if let Some(processor) = self.vcpus[vcpu].on {
                self.decide(processor, agenda);
            }
        }
        for vcpu in accounted.unparked {
            if self.vcpus[vcpu].wants && self.vcpus[vcpu].on.is_none() {
                if let Some(processor) = self.rules.wakes(vcpu, now, &self.processors) {
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
            Happens::Wakes(vcpu) => self.wake(vcpu as usize, agenda),
            Happens::Timer(processor, number) => {
                if number == self.processors[processor as usize].timer {
                    self.decide(processor as usize, agenda);
                }
            }
            Happens::Ticks(place) => {
                let processor = self.rules.ticking(place as usize);
                self.look(processor, agenda);
                if let Some(every) = self.rules.tick_ns() {
                    agenda.after(every, Happens::Ticks(place));
                }
            }
            Happens::Looks(processor) => {
                self.look(processor as usize, agenda);
                let taken = self.rules.taken_ns();
                if taken > 0 {
                    self.take_away(processor as usize, taken, agenda);
                }
                if let Some(after) = self.rules.accounted_after() {
                    agenda.after(after, Happens::Looks(processor));
                }
            }
            Happens::Accounts => {
                self.account(agenda);
                if let Some(every) = self.rules.account_ns() {
                    agenda.after(every, Happens::Accounts);
                }
            }
            Happens::Rings(alarm) => {
                for processor in self.rules.rings(alarm as usize, agenda.now(), &self.processors) {
                    self.decide(processor, agenda);
                }
            }
        }
        self.set_alarms(agenda);
        Stop::No
    }
}
