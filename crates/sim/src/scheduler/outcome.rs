//! What a scenario comes to: shares, lengths, response times, and the first seconds one by one.
use super::fixed_work::FixedWorks;
use super::machine::observe;
use super::scenario::Scenario;
use super::seen::{Lengths, Seen};
use super::state::Stretch;
use crate::error::Refused;
use crate::tally::{Emit, Times};
use crate::Nanos;

/// Intervals that are told one by one at most: more are no picture.
const INTERVALS_MOST: usize = 20_000;

/// A virtual CPU ran, from one moment of what is counted to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Place of the machine among the names in order.
    pub vm: usize,
    /// Number of the virtual CPU within it.
    pub vcpu: usize,
    /// Processor on which it ran.
    pub processor: usize,
    /// From when, since counting began.
    pub from: Nanos,
    /// To when.
    pub to: Nanos,
}

/// What was seen of one virtual CPU.
#[derive(Clone, Debug)]
pub struct OfVcpu {
    /// Place of the machine among the names in order.
    pub vm: usize,
    /// Number of the virtual CPU within it.
    pub vcpu: usize,
    /// Share, runs, waits and periods.
    pub seen: Seen,
    /// What the probe that does a fixed amount of work read, if there is one.
    pub fixed_work: Option<FixedWorks>,
}

/// What a scenario comes to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Names of the machines, in order.
    pub vms: Vec<String>,
    /// Every virtual CPU.
    pub vcpus: Vec<OfVcpu>,
    /// Response times of each machine that is a web server, by its place.
    pub responses: Vec<(usize, Times)>,
    /// The first seconds, interval by interval.
    pub timeline: Vec<Interval>,
    /// Intervals beyond those that are told one by one.
    pub timeline_left_out: u64,
    /// Scheduling events that happened.
    pub events: u64,
}

/// Simulates a scenario once. Refused: what [`Scenario::check`] refuses.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Outcome, Refused> {
    let host = scenario.host(seed)?;
    let (end, before) = scenario.lengths()?;
    let threshold = scenario.threshold_ns()?;
    let places: Vec<(usize, usize)> = host
        .domains
        .iter()
        .enumerate()
        .flat_map(|(vm, domain)| (0..domain.vcpus.len()).map(move |vcpu| (vm, vcpu)))
        .collect();
    let mut seen: Vec<Seen> =
        (0..places.len()).map(|vcpu| Seen::new(vcpu, before, end, threshold)).collect();
    let probe = scenario.fixed_work.as_ref();
    let mut works: Vec<Option<FixedWorks>> = (0..places.len())
        .map(|vcpu| probe.map(|one| FixedWorks::new(one, (before, end), seed, vcpu as u64)))
        .collect();
    let told_until = before.saturating_add((scenario.timeline_s * 1e9) as Nanos);
    let mut strip = Strip::new(before, told_until, places.clone());
    let told = observe(&host, seed, end, before, |stretch| {
        seen[stretch.vcpu].add(&stretch);
        strip.add(&stretch);
        if let Some(works) = &mut works[stretch.vcpu] {
            works.add(stretch.from, stretch.to);
        }
    })?;
    let mut responses: Vec<(usize, Times)> = Vec::new();
    for ((vm, _), times) in places.iter().zip(told.responses) {
        let Some(times) = times else { continue };
        match responses.last_mut().filter(|(last, _)| last == vm) {
            Some((_, all)) => all.merge(&times),
            None => responses.push((*vm, times)),
        }
    }
    let of = |((&(vm, vcpu), seen), fixed_work)| OfVcpu { vm, vcpu, seen, fixed_work };
    Ok(Outcome {
        vms: scenario.vms.keys().cloned().collect(),
        vcpus: places.iter().zip(seen).zip(works).map(of).collect(),
        responses,
        timeline: strip.intervals,
        timeline_left_out: strip.left_out,
        events: told.events,
    })
}

impl Outcome {
    /// Every sample: metric, factors, value, count.
    ///
    /// `cpu_share_ratio`, `run_ns`, `wait_ns`, `period_ns` and `fixed_work_share_ratio` by `vm` and
    /// `vcpu`; `response_time_ns` by `vm`; `scheduling_events` of all.
    pub fn samples(&self, emit: &mut Emit<'_>) {
        for one in &self.vcpus {
            let factors = [("vm", self.vms[one.vm].clone()), ("vcpu", one.vcpu.to_string())];
            emit("cpu_share_ratio", &factors, one.seen.share(), 1);
            let mut lengths = |metric: &str, lengths: &Lengths| {
                for (length, count) in lengths.pairs() {
                    emit(metric, &factors, length as f64, count);
                }
            };
            lengths("run_ns", &one.seen.runs);
            lengths("wait_ns", &one.seen.waits);
            lengths("period_ns", &one.seen.periods);
            for (share, count) in one.fixed_work.iter().flat_map(FixedWorks::shares) {
                emit("fixed_work_share_ratio", &factors, share, count);
            }
        }
        for (vm, times) in &self.responses {
            let factors = [("vm", self.vms[*vm].clone())];
            for (value, count) in times.pairs() {
                emit("response_time_ns", &factors, value, count);
            }
        }
        emit("scheduling_events", &[], self.events as f64, 1);
    }

    /// The document `timeline`: for each virtual CPU its intervals in nanoseconds since counting
    /// began, as `{"vm", "vcpu", "intervals": [[from, to, processor], …]}`.
    pub fn timeline_document(&self) -> serde_json::Value {
        let of = |one: &OfVcpu| {
            let mine = |interval: &&Interval| (interval.vm, interval.vcpu) == (one.vm, one.vcpu);
            let told = |interval: &Interval| (interval.from, interval.to, interval.processor);
            let intervals: Vec<_> = self.timeline.iter().filter(mine).map(told).collect();
            serde_json::json!({"vm": self.vms[one.vm], "vcpu": one.vcpu, "intervals": intervals})
        };
        let vcpus: Vec<_> = self.vcpus.iter().map(of).collect();
        serde_json::json!({"vcpus": vcpus, "intervals_left_out": self.timeline_left_out})
    }
}

/// Puts stretches that follow each other without a pause together.
struct Strip {
    from: Nanos,
    to: Nanos,
    places: Vec<(usize, usize)>,
    /// Place of each virtual CPU's last interval.
    last: Vec<Option<usize>>,
    intervals: Vec<Interval>,
    left_out: u64,
}

impl Strip {
    fn new(from: Nanos, to: Nanos, places: Vec<(usize, usize)>) -> Self {
        let last = vec![None; places.len()];
        Self { from, to, places, last, intervals: Vec::new(), left_out: 0 }
    }

    #[inline]
    fn add(&mut self, stretch: &Stretch) {
        if stretch.to <= self.from || stretch.from >= self.to {
            return;
        }
        let (from, to) = (stretch.from.max(self.from), stretch.to.min(self.to));
        let (from, to) = (from - self.from, to - self.from);
        if let Some(place) = self.last[stretch.vcpu] {
            let last = &mut self.intervals[place];
            if last.to == from && last.processor == stretch.processor {
                last.to = to;
                return;
            }
        }
        if self.intervals.len() >= INTERVALS_MOST {
            self.left_out += 1;
            return;
        }
        let (vm, vcpu) = self.places[stretch.vcpu];
        self.last[stretch.vcpu] = Some(self.intervals.len());
        self.intervals.push(Interval { vm, vcpu, processor: stretch.processor, from, to });
    }
}
