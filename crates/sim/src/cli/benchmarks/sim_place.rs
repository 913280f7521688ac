//! # What it measures
//! Which of a scenario's sites there should be, for its users, its objective, and a budget.
//!
//! # How
//! Sets of sites are compared in closed form: all of them where there are few enough, else by search,
//! with a bound on how much better any other could be. The best sets are simulated as `sim.geo` does,
//! and the first that keeps what was asked for is chosen. `front` has the sets that none beats in both
//! cost and users within the objective; `sensitivity` asks again with other latencies and more users.
//! The question stands under `place` in the scenario.
//!
//! # Known truth
//! Cases whose best sites can be found by hand, and the comparison with all sets where a search was
//! told not to compare them.
//!
//! # Cross-check
//! `sim.geo` of the chosen sites.
//!
//! # Overhead
//! One CPU: 4 of 12 sites for 6 regions take less than 5 s.
//!
//! # Caveats
//! The closed form takes each hour as steady. What it says is checked by simulation for the best sets
//! only.
use super::sim_geo::SCENARIOS;
use super::{leading, metric, scenario, SimError, SCENARIO, SEED};
use crate::cli::trial::Trial;
use nephoscope_sim::geo::{place, Scenario};
use nephoscope_wire::spec::{Better, Shape, Spec, Unit};

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "sim.place",
    summary: "Where simulated sites should stand, for an objective and a budget",
    params: &[SCENARIO, SEED],
    metrics: &[
        leading(metric(
            "within_objective_ratio",
            Unit::Ratio,
            Better::Higher,
            Shape::Scalar,
            "Answers within the objective with the chosen sites.",
        )),
        leading(metric(
            "cost_usd_per_h",
            Unit::None,
            Better::Lower,
            Shape::Scalar,
            "What the chosen sites cost, US dollars an hour.",
        )),
        metric(
            "bound_ratio",
            Unit::Ratio,
            Better::Lower,
            Shape::Scalar,
            "How much better any other set could be at most; 0 where all were compared.",
        ),
        metric("chosen", Unit::None, Better::None, Shape::Document, "The chosen sites."),
        metric(
            "front",
            Unit::None,
            Better::None,
            Shape::Document,
            "Sets that none beats in both cost and users within the objective.",
        ),
        metric(
            "sensitivity",
            Unit::None,
            Better::None,
            Shape::Document,
            "What would be chosen with other latencies, and with other numbers of users.",
        ),
    ],
    overhead: "one CPU for some seconds",
    source: "exhaustive search, and local search with a relaxation as bound",
    two_sided: false,
    load: false,
};

/// One answer.
pub fn run(trial: &mut Trial) -> Result<(), SimError> {
    let scenario: Scenario = scenario(trial, SCENARIOS)?;
    scenario.check()?;
    scenario.place.clone().unwrap_or_default().check(&scenario)?;
    trial.prepared()?;
    let answer = place::run(&scenario, trial.seed())?;
    trial.emit_all(|emit| answer.samples(emit))?;
    for (name, document) in answer.documents() {
        trial.emit_document(name, document)?;
    }
    Ok(())
}
