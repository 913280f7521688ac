//! # What it measures
//! Which of a scenario's sites to choose for its users, its objective, and a budget.
//!
//! # How
//! Sets of sites are compared in closed form: exhaustively if there are few, else by local search with a
//! bound on how much better any other set could be. The best sets are simulated like `sim.geo`, and the
//! first that reaches the goal is chosen. `front` has the Pareto front of cost and users within the
//! objective; `sensitivity` repeats the choice with other latencies and more users. The limits are under
//! `place` in the scenario.
//!
//! # Known truth
//! Cases whose best sites can be found by hand, and the comparison of local with exhaustive search.
//!
//! # Cross-check
//! `sim.geo` of the chosen sites.
//!
//! # Overhead
//! One CPU: 4 of 12 sites for 6 regions take less than 5 s.
//!
//! # Caveats
//! The closed form takes each hour as stationary. Only the best sets are simulated.
use super::{scenario, SCENARIO, SEED};
use crate::cli::trial::SimulationTrial;
use nephoscope_sim::geo::{place, GeoScenario};
use nephoscope_sim::scenarios::GEO;
use nephoscope_wire::error::Error;
use nephoscope_wire::meaning::{Headline, SummarySettings};
use nephoscope_wire::spec::{Metric, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "sim.place",
    summary: "Placement of simulated sites for an objective and a budget",
    params: &[SCENARIO, SEED],
    metrics: &[
        Metric::higher("within_objective_ratio")
            .share()
            .headline()
            .in_summary(Headline::of("Requests within objective").settings(SummarySettings::Whole))
            .doc("Share of the responses within the objective with the chosen sites."),
        Metric::lower("cost_usd_per_h")
            .headline()
            .in_summary(Headline::of("Cost in USD per hour"))
            .doc("Cost of the chosen sites in US dollars per hour."),
        Metric::lower("bound_ratio")
            .share()
            .doc("Maximum by which any other set could be better; 0 after an exhaustive search."),
        Metric::document("chosen").doc("The chosen sites."),
        Metric::document("front").doc("The Pareto front of cost and users within the objective."),
        Metric::document("sensitivity")
            .doc("The choice with other latencies and numbers of users."),
    ],
    overhead: "one CPU for some seconds",
    source: "exhaustive search, and local search with a relaxation as bound",
    ..Spec::about(Resource::None)
};

pub fn run(trial: &mut SimulationTrial) -> Result<(), Error> {
    let scenario: GeoScenario = scenario(trial, GEO)?;
    scenario.check()?;
    scenario.place.clone().unwrap_or_default().check(&scenario)?;
    trial.start()?;
    let placement = place::run(&scenario, trial.seed())?;
    trial.emit_all(|sink| placement.emit(sink))?;
    for (name, document) in placement.documents() {
        trial.writer.emit_document(name, document)?;
    }
    Ok(())
}
