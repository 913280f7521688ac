//! Xen's Credit2 scheduler, with one queue for all processors and without caps: the virtual CPU with
//! the most credit runs. Credit is used up in inverse proportion to the weight; when nobody has any
//! left, everybody gets the same.
//!
//! Source: Xen 4.17, its documentation of Credit2 and the constants of its sources.
use super::host::Host;
use super::policy::{Decision, Policy, Processor};
use crate::Nanos;

/// Credit that everybody gets, in ns of the largest weight.
const INITIAL_CREDIT: i64 = 10_000_000;
/// Bounds of a run; a virtual CPU is not preempted within the first.
const MIN_RUN: Nanos = 1_000_000;
const MAX_RUN: Nanos = 2_000_000;
/// Credit that is left may be taken along up to this.
const CARRYOVER: i64 = 500_000;

struct Credit2Vcpu {
    weight: u64,
    credit: i64,
    /// Part of a unit of credit that was not charged, times the weight.
    residual: u64,
    is_runnable: bool,
    /// The processor on which it runs or ran last.
    home: usize,
    is_running: bool,
    started_at: Nanos,
}

pub struct Credit2 {
    vcpus: Vec<Credit2Vcpu>,
    max_weight: u64,
}

impl Credit2 {
    pub fn new(host: &Host) -> Self {
        let vcpu = |(number, (_, domain)): (usize, (usize, usize))| Credit2Vcpu {
            weight: u64::from(host.domains[domain].weight),
            credit: INITIAL_CREDIT,
            residual: 0,
            is_runnable: false,
            home: number % host.processors,
            is_running: false,
            started_at: 0,
        };
        let vcpus: Vec<_> = host.vcpus().into_iter().enumerate().map(vcpu).collect();
        let max_weight = vcpus.iter().map(|vcpu| vcpu.weight).max().unwrap_or(1);
        Self { vcpus, max_weight }
    }

    /// Returns the virtual CPUs that wait for a processor, the one with the most credit first.
    fn waiting(&self) -> Vec<usize> {
        let mut waiting: Vec<usize> = (0..self.vcpus.len())
            .filter(|number| self.vcpus[*number].is_runnable && !self.vcpus[*number].is_running)
            .collect();
        waiting.sort_by_key(|number| -self.vcpus[*number].credit);
        waiting
    }

    /// Gives everybody credit, once the one that is next has none.
    fn reset(&mut self, next: usize) {
        let credit = self.vcpus[next].credit;
        if credit > 0 {
            return;
        }
        // So many that the next one has some afterwards.
        let times = -credit / INITIAL_CREDIT + 1;
        for vcpu in &mut self.vcpus {
            vcpu.credit = (vcpu.credit + times * INITIAL_CREDIT).min(INITIAL_CREDIT + CARRYOVER);
        }
    }

    /// Returns for how long the next one runs, until another has as much credit.
    fn run_ns(&self, next: usize, waiting: &[usize]) -> Nanos {
        let vcpu = &self.vcpus[next];
        let second = waiting.iter().find(|number| **number != next);
        let lead = second.map_or(vcpu.credit, |number| vcpu.credit - self.vcpus[*number].credit);
        let lead_ns = lead.min(vcpu.credit).max(0).unsigned_abs() * vcpu.weight / self.max_weight;
        lead_ns.clamp(MIN_RUN, MAX_RUN)
    }
}

impl Policy for Credit2 {
    fn charge(&mut self, vcpu: usize, ran_ns: Nanos) {
        let vcpu = &mut self.vcpus[vcpu];
        let used = vcpu.residual + ran_ns * self.max_weight;
        vcpu.credit -= (used / vcpu.weight).cast_signed();
        vcpu.residual = used % vcpu.weight;
    }

    fn wake(&mut self, vcpu: usize, _: Nanos, processors: &[Processor]) -> Option<usize> {
        self.vcpus[vcpu].is_runnable = true;
        let home = self.vcpus[vcpu].home;
        let idle = |number: &usize| processors[*number].current.is_none();
        let idle_processor =
            Some(home).filter(idle).or_else(|| (0..processors.len()).find(|number| idle(number)));
        // Where the least credit runs; its charge decides whether it goes on.
        idle_processor.or_else(|| {
            (0..processors.len()).min_by_key(|number| {
                processors[*number].current.map(|current| self.vcpus[current].credit)
            })
        })
    }

    fn block(&mut self, vcpu: usize, _: Nanos) {
        self.vcpus[vcpu].is_runnable = false;
        self.vcpus[vcpu].is_running = false;
    }

    fn decide(&mut self, processor: usize, current: Option<usize>, now: Nanos) -> Decision {
        if let Some(number) = current {
            let vcpu = &mut self.vcpus[number];
            if now < vcpu.started_at + MIN_RUN {
                let decide_at = Some(vcpu.started_at + MIN_RUN);
                return Decision { vcpu: current, decide_at };
            }
            vcpu.is_running = false;
        }
        let waiting = self.waiting();
        let Some(first) = waiting.first().copied() else {
            return Decision { vcpu: None, decide_at: None };
        };
        // Of equals the one that runs goes on.
        let next = current
            .filter(|number| self.vcpus[*number].credit >= self.vcpus[first].credit)
            .unwrap_or(first);
        self.reset(next);
        let run_ns = self.run_ns(next, &waiting);
        let vcpu = &mut self.vcpus[next];
        (vcpu.is_running, vcpu.home, vcpu.started_at) = (true, processor, now);
        Decision { vcpu: Some(next), decide_at: Some(now + run_ns) }
    }
}
