//! # What it measures
//! What the probe's `cpu.gaps` would see inside a simulated virtual machine.
//!
//! # How
//! `--machine` is a scheduler scenario; the machine to look from sleeps before, and its own workload
//! is left away. Its loops look at the clock every 30 ns for the window and keep gaps, runs and
//! periods as the probe does. Parameters and samples are those of the probe; what has no meaning
//! without a machine is left out.
//!
//! # Known truth
//! The scenario's own shares and lengths.
//!
//! # Cross-check
//! The probe's `cpu.gaps` in the lab, under the same reservation or cap.
//!
//! # Overhead
//! One CPU for some milliseconds.
//!
//! # Caveats
//! Nothing but the scheduler disturbs, and no cause of a gap is known.
use super::SimError;
use crate::cli::trial::{whole, Trial};
use nephoscope_sim::scheduler::gaps::{self, Look};
use nephoscope_sim::scheduler::scenario::Scenario;
pub use nephoscope_wire::specs::cpu_gaps::SPEC;

/// One trial.
pub fn run(trial: &mut Trial) -> Result<(), SimError> {
    let Some(machine) = trial.machine.take() else {
        return Err(SimError::usage(
            "cpu.gaps needs a simulated machine, and none was named.",
            "Name a scheduler scenario: a target sim:SCENARIO.",
        ));
    };
    let scenario = Scenario::from_json(&machine.to_string())?;
    let params = &trial.params;
    let look = Look {
        duration_ns: whole(params, "duration_ns"),
        threshold_ns: whole(params, "threshold_ns"),
        cpus: params.ints("cpus").into_iter().map(|cpu| cpu.unsigned_abs() as usize).collect(),
        cpus_max: params.size("cpus_max"),
        processes_per_cpu: params.size("processes_per_cpu"),
        events_max: params.size("events_max"),
        sleep_ns: whole(params, "sleep_ns"),
        busy_ns: whole(params, "busy_ns"),
    };
    trial.prepared()?;
    let seen = gaps::run(&scenario, trial.vm.as_deref(), &look, trial.seed())?;
    trial.emit_all_at(|emit| seen.samples(emit))
}
