//! # What it measures
//! Response time of users around the world to sites, share of the responses within an objective,
//! utilisation of the sites, and cost.
//!
//! # How
//! A discrete-event simulation: user bases send requests by local hour, a broker selects the site, a load
//! balancer the instance, and instances serve with processor sharing or in order of arrival. The network
//! has latency (a matrix, measured round-trip times, or great-circle distance), bandwidth that the requests
//! of a network path share, caches, and page loads of several round trips. Instances are added and removed
//! with a delay; sites and network paths fail. `compat: cloudanalyst` reproduces that tool's known errors.
//!
//! # Known truth
//! The golden figures of CloudAnalyst's own scenarios, and Little's law; hourly loads sum to the total, and
//! two sites never make a region slower than the better one alone (tests with random scenarios).
//!
//! # Cross-check
//! The lab: the same deployment with real servers and real requests.
//!
//! # Overhead
//! One CPU: some millions of requests a second; memory grows with what is in flight.
//!
//! # Caveats
//! The model has no packet loss and no queues inside the network. An overloaded site is refused before the
//! run, unless the scenario allows it.
use super::{scenario, SCENARIO, SEED};
use crate::cli::trial::SimulationTrial;
use nephoscope_sim::geo::{self, GeoScenario};
use nephoscope_sim::scenarios::GEO;
use nephoscope_wire::error::Error;
use nephoscope_wire::meaning::{Headline, SummarySettings};
use nephoscope_wire::spec::{Metric, Resource, Spec, Unit};

pub const SPEC: Spec = Spec {
    id: "sim.geo",
    summary: "Response time and cost of simulated sites for users around the world",
    params: &[SCENARIO, SEED],
    metrics: &[
        Metric::lower("response_time_mean_ns")
            .headline()
            .in_summary(Headline::of("Response time, mean").settings(SummarySettings::Whole))
            .doc("Mean response time: overall, by region, user_base, site or hour (UTC)."),
        Metric::higher("within_objective_ratio").share().headline().in_summary(Headline::of("Requests within objective").settings(SummarySettings::Whole)).doc(
            "Share of all requests with a response within the objective; overall and by region.",
        ),
        Metric::lower("response_time_ns")
            .histogram()
            .doc("Response times: overall, by region or site."),
        Metric::neutral("response_time_min_ns").doc("Minimum response time of a replication."),
        Metric::lower("response_time_max_ns").doc("Maximum response time of a replication."),
        Metric::lower("processing_time_mean_ns").doc("Mean time of a request at the site."),
        Metric::neutral("requests")
            .in_unit(Unit::Count)
            .doc("Answered requests: overall, by region, by site, by site and hour (UTC)."),
        Metric::lower("unserved_ratio")
            .share()
            .doc("Share of unanswered requests; overall and by region."),
        Metric::neutral("utilisation_ratio").doc("Utilisation of a site's capacity."),
        Metric::neutral("instances")
            .in_unit(Unit::Count)
            .doc("Mean number of instances of a site in an hour."),
        Metric::lower("cost_usd")
            .doc("Cost in US dollars: overall, and by site and part (instances, transfer)."),
        Metric::document("locations").doc("Positions of user bases, sites and caches."),
    ],
    overhead: "one CPU for a second per some millions of requests",
    source: "Wickremasinghe, Calheiros, Buyya, AINA 2010, for the model behind `compat`",
    ..Spec::about(Resource::None)
};

pub fn run(trial: &mut SimulationTrial) -> Result<(), Error> {
    let scenario: GeoScenario = scenario(trial, GEO)?;
    scenario.check()?;
    geo::load::check(&scenario, &geo::Topology::new(&scenario)?)?;
    trial.start()?;
    let outcome = geo::run(&scenario, trial.seed())?;
    trial.emit_all(|sink| outcome.emit(sink))?;
    trial.writer.emit_document("locations", scenario.locations()?)
}
