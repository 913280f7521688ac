//! # What it measures
//! How long users around the world wait for sites that stand in some of its places, what part of the
//! answers comes within an objective, how busy the sites are, and what they cost.
//!
//! # How
//! A discrete-event simulation: user bases ask by local hour, a broker picks the site, a balancer
//! picks the instance, instances serve in processor sharing or in order. On the way lie latency (a
//! matrix, measured round trips, or the distance on the globe), bandwidth that a way's requests
//! share, caches, and pages of several round trips. Instances are added and taken away with delay;
//! sites and ways fail. `compat: cloudanalyst` keeps that tool's quirks.
//!
//! # Known truth
//! The golden figures of CloudAnalyst's own scenarios, and Little's law; hourly loads sum to the
//! total, and two sites never make a region slower than the better one alone (tests draw scenarios).
//!
//! # Cross-check
//! The lab: the same deployment with real servers and real requests.
//!
//! # Overhead
//! One CPU: some millions of requests a second; memory grows with what is in flight.
//!
//! # Caveats
//! The model knows no lost packets and no queues inside the network. An overloaded site is refused
//! before the run, unless the scenario says otherwise.
use super::{leading, metric, scenario, SimError, SCENARIO, SEED};
use crate::cli::trial::Trial;
use nephoscope_sim::geo::{self, Scenario};
use nephoscope_wire::spec::{Better, Shape, Spec, Unit};
use serde_json::json;

/// The built-in scenarios.
pub const SCENARIOS: super::Scenarios = &geo::builtin::SCENARIOS;

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "sim.geo",
    summary: "What users around the world feel of simulated sites, and what these cost",
    params: &[SCENARIO, SEED],
    metrics: &[
        leading(metric(
            "response_time_mean_ns",
            Unit::Ns,
            Better::Lower,
            Shape::Scalar,
            "Mean response time: overall, by region, user_base, site or hour (UTC).",
        )),
        leading(metric(
            "within_objective_ratio",
            Unit::Ratio,
            Better::Higher,
            Shape::Scalar,
            "Answers within the objective, of all requests; overall and by region.",
        )),
        metric(
            "response_time_ns",
            Unit::Ns,
            Better::Lower,
            Shape::Histogram,
            "Response times: overall, by region or site.",
        ),
        metric(
            "response_time_min_ns",
            Unit::Ns,
            Better::None,
            Shape::Scalar,
            "Shortest response time of a replication.",
        ),
        metric(
            "response_time_max_ns",
            Unit::Ns,
            Better::Lower,
            Shape::Scalar,
            "Longest response time of a replication.",
        ),
        metric(
            "processing_time_mean_ns",
            Unit::Ns,
            Better::Lower,
            Shape::Scalar,
            "Mean time of a request at the site.",
        ),
        metric(
            "requests",
            Unit::Count,
            Better::None,
            Shape::Scalar,
            "Requests answered: overall, by region, by site, by site and hour (UTC).",
        ),
        metric(
            "unserved_ratio",
            Unit::Ratio,
            Better::Lower,
            Shape::Scalar,
            "Requests that nobody answered; overall and by region.",
        ),
        metric(
            "utilisation_ratio",
            Unit::Ratio,
            Better::None,
            Shape::Scalar,
            "Part of a site's capacity that was used.",
        ),
        metric(
            "instances",
            Unit::Count,
            Better::None,
            Shape::Scalar,
            "Mean instances of a site in an hour.",
        ),
        metric(
            "cost_usd",
            Unit::None,
            Better::Lower,
            Shape::Scalar,
            "Cost in US dollars: of all, and by site and part (instances, transfer).",
        ),
        metric(
            "places",
            Unit::None,
            Better::None,
            Shape::Document,
            "Where user bases and sites lie.",
        ),
    ],
    overhead: "one CPU for a second per some millions of requests",
    source: "Wickremasinghe, Calheiros, Buyya, AINA 2010, for the model behind `compat`",
    two_sided: false,
    load: false,
};

/// One replication.
pub fn run(trial: &mut Trial) -> Result<(), SimError> {
    let scenario: Scenario = scenario(trial, SCENARIOS)?;
    scenario.check()?;
    geo::load::check(&scenario, &geo::World::of(&scenario)?)?;
    trial.prepared()?;
    let outcome = geo::run(&scenario, trial.seed())?;
    trial.emit_all(|emit| outcome.samples(emit))?;
    let mut places = scenario.places()?;
    places["objective_ms"] = json!(scenario.objective_ms);
    places["compat"] = json!(scenario.compat);
    trial.emit_document("places", places)
}
