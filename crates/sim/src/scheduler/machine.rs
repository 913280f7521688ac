//! The event loop of a host: which virtual CPU runs where, and when that changes.
use super::bvt::Bvt;
use super::credit::Credit;
use super::credit2::Credit2;
use super::host::{Host, Scheduler};
use super::linux::Linux;
use super::policy::{Decision, Policy, Processor, RunInterval, Vcpu};
use super::sedf::Sedf;
use super::workload::WorkloadTask;
use crate::error::Result;
use crate::random::RandomStream;
use crate::statistics::Durations;
use crate::{EventQueue, Model, Nanos};

/// Counts of a whole run.
#[derive(Clone, Debug)]
pub struct RunCounts {
    pub events: u64,
    /// Response times of every virtual CPU that serves requests.
    pub responses: Vec<Option<Durations>>,
}

/// Simulates a host, and hands every run interval to `on_run` in order of its end. Response times are
/// those of requests that arrive from `warm_up_ns` on. Returns an error for a host that its
/// scheduler would not accept.
pub fn simulate(
    host: &Host,
    seed: u64,
    duration_ns: Nanos,
    warm_up_ns: Nanos,
    on_run: impl FnMut(RunInterval),
) -> Result<RunCounts> {
    host.check()?;
    let workloads = host.domains.iter().flat_map(|domain| &domain.vcpus).enumerate();
    let task = |(number, workload)| {
        WorkloadTask::new(workload, RandomStream::new(seed, 0, number as u64), warm_up_ns)
    };
    let tasks = workloads.map(task).collect();
    let processors = host.processors;
    Ok(match host.scheduler {
        Scheduler::Credit => run(Credit::new(host), tasks, processors, duration_ns, on_run),
        Scheduler::Credit2 => run(Credit2::new(host), tasks, processors, duration_ns, on_run),
        Scheduler::Sedf => run(Sedf::new(host)?, tasks, processors, duration_ns, on_run),
        Scheduler::Bvt(settings) => {
            run(Bvt::new(host, settings), tasks, processors, duration_ns, on_run)
        }
        Scheduler::Linux(settings) => {
            run(Linux::new(host, settings, seed)?, tasks, processors, duration_ns, on_run)
        }
    })
}

/// Simulates tasks, one for each virtual CPU, under a policy.
fn run<P: Policy>(
    mut policy: P,
    mut tasks: Vec<WorkloadTask>,
    processors: usize,
    duration_ns: Nanos,
    on_run: impl FnMut(RunInterval),
) -> RunCounts {
    let mut events = EventQueue::default();
    for (number, task) in tasks.iter_mut().enumerate() {
        if let Some(time) = task.first_wake_up() {
            events.schedule_at(time, SchedulerEvent::WakeUp(number as u32));
        }
    }
    if let Some(interval) = policy.tick_ns() {
        (0..processors as u32)
            .for_each(|place| events.schedule_at(interval, SchedulerEvent::Tick(place)));
    }
    for processor in 0..processors as u32 {
        if let Some(delay) = policy.next_check_in() {
            events.schedule_at(delay, SchedulerEvent::Check(processor));
        }
    }
    if let Some(interval) = policy.accounting_ns() {
        events.schedule_at(interval, SchedulerEvent::Accounting);
    }
    let vcpu = |task| Vcpu { task, is_runnable: false, processor: None };
    let vcpus = tasks.into_iter().map(vcpu).collect();
    let mut machine = SimulatedMachine {
        policy,
        vcpus,
        processors: vec![Processor::default(); processors],
        on_run,
    };
    machine.schedule_timers(&mut events);
    crate::simulate(&mut machine, &mut events, duration_ns);
    for processor in 0..processors {
        machine.charge(processor, duration_ns);
    }
    let responses = machine.vcpus.into_iter().map(|vcpu| vcpu.task.into_responses());
    RunCounts { events: events.processed(), responses: responses.collect() }
}

type SchedulerEvents = EventQueue<SchedulerEvent>;

/// Numbers of virtual CPUs, processors and timers are small types: the event queue moves them about.
#[derive(Clone, Copy)]
enum SchedulerEvent {
    WakeUp(u32),
    /// A processor's timer of that number.
    Timer(u32, u64),
    /// The tick at that place among those of the same time.
    Tick(u32),
    /// A check of a processor besides its ticks.
    Check(u32),
    Accounting,
    /// A timer that the policy has set.
    PolicyTimer(u32),
}

impl Processor {
    /// Sets the timer to the next decision, or to when the running virtual CPU completes its work.
    #[inline]
    fn set_timer(
        &mut self,
        processor: usize,
        completion: Option<Nanos>,
        events: &mut SchedulerEvents,
    ) {
        self.timer += 1;
        let time = match (self.decide_at, completion) {
            (Some(decide_at), Some(completion)) => Some(decide_at.min(completion)),
            (time, None) | (None, time) => time,
        };
        if let Some(time) = time {
            events.schedule_at(time, SchedulerEvent::Timer(processor as u32, self.timer));
        }
    }
}

struct SimulatedMachine<P, F> {
    policy: P,
    vcpus: Vec<Vcpu>,
    processors: Vec<Processor>,
    on_run: F,
}

impl<P: Policy, F: FnMut(RunInterval)> SimulatedMachine<P, F> {
    /// Charges the virtual CPU that runs on a processor until now.
    #[inline]
    fn charge(&mut self, processor: usize, now: Nanos) {
        let state = &mut self.processors[processor];
        let until = state.charged_until.max(now);
        let from = std::mem::replace(&mut state.charged_until, until);
        if let Some(vcpu) = state.current {
            self.charge_vcpu(vcpu, processor, from, now);
        }
    }

    /// Charges a virtual CPU; returns whether it has completed its work.
    fn charge_vcpu(&mut self, vcpu: usize, processor: usize, from: Nanos, now: Nanos) -> bool {
        let task = &mut self.vcpus[vcpu].task;
        if from < now {
            (self.on_run)(RunInterval { vcpu, processor, from, to: now });
            self.policy.charge(vcpu, now - from);
            task.run(from, now);
        }
        task.is_done(now)
    }

    fn schedule_timers(&mut self, events: &mut SchedulerEvents) {
        while let Some((time, timer)) = self.policy.take_timer() {
            events.schedule_at(time, SchedulerEvent::PolicyTimer(timer as u32));
        }
    }

    fn decide(&mut self, processor: usize, events: &mut SchedulerEvents) {
        let now = events.now();
        let state = &mut self.processors[processor];
        let (mut current, from) = (state.current.take(), state.charged_until);
        if let Some(number) = current {
            let is_done = self.charge_vcpu(number, processor, from, now);
            let vcpu = &mut self.vcpus[number];
            vcpu.processor = None;
            if is_done {
                current = None;
                vcpu.is_runnable = false;
                self.policy.block(number, now);
                if let Some(time) = vcpu.task.sleep_until(now) {
                    events.schedule_at(time, SchedulerEvent::WakeUp(number as u32));
                }
            }
        }
        let Decision { vcpu, decide_at } = self.policy.decide(processor, current, now);
        let state = &mut self.processors[processor];
        let start = now.max(state.interrupted_until);
        let completion = vcpu.and_then(|number| {
            let vcpu = &mut self.vcpus[number];
            vcpu.processor = Some(processor);
            vcpu.task.completion(start)
        });
        state.charged_until = start;
        (state.current, state.decide_at) = (vcpu, decide_at);
        state.set_timer(processor, completion, events);
    }

    /// Sets a processor's timer again, when the remaining work of what runs there has changed.
    fn reset_timer(&mut self, processor: usize, events: &mut SchedulerEvents) {
        let state = &mut self.processors[processor];
        let start = events.now().max(state.charged_until);
        let completion = state.current.and_then(|vcpu| self.vcpus[vcpu].task.completion(start));
        state.set_timer(processor, completion, events);
    }

    /// Charges what runs on a processor, and decides again if the policy asks for it.
    fn check(&mut self, processor: usize, events: &mut SchedulerEvents) {
        let now = events.now();
        self.charge(processor, now);
        let current = self.processors[processor].current;
        if self.policy.tick(processor, current) {
            self.decide(processor, events);
        }
    }

    /// Something else takes a processor for a while; what runs there resumes afterwards.
    fn interrupt(&mut self, processor: usize, duration: Nanos, events: &mut SchedulerEvents) {
        let state = &mut self.processors[processor];
        state.interrupted_until = state.interrupted_until.max(events.now()) + duration;
        state.charged_until = state.interrupted_until;
        self.reset_timer(processor, events);
    }

    fn wake(&mut self, vcpu: usize, events: &mut SchedulerEvents) {
        let now = events.now();
        if let Some(processor) = self.vcpus[vcpu].processor {
            // More work for a running one: its timer would end it too early.
            self.charge(processor, now);
        }
        let state = &mut self.vcpus[vcpu];
        if let Some(time) = state.task.wake(now) {
            events.schedule_at(time, SchedulerEvent::WakeUp(vcpu as u32));
        }
        if let Some(processor) = state.processor {
            self.reset_timer(processor, events);
        } else if !std::mem::replace(&mut state.is_runnable, true) {
            if let Some(home) = self.policy.charged_before_wake(vcpu) {
                self.charge(home, now);
            }
            self.wake_policy(vcpu, events);
        }
    }

    fn wake_policy(&mut self, vcpu: usize, events: &mut SchedulerEvents) {
        if let Some(processor) = self.policy.wake(vcpu, events.now(), &self.processors) {
            self.decide(processor, events);
        }
    }

    fn account(&mut self, events: &mut SchedulerEvents) {
        let now = events.now();
        (0..self.processors.len()).for_each(|processor| self.charge(processor, now));
        let parking = self.policy.account();
        for vcpu in parking.parked {
            if let Some(processor) = self.vcpus[vcpu].processor {
                self.decide(processor, events);
            }
        }
        for vcpu in parking.unparked {
            if self.vcpus[vcpu].is_runnable && self.vcpus[vcpu].processor.is_none() {
                self.wake_policy(vcpu, events);
            }
        }
    }
}

impl<P: Policy, F: FnMut(RunInterval)> Model for SimulatedMachine<P, F> {
    type Event = SchedulerEvent;

    fn handle(&mut self, event: SchedulerEvent, events: &mut SchedulerEvents) {
        match event {
            SchedulerEvent::WakeUp(vcpu) => self.wake(vcpu as usize, events),
            SchedulerEvent::Timer(processor, number) => {
                if number == self.processors[processor as usize].timer {
                    self.decide(processor as usize, events);
                }
            }
            SchedulerEvent::Tick(place) => {
                let processor = self.policy.tick_order(place as usize);
                self.check(processor, events);
                if let Some(interval) = self.policy.tick_ns() {
                    events.schedule_after(interval, SchedulerEvent::Tick(place));
                }
            }
            SchedulerEvent::Check(processor) => {
                self.check(processor as usize, events);
                let duration = self.policy.interruption_ns();
                if duration > 0 {
                    self.interrupt(processor as usize, duration, events);
                }
                if let Some(delay) = self.policy.next_check_in() {
                    events.schedule_after(delay, SchedulerEvent::Check(processor));
                }
            }
            SchedulerEvent::Accounting => {
                self.account(events);
                if let Some(interval) = self.policy.accounting_ns() {
                    events.schedule_after(interval, SchedulerEvent::Accounting);
                }
            }
            SchedulerEvent::PolicyTimer(timer) => {
                for processor in self.policy.expire(timer as usize, events.now()) {
                    self.decide(processor, events);
                }
            }
        }
        self.schedule_timers(events);
    }
}
