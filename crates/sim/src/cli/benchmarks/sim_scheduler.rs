//! # What it measures
//! The CPU share of each virtual CPU of a simulated host, its runs and waits, and the response times of
//! web servers in its machines.
//!
//! # How
//! A discrete-event simulation of the host's scheduler: Xen's Credit, Credit2, SEDF and BVT, or Linux with weights
//! (EEVDF), quotas (CFS bandwidth) and reservations (`SCHED_DEADLINE`), which are enforced at the kernel's
//! tick. Virtual machines spin, work periodically or in bursts, or serve requests. After `warmup_s` a loop
//! without cost observes each virtual CPU: a pause of at least `threshold_ms` is a wait, the time between
//! two waits is a run, and a period extends from the start of a wait to that of the next. With `fixed_work`
//! a second probe repeats a fixed amount of work and records the share that it observes. With `speeds`
//! processors differ, and `work_ratio` is the time on each times its speed; `allocation: equal_work`
//! gives each machine the same work per weight by a quota, as much as the slowest processor can give.
//!
//! # Known truth
//! Machines alone on processors of speeds v have the work v, and with equal work the minimum of v. Shares that follow from the parameters (30 of 40 ms are 75 %), the published shares of Zhuang
//! (2012), Tables 4.2 and 4.3, and the lab's own measurements under the same reservation and cap.
//!
//! # Cross-check
//! `cpu.gaps` on a target `sim:SCENARIO`: the probe's own method in the same simulation.
//!
//! # Overhead
//! One CPU: some millions of scheduling events a second.
//!
//! # Caveats
//! Nothing but the scheduler disturbs: there are no interrupts, no caches, no cost of a context switch.
use super::{scenario, SCENARIO, SEED};
use crate::cli::trial::SimulationTrial;
use nephoscope_sim::scenarios::SCHEDULER;
use nephoscope_sim::scheduler::scenario::{run as simulate, SchedulerScenario};
use nephoscope_wire::error::Error;
use nephoscope_wire::meaning::{Headline, SummarySettings};
use nephoscope_wire::spec::{Metric, Resource, Spec, Unit};

pub const SPEC: Spec = Spec {
    id: "sim.scheduler",
    summary: "CPU shares, runs and waits under a simulated scheduler",
    params: &[SCENARIO, SEED],
    metrics: &[
        Metric::higher("cpu_share_ratio")
            .share()
            .headline()
            .in_summary(Headline::of("CPU share").settings(SummarySettings::Each))
            .doc("CPU share of a virtual CPU; factors vm and vcpu."),
        Metric::higher("work_ratio").doc(
            "Work of a virtual CPU relative to a processor of speed 1; only where speeds are given.",
        ),
        Metric::higher("run_ns").histogram().doc("Lengths of complete runs."),
        Metric::lower("wait_ns").histogram().doc("Lengths of complete waits."),
        Metric::neutral("period_ns")
            .histogram()
            .doc("Times from the start of a wait to that of the next."),
        Metric::lower("response_time_ns")
            .histogram()
            .doc("Response times of a web server; factor vm."),
        Metric::higher("fixed_work_share_ratio")
            .share()
            .histogram()
            .doc("CPU shares that the probe with a fixed amount of work observed."),
        Metric::neutral("scheduling_events")
            .in_unit(Unit::Count)
            .doc("Number of simulated scheduling events."),
        Metric::document("timeline").doc("Runs of each virtual CPU in the first measured seconds."),
    ],
    overhead: "one CPU for a second per some millions of scheduling events",
    source: "Xen 4.1.1 and its documentation; Linux kernel documentation (scheduler)",
    ..Spec::about(Resource::None)
};

pub fn run(trial: &mut SimulationTrial) -> Result<(), Error> {
    let scenario: SchedulerScenario = scenario(trial, SCHEDULER)?;
    scenario.check()?;
    trial.start()?;
    let outcome = simulate(&scenario, trial.seed())?;
    trial.emit_all(|sink| outcome.emit(sink))?;
    if outcome.intervals_left_out > 0 {
        trial.writer.note(format!(
            "The timeline has room for {} intervals; {} more are left out.",
            outcome.intervals, outcome.intervals_left_out
        ));
    }
    trial.writer.emit_document("timeline", outcome.timeline_document())
}
