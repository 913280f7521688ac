//! # What it measures
//! The samples of the probe's `cpu.gaps` inside a simulated virtual machine.
//!
//! # How
//! `--machine` is a scheduler scenario. The virtual machine sleeps before the window and has no workload
//! of its own. Its loops read the clock every 30 ns and record gaps, runs and periods as the probe does.
//! Parameters and samples are those of the probe, without those that need a real machine.
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
//! Nothing but the scheduler disturbs the loops, and the cause of a gap is unknown.
use crate::cli::trial::SimulationTrial;
use nephoscope_sim::scenarios;
use nephoscope_sim::scheduler::gaps::{self, GapConfig};
use nephoscope_sim::scheduler::scenario::SchedulerScenario;
use nephoscope_wire::error::Error;
pub use nephoscope_wire::specs::cpu_gaps::SPEC;

pub fn run(trial: &mut SimulationTrial) -> Result<(), Error> {
    let Some(machine) = trial.request.machine.take() else {
        return Err(Error::usage(
            "cpu.gaps needs a simulated machine.",
            "Name a scheduler scenario: a target sim:SCENARIO.",
        ));
    };
    let scenario: SchedulerScenario = scenarios::parse(&machine.to_string())?;
    scenario.check()?;
    let params = &trial.params;
    let config = GapConfig {
        duration_ns: params.u64("duration_ns"),
        threshold_ns: params.u64("threshold_ns"),
        cpus: params.ints("cpus").into_iter().map(|cpu| cpu.unsigned_abs() as usize).collect(),
        cpus_max: params.size("cpus_max"),
        processes_per_cpu: params.size("processes_per_cpu"),
        events_max: params.size("events_max"),
        sleep_ns: params.u64("sleep_ns"),
        busy_ns: params.u64("busy_ns"),
    };
    trial.start()?;
    let gaps = gaps::run(&scenario, trial.request.vm.as_deref(), &config, trial.seed())?;
    trial.emit_all(|sink| gaps.emit(sink))
}
