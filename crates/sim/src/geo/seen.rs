//! What was seen of a run, counted as it happens.
use super::farm::Farm;
use super::scenario::{Cache, Scenario};
use super::world::World;
use crate::tally::{Moments, Times};
use crate::Nanos;

/// Bytes of a gigabyte as they are paid.
const GB: f64 = 1_073_741_824.0;
/// What CloudAnalyst divides by instead.
const TOOL_GB: f64 = 1_048_576.0;

/// Answers to the users of a base.
#[derive(Clone, Debug, Default)]
pub struct BaseSeen {
    /// Name.
    pub name: String,
    /// Region, as its place in the outcome's regions.
    pub region: usize,
    /// Response times in nanoseconds.
    pub times: Moments,
    /// Requests that were answered.
    pub requests: u64,
}

/// Answers to the users of a region.
#[derive(Clone, Debug, Default)]
pub struct RegionSeen {
    /// Name.
    pub name: String,
    /// Response times.
    pub times: Times,
    /// Requests that were answered.
    pub requests: u64,
    /// Of these, within the objective.
    pub within: u64,
    /// Requests that were not answered.
    pub unserved: u64,
}

/// Answers from a site or a cache.
#[derive(Clone, Debug, Default)]
pub struct SiteSeen {
    /// Name.
    pub name: String,
    /// Whether it is a cache.
    pub cache: bool,
    /// Response times of the users that it answered; their moments are there when the run is over.
    pub times: Times,
    /// The moments, by the hour of the day at which they asked.
    times_by_hour: [Moments; 24],
    /// Nanoseconds from a message's arrival to its answer.
    pub processing: Moments,
    /// Requests that were answered, by the hour of the day at which they were sent.
    pub by_hour: [u64; 24],
    /// Bytes in and out.
    pub bytes: f64,
    /// Part of the instances' time in which they had something to do.
    pub utilisation: Option<f64>,
    /// Mean instances by hour of the day.
    pub instances: Vec<(usize, f64)>,
    /// US dollars for instances.
    pub instances_usd: f64,
    /// US dollars for transfer.
    pub transfer_usd: f64,
    /// Little's law: requests inside over time, by rate times the time that they spent; 1.
    pub little_ratio: Option<f64>,
}

/// What was seen of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By user base.
    pub bases: Vec<BaseSeen>,
    /// By region of the users.
    pub regions: Vec<RegionSeen>,
    /// By site, then by cache.
    pub sites: Vec<SiteSeen>,
    /// Response times by the hour of the day, in UTC, at which the request was sent.
    pub hours: Vec<Moments>,
    /// Whether an objective was given.
    pub objective_ns: Option<f64>,
    /// Events that were simulated.
    pub events: u64,
    /// Most messages that were in flight at one time.
    pub in_flight: usize,
}

/// One answer.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Who asked.
    pub base: usize,
    /// Site, or number of sites plus cache.
    pub place: usize,
    /// Hour of the day at which it was asked.
    pub hour: usize,
    /// How long it took.
    pub response_ns: f64,
    /// How many requests it answers.
    pub requests: u32,
    /// As how many it counts in means.
    pub weight: u32,
}

impl Outcome {
    /// Nothing yet.
    pub fn new(scenario: &Scenario, world: &World) -> Self {
        let region = |name: &String| RegionSeen { name: name.clone(), ..RegionSeen::default() };
        let site = |name: &str, cache| SiteSeen { name: name.into(), cache, ..SiteSeen::default() };
        let sites = world.sites.iter().map(|(spot, _)| site(&spot.name, false));
        let caches = world.caches.iter().map(|spot| site(&spot.name, true));
        let base = |base: &super::world::Base| BaseSeen {
            name: base.spot.name.clone(),
            region: base.region,
            ..BaseSeen::default()
        };
        Self {
            bases: world.bases.iter().map(base).collect(),
            regions: world.regions.iter().map(region).collect(),
            sites: sites.chain(caches).collect(),
            hours: vec![Moments::default(); 24],
            objective_ns: scenario.objective_ms.map(|ms| ms * super::network::MS),
            events: 0,
            in_flight: 0,
        }
    }

    /// One answer more.
    #[inline]
    pub fn answers(&mut self, answer: &Answer) {
        let (weight, requests) = (u64::from(answer.weight), u64::from(answer.requests));
        let base = &mut self.bases[answer.base];
        base.times.add_many(answer.response_ns, weight);
        base.requests += requests;
        let region = &mut self.regions[base.region];
        region.times.add_shape(answer.response_ns, weight);
        region.requests += requests;
        if self.objective_ns.is_some_and(|objective| answer.response_ns <= objective) {
            region.within += requests;
        }
        let site = &mut self.sites[answer.place];
        site.times.add_shape(answer.response_ns, weight);
        // Once for the site and for the hour.
        site.times_by_hour[answer.hour].add_many(answer.response_ns, weight);
        site.by_hour[answer.hour] += requests;
    }

    /// Requests that will not be answered.
    pub fn loses(&mut self, base: usize, requests: u32) {
        let region = self.bases[base].region;
        self.regions[region].unserved += u64::from(requests);
    }

    /// The run is over: a region's moments are those of its bases together, a site's those of its
    /// hours, an hour's those of the sites.
    pub fn closes_times(&mut self) {
        for base in &self.bases {
            self.regions[base.region].times.add_moments(&base.times);
        }
        for site in &mut self.sites {
            for (hour, here) in self.hours.iter_mut().zip(&site.times_by_hour) {
                site.times.add_moments(here);
                hour.merge(here);
            }
        }
    }

    /// What a farm says at the end of the run: use, instances, cost.
    pub fn closes(&mut self, number: usize, farm: &Farm, until: Nanos, tool: bool) {
        let site = &mut self.sites[number];
        let there = farm.many.area(until);
        site.instances = farm.by_hour.means();
        site.utilisation = (there > 0).then(|| farm.busy.area(until) as f64 / there as f64);
        let price = farm.setup.price;
        site.instances_usd = farm.paid_h(until) * price.instance_usd_per_h;
        let gigabyte = if tool { TOOL_GB } else { GB };
        site.transfer_usd = site.bytes / gigabyte * price.transfer_usd_per_gb;
    }

    /// What a cache costs.
    pub fn closes_cache(&mut self, number: usize, cache: &Cache) {
        let site = &mut self.sites[number];
        site.transfer_usd = site.bytes / GB * cache.transfer_usd_per_gb;
    }

    /// Mean response time in nanoseconds over the users of some bases: of each base's mean, by its
    /// requests.
    pub fn mean_ns(&self, of: impl Fn(&BaseSeen) -> bool) -> Option<f64> {
        let (mut sum, mut requests) = (0.0, 0.0);
        for base in self.bases.iter().filter(|base| of(base)) {
            if let Some(mean) = base.times.mean() {
                sum += mean * base.requests as f64;
                requests += base.requests as f64;
            }
        }
        (requests > 0.0).then(|| sum / requests)
    }

    /// Response times of all users.
    pub fn overall(&self) -> Times {
        let mut all = Times::default();
        self.regions.iter().for_each(|region| all.merge(&region.times));
        all
    }

    /// Requests that were answered.
    pub fn requests(&self) -> u64 {
        self.regions.iter().map(|region| region.requests).sum()
    }

    /// US dollars, all sites and caches.
    pub fn cost_usd(&self) -> f64 {
        self.sites.iter().map(|site| site.instances_usd + site.transfer_usd).sum()
    }
}
