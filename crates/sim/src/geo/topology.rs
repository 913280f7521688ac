//! A scenario with all names resolved: user bases, sites, and the network paths between them.
use super::network::{bandwidth_mbps, latency, Delay, Location, MS};
use super::page::{Exchanges, Page};
use super::profile::Profile;
use super::scenario::{GeoScenario, Site, UserBase};
use crate::error::{refuse, Result};
use crate::SECOND;

#[derive(Clone, Debug)]
pub struct Base {
    pub location: Location,
    pub region: usize,
    pub profile: Profile,
    pub config: UserBase,
    /// Transmission time of a byte on a user's access line.
    pub access_ns_per_byte: f64,
    /// The cache that it asks first, and the latency to it.
    pub cache: Option<(usize, Delay)>,
    /// Network paths to the sites; None where there is none.
    pub paths: Vec<Option<NetworkPath>>,
    /// Connected sites, nearest first, with ranks: sites of one rank are equally near.
    pub nearest: Vec<(usize, u32)>,
}

impl Base {
    /// Returns the bytes of a request, with all that belongs to it.
    pub fn up_bytes(&self) -> f64 {
        match &self.config.page {
            Some(page) => page.request_bytes as f64 * f64::from(page.requests()),
            None => self.config.request_bytes as f64,
        }
    }

    /// Returns the bytes of its response.
    pub fn down_bytes(&self) -> f64 {
        let page = self.config.page.as_ref();
        page.map_or(self.config.response_bytes, Page::response_bytes) as f64
    }

    /// Returns the number of requests that a site serves for one request of a user.
    pub fn requests_per_response(&self) -> f64 {
        self.config.page.as_ref().map_or(1.0, |page| f64::from(page.requests()))
    }

    /// Returns the bandwidth of a user's access line.
    pub fn access_bytes_per_s(&self) -> f64 {
        SECOND as f64 / self.access_ns_per_byte
    }
}

/// The network path from users to a site.
#[derive(Clone, Debug)]
pub struct NetworkPath {
    /// One leg, or two with a cache between them.
    pub legs: Vec<Delay>,
    /// Mean one-way latency of all legs, with half of what the cache takes.
    pub mean_ns: f64,
    /// Service time of the cache for a request that it passes on.
    pub cache_ns: f64,
    /// Number of the link whose bandwidth it uses.
    pub link: usize,
    /// How a page is loaded over it.
    pub page: Option<Exchanges>,
}

/// What the network paths between two regions share.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The two regions.
    pub between: (String, String),
    /// Bandwidth; None for no limit.
    pub mbps: Option<f64>,
}

/// A scenario with all names resolved.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Regions of users, in the order of the user bases.
    pub regions: Vec<String>,
    pub bases: Vec<Base>,
    pub sites: Vec<(Location, Site)>,
    pub caches: Vec<Location>,
    pub links: Vec<Link>,
}

impl Topology {
    /// Returns an error for a location without position, an invalid latency or bandwidth, and a user
    /// base without a network path to any site.
    pub fn new(scenario: &GeoScenario) -> Result<Self> {
        let mut topology = Self::default();
        for (name, site) in scenario.sites.iter() {
            let location =
                Location::new(scenario, name, site.region.as_deref(), site.lat, site.lon)?;
            topology.sites.push((location, site.clone()));
        }
        for (name, cache) in scenario.caches.iter() {
            let region = cache.region.as_deref();
            topology.caches.push(Location::new(scenario, name, region, cache.lat, cache.lon)?);
        }
        for (name, base) in scenario.user_bases.iter() {
            let base = topology.resolve_base(scenario, name, base)?;
            topology.bases.push(base);
        }
        Ok(topology)
    }

    fn resolve_base(
        &mut self,
        scenario: &GeoScenario,
        name: &str,
        config: &UserBase,
    ) -> Result<Base> {
        let region = config.region.as_deref();
        let location = Location::new(scenario, name, region, config.lat, config.lon)?;
        let profile = Profile::new(name, config)?;
        let region = find_or_push(&mut self.regions, location.region.clone());
        let direct: Vec<Option<Delay>> = (self.sites.iter())
            .map(|(site, _)| latency(scenario, &location, site))
            .collect::<Result<_, _>>()?;
        let cache = self.nearest_cache(scenario, &location, &direct)?;
        let mut base = Base {
            location,
            region,
            profile,
            access_ns_per_byte: config.access_mbps.map_or(0.0, |mbps| 8e3 / mbps),
            config: config.clone(),
            cache,
            paths: Vec::new(),
            nearest: Vec::new(),
        };
        for (site, direct) in direct.into_iter().enumerate() {
            let path = self.path(scenario, &base, site, direct)?;
            base.paths.push(path);
        }
        base.nearest = self.nearest_sites(scenario, &base);
        if base.nearest.is_empty() {
            return refuse(
                format!("user_bases.{name} has no network path to any site."),
                "Give the latency from its region to that of a site.",
            );
        }
        Ok(base)
    }

    /// Returns the nearest cache, if it is nearer than every site.
    fn nearest_cache(
        &self,
        scenario: &GeoScenario,
        location: &Location,
        direct: &[Option<Delay>],
    ) -> Result<Option<(usize, Delay)>> {
        let mut min = direct.iter().flatten().map(Delay::mean_ns).fold(f64::INFINITY, f64::min);
        let mut nearest = None;
        for (number, cache) in self.caches.iter().enumerate() {
            let Some(delay) = latency(scenario, location, cache)? else { continue };
            if delay.mean_ns() < min {
                min = delay.mean_ns();
                nearest = Some((number, delay));
            }
        }
        Ok(nearest)
    }

    fn path(
        &mut self,
        scenario: &GeoScenario,
        base: &Base,
        site: usize,
        direct: Option<Delay>,
    ) -> Result<Option<NetworkPath>> {
        let (site, _) = &self.sites[site];
        let (legs, from, cache_ms) = match &base.cache {
            Some((number, first)) => {
                let cache = &self.caches[*number];
                let Some(second) = latency(scenario, cache, site)? else { return Ok(None) };
                let cache_ms = scenario.caches.0[*number].1.service_ms;
                (vec![first.clone(), second], cache, cache_ms)
            }
            None => match direct {
                Some(delay) => (vec![delay], &base.location, 0.0),
                None => return Ok(None),
            },
        };
        let mbps = bandwidth_mbps(scenario, from, site)?;
        let (a, b) = (&from.region, &site.region);
        let between = (a.min(b).clone(), a.max(b).clone());
        let cache_ns = cache_ms * MS;
        let mean_ns = legs.iter().map(Delay::mean_ns).sum::<f64>() + cache_ns / 2.0;
        // The transmission time on a user's own line is not affected by what others share.
        let bytes_per_s = base.access_bytes_per_s();
        let page = base.config.page.as_ref().map(|page| page.exchanges(2.0 * mean_ns, bytes_per_s));
        let link = find_or_push(&mut self.links, Link { between, mbps });
        Ok(Some(NetworkPath { legs, mean_ns, cache_ns, link, page }))
    }

    /// Returns the sites by distance. CloudAnalyst takes the regions in turn, so that of two equally
    /// near regions the first is used.
    fn nearest_sites(&self, scenario: &GeoScenario, base: &Base) -> Vec<(usize, u32)> {
        let region_index = |site: usize| match scenario.compat {
            Some(_) => super::regions::index(&self.sites[site].0.region),
            None => None,
        };
        let mut order: Vec<(f64, Option<usize>, usize)> = (base.paths.iter().enumerate())
            .filter_map(|(site, path)| Some((path.as_ref()?.mean_ns, region_index(site), site)))
            .collect();
        order.sort_by(|a, b| a.partial_cmp(b).expect("latencies are numbers"));
        let mut rank = 0;
        let mut last: Option<(f64, Option<usize>)> = None;
        (order.into_iter())
            .map(|(mean, region, site)| {
                if last.is_some_and(|last| last != (mean, region)) {
                    rank += 1;
                }
                last = Some((mean, region));
                (site, rank)
            })
            .collect()
    }
}

/// Returns the index of an item in a list, to which it is appended if it is new.
fn find_or_push<T: PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    items.iter().position(|known| *known == item).unwrap_or_else(|| {
        items.push(item);
        items.len() - 1
    })
}
