//! # What it measures
//! What each virtual CPU gets of a simulated host, in which pieces, and how long requests take that
//! its machine serves meanwhile.
//!
//! # How
//! A discrete-event simulation of the host's scheduler: Xen's Credit, SEDF and BVT, or Linux with
//! weights (EEVDF), quotas (CFS bandwidth) and reservations (`SCHED_DEADLINE`), which notice that
//! something is used up at the kernel's tick. Virtual machines spin, work periodically or in bursts,
//! or serve requests. After `warmup_s` a loop without cost watches each virtual CPU: a pause of at
//! least `threshold_ms` is a wait, what lies between two waits is a run, and a period goes from the
//! beginning of a wait to that of the next. With `fixed_work` a second probe does a fixed amount of
//! work again and again, and keeps the share that it saw.
//!
//! # Known truth
//! Shares that follow from the parameters (30 of 40 ms are 75 %), the published shares of Zhuang
//! (2012), Tables 4.2 and 4.3, and the lab's own measurements under the same reservation and cap.
//!
//! # Cross-check
//! `cpu.gaps` on a target `sim:SCENARIO`: the probe's own way of looking, in the same simulation.
//!
//! # Overhead
//! One CPU: some millions of scheduling events a second.
//!
//! # Caveats
//! Nothing but the scheduler disturbs: there are no interrupts, no caches, no cost of a switch.
use super::{leading, metric, scenario, SimError, SCENARIO, SEED};
use crate::cli::trial::Trial;
use nephoscope_sim::scheduler::builtin::BUILT_IN;
use nephoscope_sim::scheduler::scenario::{run as simulate, Scenario};
use nephoscope_wire::spec::{Better, Shape, Spec, Unit};

/// The built-in scenarios.
pub const SCENARIOS: super::Scenarios = BUILT_IN;

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "sim.scheduler",
    summary: "What virtual CPUs get of a simulated scheduler, and in which pieces",
    params: &[SCENARIO, SEED],
    metrics: &[
        leading(metric(
            "cpu_share_ratio",
            Unit::Ratio,
            Better::Higher,
            Shape::Scalar,
            "Share of a processor that a virtual CPU had; factors vm and vcpu.",
        )),
        metric("run_ns", Unit::Ns, Better::Higher, Shape::Histogram, "Lengths of complete runs."),
        metric("wait_ns", Unit::Ns, Better::Lower, Shape::Histogram, "Lengths of complete waits."),
        metric(
            "period_ns",
            Unit::Ns,
            Better::None,
            Shape::Histogram,
            "Times from the beginning of a wait to that of the next.",
        ),
        metric(
            "response_time_ns",
            Unit::Ns,
            Better::Lower,
            Shape::Histogram,
            "Times that a web server's requests took; factor vm.",
        ),
        metric(
            "fixed_work_share_ratio",
            Unit::Ratio,
            Better::Higher,
            Shape::Histogram,
            "Shares that a probe saw that does a fixed amount of work.",
        ),
        metric(
            "scheduling_events",
            Unit::Count,
            Better::None,
            Shape::Scalar,
            "Scheduling events that were simulated.",
        ),
        metric(
            "timeline",
            Unit::None,
            Better::None,
            Shape::Document,
            "Who ran when in the first seconds that count.",
        ),
    ],
    overhead: "one CPU for a second per some millions of scheduling events",
    source: "Xen 4.1.1 and its documentation; Linux kernel documentation (scheduler)",
    two_sided: false,
    load: false,
};

/// One replication.
pub fn run(trial: &mut Trial) -> Result<(), SimError> {
    let scenario: Scenario = scenario(trial, SCENARIOS)?;
    scenario.check()?;
    trial.prepared()?;
    let outcome = simulate(&scenario, trial.seed())?;
    trial.emit_all(|emit| outcome.samples(emit))?;
    if outcome.timeline_left_out > 0 {
        trial.note(format!(
            "{} intervals of the first seconds are not in the timeline: it has room for {}.",
            outcome.timeline_left_out,
            outcome.timeline.len()
        ));
    }
    trial.emit_document("timeline", outcome.timeline_document())
}
