//! The table of benchmarks. To add one: a file named like its id, with its SPEC, its code and its manual
//! page as `//!` text, and a line in [`ALL`].
use super::trial::SimulationTrial;
use nephoscope_sim::scenarios::{self, BuiltIn};
use nephoscope_wire::error::Error;
use nephoscope_wire::spec::{self, Param, Spec};
use serde::de::DeserializeOwned;
use serde_json::Value;

mod cpu_gaps;
mod null;
mod sim_geo;
mod sim_place;
mod sim_queue;
mod sim_scheduler;
mod sim_selection;
mod sys_fingerprint;

pub struct Benchmark {
    pub spec: &'static Spec,
    /// Source text of the file; its `//!` lines are the manual page.
    source: &'static str,
    pub run: fn(&mut SimulationTrial) -> Result<(), Error>,
}

macro_rules! benchmark {
    ($module:ident) => {
        Benchmark {
            spec: &$module::SPEC,
            source: include_str!(concat!(stringify!($module), ".rs")),
            run: $module::run,
        }
    };
}

/// All benchmarks, in the order of lists and pages: simulations, then what every target answers.
pub const ALL: &[Benchmark] = &[
    benchmark!(sim_geo),
    benchmark!(sim_place),
    benchmark!(sim_scheduler),
    benchmark!(sim_selection),
    benchmark!(sim_queue),
    benchmark!(cpu_gaps),
    benchmark!(sys_fingerprint),
    benchmark!(null),
];

/// The built-in scenarios of each benchmark.
const SCENARIOS: &[(&str, BuiltIn)] = &[
    ("sim.geo", scenarios::GEO),
    ("sim.scheduler", scenarios::SCHEDULER),
    ("sim.selection", scenarios::SELECTION),
];

pub fn find(id: &str) -> Result<&'static Benchmark, Error> {
    ALL.iter().find(|benchmark| benchmark.spec.id == id).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|benchmark| benchmark.spec.id).collect();
        Error::usage(
            format!("There is no simulated benchmark '{id}'."),
            format!("There are: {}.", known.join(", ")),
        )
    })
}

/// Returns the declarations of all benchmarks, in the format of the probe's `describe`.
pub fn describe() -> Value {
    let all = ALL.iter().map(|benchmark| (benchmark.spec, benchmark.source));
    spec::describe(env!("CARGO_PKG_VERSION"), all)
}

/// Returns the built-in scenarios: benchmark -> name -> scenario.
pub fn scenarios() -> Value {
    let parse =
        |text: &str| -> Value { serde_json::from_str(text).expect("a test reads them all") };
    let all = |known: &BuiltIn| -> Value {
        known.iter().map(|(name, text)| ((*name).to_owned(), parse(text))).collect()
    };
    SCENARIOS.iter().map(|(id, known)| ((*id).to_owned(), all(known))).collect()
}

const SEED: Param = Param::seed().doc("Random seed of the replication; 0 takes that of the trial.");

const SCENARIO: Param = Param::text("scenario", "")
    .doc("Scenario as JSON (in a plan also YAML), or the name of a built-in one.");

/// Returns the scenario of a trial, which is a built-in one or JSON.
fn scenario<S: DeserializeOwned>(trial: &SimulationTrial, known: BuiltIn) -> Result<S, Error> {
    let text = trial.params.text("scenario").trim();
    if text.starts_with('{') {
        return scenarios::parse(text);
    }
    scenarios::built_in(known, text).ok_or_else(|| {
        let id = trial.writer.spec().id;
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Error::usage(
            match text {
                "" => format!("{id} needs a scenario."),
                name => format!("{id}: there is no scenario '{name}'."),
            },
            format!("Give a scenario as JSON, or a built-in one: {}.", names.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests;
