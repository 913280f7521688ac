//! The table of what the simulator answers. To add one: a file `<room>_<quantity>.rs` here with its
//! SPEC, its code and its manual page as `//!` text, and its lines below.
use super::error::SimError;
use super::trial::Trial;
use nephoscope_wire::spec::{self, Better, Kind, Metric, Param, Shape, Spec, Unit};
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

/// A benchmark: its declaration, its page, its code.
pub struct Benchmark {
    /// The declaration.
    pub spec: &'static Spec,
    /// Source text of the file; its `//!` lines are the manual page.
    source: &'static str,
    /// One replication.
    pub run: fn(&mut Trial) -> Result<(), SimError>,
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

/// Everything that is simulated, in the order of lists and pages; then what every target answers.
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

/// Name and JSON of built-in scenarios.
type Scenarios = &'static [(&'static str, &'static str)];

/// The built-in scenarios of each benchmark that has some.
const SCENARIOS: &[(&str, Scenarios)] = &[
    ("sim.geo", sim_geo::SCENARIOS),
    ("sim.scheduler", sim_scheduler::SCENARIOS),
    ("sim.selection", sim_selection::SCENARIOS),
];

/// The benchmark of that name.
pub fn find(id: &str) -> Result<&'static Benchmark, SimError> {
    ALL.iter().find(|benchmark| benchmark.spec.id == id).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|benchmark| benchmark.spec.id).collect();
        SimError::usage(
            format!("'{id}' cannot be simulated."),
            format!("These can: {}.", known.join(", ")),
        )
    })
}

/// What the simulator can do, in the words of the probe's `describe`.
pub fn describe() -> Value {
    let all = ALL.iter().map(|benchmark| (benchmark.spec, benchmark.source));
    spec::describe(env!("CARGO_PKG_VERSION"), all)
}

/// The built-in scenarios: benchmark -> name -> scenario.
pub fn scenarios() -> Value {
    let of = |known: &Scenarios| -> Value {
        let read = |text: &str| -> Value {
            serde_json::from_str(text).expect("a test reads every built-in scenario")
        };
        known.iter().map(|(name, text)| ((*name).to_owned(), read(text))).collect()
    };
    SCENARIOS.iter().map(|(id, known)| ((*id).to_owned(), of(known))).collect()
}

/// The parameter that every simulation has.
const SEED: Param = Param {
    id: "seed",
    unit: Unit::None,
    kind: Kind::Int { default: 0, min: 0, max: i64::MAX },
    doc: "Chance of the replication; 0 takes that of the round.",
};

/// A parameter that is a scenario as JSON text.
const SCENARIO: Param = Param {
    id: "scenario",
    unit: Unit::None,
    kind: Kind::Text { default: "" },
    doc: "The scenario: JSON (in a plan also YAML), or the name of a built-in one.",
};

const fn metric(
    id: &'static str,
    unit: Unit,
    better: Better,
    shape: Shape,
    doc: &'static str,
) -> Metric {
    Metric { id, unit, better, shape, headline: false, doc }
}

/// The same, and the report leads with it.
const fn leading(metric: Metric) -> Metric {
    Metric { headline: true, ..metric }
}

/// The scenario of a trial, built-in or read by its own types; serde's words name the key and the
/// place.
fn scenario<S: DeserializeOwned>(trial: &Trial, known: Scenarios) -> Result<S, SimError> {
    let given = trial.params.text("scenario").trim();
    if !given.starts_with('{') && !known.iter().any(|(name, _)| *name == given) {
        return Err(SimError::usage(
            match given {
                "" => format!("{} needs a scenario.", trial.spec().id),
                other => format!("{}: there is no scenario '{other}'.", trial.spec().id),
            },
            format!("Give it one of yours as JSON, or a built-in one: {}.", names(known)),
        ));
    }
    let built_in = known.iter().find(|(name, _)| *name == given);
    serde_json::from_str(built_in.map_or(given, |(_, text)| text)).map_err(|error| {
        SimError::new(
            super::error::Kind::Usage,
            "scenario",
            format!("{}: the scenario is not understood: {error}.", trial.spec().id),
            "Correct that place.",
        )
    })
}

fn names(known: Scenarios) -> String {
    known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
