//! Results of a scenario: shares, lengths, response times, and the timeline of the first seconds.
use super::fixed_work::FixedWorkProbe;
use super::machine::simulate;
use super::observer::VcpuObserver;
use super::policy::RunInterval;
use super::scenario::SchedulerScenario;
use crate::error::Result;
use crate::samples::Sink;
use crate::statistics::Durations;
use crate::Nanos;
use serde_json::{json, Value};

/// Maximum number of intervals of the timeline: more cannot be drawn.
const MAX_INTERVALS: usize = 20_000;

#[derive(Clone, Debug)]
pub struct VcpuOutcome {
    /// Index of the machine among the names in order.
    pub vm: usize,
    /// Number of the virtual CPU within it.
    pub vcpu: usize,
    pub observer: VcpuObserver,
    pub fixed_work: Option<FixedWorkProbe>,
    /// Time on processors in the measured part, times their speeds.
    pub work_ns: f64,
    /// Intervals of the timeline: from, to (since the end of the warm-up), processor.
    pub timeline: Vec<(Nanos, Nanos, usize)>,
}

#[derive(Clone, Debug)]
pub struct SchedulerOutcome {
    /// Names of the machines, in order.
    pub vms: Vec<String>,
    pub vcpus: Vec<VcpuOutcome>,
    /// Length of the measured part, where processors have speeds.
    pub work_over_ns: Option<f64>,
    /// Response times of each machine that is a web server, by its index.
    pub responses: Vec<(usize, Durations)>,
    /// Number of intervals in the timeline.
    pub intervals: usize,
    /// Number of intervals for which the timeline has no room.
    pub intervals_left_out: u64,
    pub events: u64,
}

/// Simulates a scenario once.
pub fn run(scenario: &SchedulerScenario, seed: u64) -> Result<SchedulerOutcome> {
    let scenario = &scenario.allocated()?;
    let host = scenario.host(seed)?;
    let (end, warm_up) = scenario.durations()?;
    let threshold = scenario.threshold_ns()?;
    let mut vcpus: Vec<VcpuOutcome> = Vec::new();
    for (vm, domain) in host.domains.iter().enumerate() {
        for vcpu in 0..domain.vcpus.len() {
            let number = vcpus.len();
            let probe = scenario.fixed_work.as_ref();
            let probe =
                probe.map(|probe| FixedWorkProbe::new(probe, (warm_up, end), seed, number as u64));
            let observer = VcpuObserver::new(warm_up, end, threshold);
            let (work_ns, timeline) = (0.0, Vec::new());
            vcpus.push(VcpuOutcome { vm, vcpu, observer, fixed_work: probe, work_ns, timeline });
        }
    }
    let timeline_end = warm_up.saturating_add((scenario.timeline_s * 1e9) as Nanos);
    let (mut intervals, mut intervals_left_out) = (0, 0);
    let counts = simulate(&host, seed, end, warm_up, |run| {
        let vcpu = &mut vcpus[run.vcpu];
        vcpu.observer.add(&run);
        if let Some(speed) = scenario.speeds.get(run.processor) {
            let (from, to) = (run.from.max(warm_up), run.to.min(end));
            vcpu.work_ns += speed * to.saturating_sub(from) as f64;
        }
        if run.to > warm_up && run.from < timeline_end {
            let (from, to) = (run.from.max(warm_up), run.to.min(timeline_end));
            if !vcpu.extend_timeline(from - warm_up, to - warm_up, &run) {
                if intervals < MAX_INTERVALS {
                    intervals += 1;
                    vcpu.timeline.push((from - warm_up, to - warm_up, run.processor));
                } else {
                    intervals_left_out += 1;
                }
            }
        }
        if let Some(probe) = &mut vcpu.fixed_work {
            probe.add(run.from, run.to);
        }
    })?;
    let mut responses: Vec<(usize, Durations)> = Vec::new();
    for (vcpu, durations) in vcpus.iter().zip(counts.responses) {
        let Some(durations) = durations else { continue };
        match responses.last_mut().filter(|(vm, _)| *vm == vcpu.vm) {
            Some((_, all)) => all.merge(&durations),
            None => responses.push((vcpu.vm, durations)),
        }
    }
    let vms = scenario.vms.keys().cloned().collect();
    let has_speeds = !scenario.speeds.is_empty();
    Ok(SchedulerOutcome {
        vms,
        vcpus,
        work_over_ns: has_speeds.then(|| (end - warm_up) as f64),
        responses,
        intervals,
        intervals_left_out,
        events: counts.events,
    })
}

impl VcpuOutcome {
    /// Extends the last interval if the run continues it; returns whether it did.
    #[inline]
    fn extend_timeline(&mut self, from: Nanos, to: Nanos, run: &RunInterval) -> bool {
        match self.timeline.last_mut() {
            Some(last) if last.1 == from && last.2 == run.processor => {
                last.1 = to;
                true
            }
            _ => false,
        }
    }
}

impl SchedulerOutcome {
    /// Emits shares, lengths and what the fixed-work probe read by `vm` and `vcpu`, response times by
    /// `vm`, and the number of scheduling events.
    pub fn emit(&self, sink: &mut Sink<'_>) {
        for vcpu in &self.vcpus {
            let (vm, number) = (&self.vms[vcpu.vm], vcpu.vcpu.to_string());
            let factors = [("vm", json!(vm)), ("vcpu", json!(number))];
            let observer = &vcpu.observer;
            sink.scalar("cpu_share_ratio", &factors, observer.share());
            if let Some(over_ns) = self.work_over_ns {
                sink.scalar("work_ratio", &factors, vcpu.work_ns / over_ns);
            }
            for (metric, lengths) in [
                ("run_ns", &observer.runs),
                ("wait_ns", &observer.waits),
                ("period_ns", &observer.periods),
            ] {
                let pairs = lengths.pairs().map(|(length, count)| (length as f64, count));
                sink.histogram(metric, &factors, pairs);
            }
            if let Some(probe) = &vcpu.fixed_work {
                sink.histogram("fixed_work_share_ratio", &factors, probe.shares());
            }
        }
        for (vm, durations) in &self.responses {
            let factors = [("vm", json!(self.vms[*vm]))];
            sink.histogram("response_time_ns", &factors, durations.pairs());
        }
        sink.scalar("scheduling_events", &[], self.events as f64);
    }

    /// Returns the document `timeline`: for each virtual CPU its intervals in nanoseconds since the end
    /// of the warm-up, as `{"vm", "vcpu", "intervals": [[from, to, processor], …]}`.
    pub fn timeline_document(&self) -> Value {
        let of = |vcpu: &VcpuOutcome| json!({"vm": self.vms[vcpu.vm], "vcpu": vcpu.vcpu, "intervals": vcpu.timeline});
        let vcpus: Vec<_> = self.vcpus.iter().map(of).collect();
        json!({"vcpus": vcpus, "intervals_left_out": self.intervals_left_out})
    }
}
