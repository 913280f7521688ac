//! Results of a run, counted as it proceeds.
use super::instance_pool::InstancePool;
use super::scenario::{Cache, GeoScenario};
use super::topology::{Base, Topology};
use crate::statistics::{Durations, Moments};
use crate::Nanos;

/// Bytes of a gigabyte as it is billed.
const GB: f64 = 1_073_741_824.0;
/// What CloudAnalyst divides by instead.
const CLOUDANALYST_GB: f64 = 1_048_576.0;

/// Responses to the users of a base.
#[derive(Clone, Debug, Default)]
pub struct BaseOutcome {
    pub name: String,
    /// Index among the regions of the outcome.
    pub region: usize,
    pub times: Moments,
    pub requests: u64,
}

/// Responses to the users of a region.
#[derive(Clone, Debug, Default)]
pub struct RegionOutcome {
    pub name: String,
    pub times: Durations,
    pub requests: u64,
    /// Requests that were answered within the objective.
    pub within: u64,
    pub unserved: u64,
}

/// Responses from a site or a cache.
#[derive(Clone, Debug, Default)]
pub struct SiteOutcome {
    pub name: String,
    /// Response times; their moments are added at the end of the run.
    pub times: Durations,
    /// Their moments by the hour of the day at which the request was sent.
    times_by_hour: [Moments; 24],
    /// Times from the arrival of a message at the site to its completion.
    pub processing: Moments,
    /// Answered requests by the hour of the day at which they were sent.
    pub by_hour: [u64; 24],
    /// Bytes in and out.
    pub bytes: f64,
    /// Share of the instances' time in which they were busy.
    pub utilisation: Option<f64>,
    /// Mean number of instances by hour of the day.
    pub instances: Vec<(usize, f64)>,
    pub instances_usd: f64,
    pub transfer_usd: f64,
    /// Little's law: requests in the system over time, over rate times time in the system; 1.
    pub little_ratio: Option<f64>,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct GeoOutcome {
    pub bases: Vec<BaseOutcome>,
    pub regions: Vec<RegionOutcome>,
    /// Sites, then caches.
    pub sites: Vec<SiteOutcome>,
    /// Response times by the hour of the day, in UTC, at which the request was sent.
    pub hours: Vec<Moments>,
    pub objective_ns: Option<f64>,
    pub events: u64,
    /// Maximum number of messages in flight.
    pub in_flight: usize,
}

/// One response.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    pub base: usize,
    /// Index of the site, or number of sites plus index of the cache.
    pub site: usize,
    /// Hour of the day at which the request was sent.
    pub hour: usize,
    pub response_ns: f64,
    pub requests: u32,
    /// Weight in means.
    pub weight: u32,
}

impl GeoOutcome {
    pub fn new(scenario: &GeoScenario, topology: &Topology) -> Self {
        let region = |name: &String| RegionOutcome { name: name.clone(), ..Default::default() };
        let site = |name: &str| SiteOutcome { name: name.into(), ..SiteOutcome::default() };
        let sites = topology.sites.iter().map(|(location, _)| site(&location.name));
        let caches = topology.caches.iter().map(|location| site(&location.name));
        let base = |base: &Base| BaseOutcome {
            name: base.location.name.clone(),
            region: base.region,
            ..BaseOutcome::default()
        };
        Self {
            bases: topology.bases.iter().map(base).collect(),
            regions: topology.regions.iter().map(region).collect(),
            sites: sites.chain(caches).collect(),
            hours: vec![Moments::default(); 24],
            objective_ns: scenario.objective_ms.map(|ms| ms * super::network::MS),
            events: 0,
            in_flight: 0,
        }
    }

    #[inline]
    pub fn add_response(&mut self, response: &Response) {
        let (weight, requests) = (u64::from(response.weight), u64::from(response.requests));
        let base = &mut self.bases[response.base];
        base.times.add_many(response.response_ns, weight);
        base.requests += requests;
        let region = &mut self.regions[base.region];
        region.times.count_many(response.response_ns, weight);
        region.requests += requests;
        if self.objective_ns.is_some_and(|objective| response.response_ns <= objective) {
            region.within += requests;
        }
        let site = &mut self.sites[response.site];
        site.times.count_many(response.response_ns, weight);
        // Once for the site and for the hour.
        site.times_by_hour[response.hour].add_many(response.response_ns, weight);
        site.by_hour[response.hour] += requests;
    }

    /// Counts requests that will not be answered.
    pub fn add_unserved(&mut self, base: usize, requests: u32) {
        let region = self.bases[base].region;
        self.regions[region].unserved += u64::from(requests);
    }

    /// Adds up the moments at the end of the run: a region's from its bases, a site's from its hours, an
    /// hour's from the sites.
    pub fn merge_moments(&mut self) {
        for base in &self.bases {
            self.regions[base.region].times.add_moments(&base.times);
        }
        for site in &mut self.sites {
            for (hour, times) in self.hours.iter_mut().zip(&site.times_by_hour) {
                site.times.add_moments(times);
                hour.merge(times);
            }
        }
    }

    /// Records utilisation, instances and cost of a site at the end of the run.
    pub fn close_site(&mut self, number: usize, pool: &InstancePool, until: Nanos, compat: bool) {
        let site = &mut self.sites[number];
        let available = pool.count.area(until);
        site.instances = pool.count_by_hour.means();
        site.utilisation = (available > 0).then(|| pool.busy.area(until) as f64 / available as f64);
        let price = pool.site.price;
        site.instances_usd = pool.billed_h(until) * price.instance_usd_per_h;
        let gigabyte = if compat { CLOUDANALYST_GB } else { GB };
        site.transfer_usd = site.bytes / gigabyte * price.transfer_usd_per_gb;
    }

    /// Records the cost of a cache.
    pub fn close_cache(&mut self, number: usize, cache: &Cache) {
        let site = &mut self.sites[number];
        site.transfer_usd = site.bytes / GB * cache.transfer_usd_per_gb;
    }

    /// Returns the mean response time over the users of the selected bases: of each base's mean, by its
    /// requests.
    pub fn mean_ns(&self, is_selected: impl Fn(&BaseOutcome) -> bool) -> Option<f64> {
        let (mut sum, mut requests) = (0.0, 0.0);
        for base in self.bases.iter().filter(|base| is_selected(base)) {
            if let Some(mean) = base.times.mean() {
                sum += mean * base.requests as f64;
                requests += base.requests as f64;
            }
        }
        (requests > 0.0).then(|| sum / requests)
    }

    /// Returns the response times of all users.
    pub fn overall(&self) -> Durations {
        let mut all = Durations::default();
        self.regions.iter().for_each(|region| all.merge(&region.times));
        all
    }

    /// Returns the number of answered requests.
    pub fn requests(&self) -> u64 {
        self.regions.iter().map(|region| region.requests).sum()
    }

    /// Returns the cost of all sites and caches.
    pub fn cost_usd(&self) -> f64 {
        self.sites.iter().map(|site| site.instances_usd + site.transfer_usd).sum()
    }
}
