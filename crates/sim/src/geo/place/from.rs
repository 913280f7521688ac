//! A scenario as a problem of placement: means and deviations in place of chance.
//!
//! Left to the simulation that follows: failures, bandwidth that users share, and brokers other than
//! the closest. Users who think between requests are taken to ask as often as if answers took no
//! time.
use super::problem::{Base, Candidate, Instances, Problem, Way, HOURS};
use super::question::Question;
use crate::error::Refused;
use crate::geo::network::{Delay, MS};
use crate::geo::scenario::{Discipline, Scenario, Site, Spread};
use crate::geo::users::HOUR;
use crate::geo::world::{self, World};
use crate::SECOND;

/// Moments of an hour at which users are counted: zones and peaks begin at whole quarters.
const MOMENTS: u64 = 4;
const GIBIBYTE: f64 = (1u64 << 30) as f64;

/// What is changed to see how far the answer carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// Of all latencies.
    pub latency: f64,
    /// Of all users.
    pub growth: f64,
}

impl Factors {
    /// The scenario as it is.
    pub const NONE: Self = Self { latency: 1.0, growth: 1.0 };
}

impl Problem {
    /// The problem that a checked question asks of a scenario. Refused: what [`World::of`] refuses.
    pub fn of(scenario: &Scenario, question: &Question, factors: Factors) -> Result<Self, Refused> {
        let mut asked = scenario.clone();
        let names = question.names(scenario);
        asked.sites.0.retain(|(name, _)| names.contains(&name.as_str()));
        let world = World::of(&asked)?;
        let mut problem = Self {
            bases: Vec::new(),
            candidates: (world.sites.iter())
                .map(|(spot, site)| candidate(&spot.name, site, scenario, question))
                .collect(),
            ways: Vec::new(),
            objective_ms: scenario.objective_ms.unwrap_or(f64::INFINITY),
        };
        for base in &world.bases {
            problem.add(&asked, &world, base, factors);
        }
        Ok(problem)
    }

    /// A user base; with a cache two: those whose answer lies there, and the others.
    fn add(&mut self, scenario: &Scenario, world: &World, base: &world::Base, factors: Factors) {
        let hit_ratio =
            (base.cache.as_ref()).map_or(0.0, |(cache, _)| scenario.caches.0[*cache].1.hit_ratio);
        let responses = responses(base, factors.growth);
        let part = |part: f64| responses.map(|count| count * part);
        let spread = scenario.variation.latency;
        let sites = 0..world.sites.len();
        if let Some((cache, first)) = base.cache.as_ref().filter(|_| hit_ratio > 0.0) {
            let serves_ms = scenario.caches.0[*cache].1.serves_ms;
            self.bases.push(Base {
                name: format!("{}, cached", base.spot.name),
                responses: part(hit_ratio),
                requests: 0.0,
                gigabytes: 0.0,
            });
            let mean = factors.latency * 2.0 * first.mean_ns() / MS + serves_ms;
            let deviation = factors.latency * deviation_ms(std::slice::from_ref(first), spread);
            let way = Way { visits: 0.0, ..Way::plain(0.0, mean, deviation) };
            // Cached answers wait for no site, but have to be near some: any will do.
            self.ways.push(sites.clone().map(|_| way).collect());
        }
        self.bases.push(Base {
            name: base.spot.name.clone(),
            responses: part(1.0 - hit_ratio),
            requests: base.served_each(),
            gigabytes: (base.up_bytes() + base.down_bytes()) / GIBIBYTE,
        });
        self.ways.push(sites.map(|site| way(base, site, spread, factors.latency)).collect());
    }
}

/// Responses by UTC hour.
fn responses(base: &world::Base, growth: f64) -> [f64; HOURS] {
    let each = match (base.asks.requests_per_user_h, base.asks.think_time_s) {
        (Some(per_h), _) => per_h,
        (None, Some(think_s)) if think_s > 0.0 => 3600.0 / think_s,
        _ => 0.0,
    };
    std::array::from_fn(|hour| {
        let users = |moment| {
            base.profile.at(hour as u64 * HOUR + (2 * moment + 1) * HOUR / (2 * MOMENTS)).0
        };
        growth * each * (0..MOMENTS).map(users).sum::<f64>() / MOMENTS as f64
    })
}

/// Standard deviation of the way there and back: each leg is drawn anew in each direction.
fn deviation_ms(legs: &[Delay], spread: f64) -> f64 {
    let variance = |leg: &Delay| match leg {
        Delay::Mean(mean) => (mean * spread).powi(2),
        Delay::Drawn(values) => {
            let mean = leg.mean_ns();
            values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / values.len() as f64
        }
    };
    (2.0 * legs.iter().map(variance).sum::<f64>()).sqrt() / MS
}

fn way(base: &world::Base, site: usize, spread: f64, longer: f64) -> Way {
    let Some(way) = &base.ways[site] else { return Way::NONE };
    let one_way_ns = way.mean_ns * longer;
    let Some(page) = &base.asks.page else {
        let bytes_ns = (base.up_bytes() + base.down_bytes()) * base.access_ns_per_byte;
        let mean_ms = (2.0 * one_way_ns + bytes_ns) / MS;
        return Way::plain(one_way_ns / MS, mean_ms, deviation_ms(&way.legs, spread) * longer);
    };
    let exchanges = page.exchanges(2.0 * one_way_ns, SECOND as f64 / base.access_ns_per_byte);
    let alone_ms = exchanges.load_ns(0.0) / MS;
    let visits = exchanges.load_ns(MS) / MS - alone_ms;
    // Side by side are the exchanges of as many chains, or the requests of one exchange.
    let side_by_side = exchanges.chains.first().and_then(|chain| chain.first());
    let together = side_by_side.map_or(0.0, |one| f64::from(one.requests));
    Way {
        latency_ms: one_way_ns / MS,
        mean_ms: alone_ms,
        // All ways of a load are longer or shorter together.
        deviation_ms: alone_ms * spread,
        visits,
        turns: (visits - 1.0).max(0.0),
        parallel: (exchanges.chains.len() as f64 * together).max(1.0),
    }
}

fn candidate(name: &str, site: &Site, scenario: &Scenario, question: &Question) -> Candidate {
    let room = f64::from(site.hosts) * f64::from(site.processors);
    let instances = match (question.size_for_utilisation, &site.autoscaling) {
        (Some(utilisation), _) => Instances::Sized { most: room, utilisation },
        (None, Some(rule)) => Instances::Hourly {
            least: f64::from(rule.least),
            most: f64::from(rule.most).min(room),
            utilisation: rule.up_at,
        },
        (None, None) => Instances::Given(f64::from(site.instances)),
    };
    // More instances than processors have a part of one each.
    let crowd = match instances {
        Instances::Given(count) => (count / room).max(1.0),
        _ => 1.0,
    };
    Candidate {
        name: name.into(),
        kept: question.keep.iter().any(|kept| kept == name),
        instances,
        service_ms: scenario.instructions / site.speed * crowd,
        variation2: match scenario.instructions_spread {
            Spread::Constant => 0.0,
            Spread::Exponential => 1.0,
            Spread::LogNormal(variation) => variation * variation,
        },
        fifo: site.discipline == Discipline::Fifo,
        instance_usd_per_h: site.price.instance_usd_per_h,
        transfer_usd_per_gb: site.price.transfer_usd_per_gb,
    }
}
