//! The placement problem of a scenario: means and deviations in place of random values.
//!
//! Only the subsequent simulation considers failures, shared bandwidth, and brokers other than the closest.
//! Users with a think time are assumed to send as often as if responses took no time.
use super::config::PlacementConfig;
use super::problem::{Candidate, Instances, PlacementUsers, Problem, ResponsePath, HOURS};
use crate::error::Result;
use crate::geo::network::{Delay, MS};
use crate::geo::profile::HOUR;
use crate::geo::scenario::{Discipline, GeoScenario, Site, Spread};
use crate::geo::topology::{self, Topology};

/// Number of times in an hour at which users are counted: zones and peaks start at whole quarters.
const TIMES_PER_HOUR: u64 = 4;
const GIBIBYTE: f64 = (1u64 << 30) as f64;

/// Changes of a scenario for the sensitivity analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Factor of all latencies.
    pub latency: f64,
    /// Factor of the number of users.
    pub growth: f64,
}

impl Scaling {
    /// The scenario as it is.
    pub const NONE: Self = Self { latency: 1.0, growth: 1.0 };
}

impl Problem {
    /// config: accepted by [`PlacementConfig::check`].
    pub fn new(scenario: &GeoScenario, config: &PlacementConfig, scaling: Scaling) -> Result<Self> {
        let mut part = scenario.clone();
        let names = config.names(scenario);
        part.sites.0.retain(|(name, _)| names.contains(&name.as_str()));
        let topology = Topology::new(&part)?;
        let mut problem = Self {
            bases: Vec::new(),
            candidates: (topology.sites.iter())
                .map(|(location, site)| candidate(&location.name, site, scenario, config))
                .collect(),
            paths: Vec::new(),
            objective_ms: scenario.objective_ms.unwrap_or(f64::INFINITY),
        };
        for base in &topology.bases {
            problem.add_base(&part, &topology, base, scaling);
        }
        Ok(problem)
    }

    /// Adds a user base; with a cache two: one for the hits, one for the misses.
    fn add_base(
        &mut self,
        scenario: &GeoScenario,
        topology: &Topology,
        base: &topology::Base,
        scaling: Scaling,
    ) {
        let hit_ratio =
            (base.cache.as_ref()).map_or(0.0, |(cache, _)| scenario.caches.0[*cache].1.hit_ratio);
        let responses = responses(base, scaling.growth);
        let share = |share: f64| responses.map(|count| count * share);
        let variation = scenario.variation.latency;
        let sites = 0..topology.sites.len();
        if let Some((cache, first)) = base.cache.as_ref().filter(|_| hit_ratio > 0.0) {
            let service_ms = scenario.caches.0[*cache].1.service_ms;
            self.bases.push(PlacementUsers {
                responses: share(hit_ratio),
                requests: 0.0,
                gigabytes: 0.0,
            });
            let mean = scaling.latency * 2.0 * first.mean_ns() / MS + service_ms;
            let deviation = scaling.latency * deviation_ms(std::slice::from_ref(first), variation);
            let path = ResponsePath { visits: 0.0, ..ResponsePath::single(0.0, mean, deviation) };
            // Hits do not depend on a site, but have to be assigned to one: any will do.
            self.paths.push(sites.clone().map(|_| path).collect());
        }
        self.bases.push(PlacementUsers {
            responses: share(1.0 - hit_ratio),
            requests: base.requests_per_response(),
            gigabytes: (base.up_bytes() + base.down_bytes()) / GIBIBYTE,
        });
        self.paths.push(sites.map(|site| path(base, site, variation, scaling.latency)).collect());
    }
}

/// Returns the responses by UTC hour.
fn responses(base: &topology::Base, growth: f64) -> [f64; HOURS] {
    let each = match (base.config.requests_per_user_h, base.config.think_time_s) {
        (Some(per_h), _) => per_h,
        (None, Some(think_s)) if think_s > 0.0 => 3600.0 / think_s,
        _ => 0.0,
    };
    std::array::from_fn(|hour| {
        let users = |quarter| {
            base.profile.at(hour as u64 * HOUR + (2 * quarter + 1) * HOUR / (2 * TIMES_PER_HOUR)).0
        };
        growth * each * (0..TIMES_PER_HOUR).map(users).sum::<f64>() / TIMES_PER_HOUR as f64
    })
}

/// Returns the standard deviation of a round trip: each leg is drawn in each direction.
fn deviation_ms(legs: &[Delay], variation: f64) -> f64 {
    let variance = |leg: &Delay| match leg {
        Delay::Mean(mean) => (mean * variation).powi(2),
        Delay::Measured(values) => {
            let mean = leg.mean_ns();
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
        }
    };
    (2.0 * legs.iter().map(variance).sum::<f64>()).sqrt() / MS
}

fn path(base: &topology::Base, site: usize, variation: f64, factor: f64) -> ResponsePath {
    let Some(path) = &base.paths[site] else { return ResponsePath::NONE };
    let one_way_ns = path.mean_ns * factor;
    let Some(page) = &base.config.page else {
        let bytes_ns = (base.up_bytes() + base.down_bytes()) * base.access_ns_per_byte;
        let mean_ms = (2.0 * one_way_ns + bytes_ns) / MS;
        return ResponsePath::single(
            one_way_ns / MS,
            mean_ms,
            deviation_ms(&path.legs, variation) * factor,
        );
    };
    let exchanges = page.exchanges(2.0 * one_way_ns, base.access_bytes_per_s());
    let alone_ms = exchanges.load_ns(0.0) / MS;
    let visits = exchanges.load_ns(MS) / MS - alone_ms;
    // Parallel are the exchanges of all chains, or the requests of one exchange.
    let first = exchanges.chains.first().and_then(|chain| chain.first());
    let requests = first.map_or(0.0, |exchange| f64::from(exchange.requests));
    ResponsePath {
        latency_ms: one_way_ns / MS,
        mean_ms: alone_ms,
        // All latencies of a load vary together.
        deviation_ms: alone_ms * variation,
        visits,
        parallel_visits: (visits - 1.0).max(0.0),
        parallel: (exchanges.chains.len() as f64 * requests).max(1.0),
    }
}

fn candidate(
    name: &str,
    site: &Site,
    scenario: &GeoScenario,
    config: &PlacementConfig,
) -> Candidate {
    let processors = f64::from(site.hosts) * f64::from(site.processors);
    let instances = match (config.size_for_utilisation, &site.autoscaling) {
        (Some(utilisation), _) => Instances::Sized { max: processors, utilisation },
        (None, Some(rule)) => Instances::Hourly {
            min: f64::from(rule.min),
            max: f64::from(rule.max).min(processors),
            utilisation: rule.up_at,
        },
        (None, None) => Instances::Constant(f64::from(site.instances)),
    };
    // More instances than processors share these.
    let contention = match instances {
        Instances::Constant(count) => (count / processors).max(1.0),
        _ => 1.0,
    };
    Candidate {
        name: name.into(),
        is_kept: config.keep.iter().any(|kept_name| kept_name == name),
        instances,
        service_ms: scenario.instructions / site.speed * contention,
        variation_squared: match scenario.instructions_spread {
            Spread::Constant => 0.0,
            Spread::Exponential => 1.0,
            Spread::LogNormal(variation) => variation * variation,
        },
        is_fifo: site.discipline == Discipline::Fifo,
        instance_usd_per_h: site.price.instance_usd_per_h,
        transfer_usd_per_gb: site.price.transfer_usd_per_gb,
    }
}
