//! A scenario with every name resolved: what the simulation runs on.
use super::network::{bandwidth_mbps, latency, Delay, Spot};
use super::scenario::{Scenario, Site, UserBase};
use super::users::Profile;
use super::web::Exchanges;
use crate::error::Refused;
use crate::SECOND;

/// A user base.
#[derive(Clone, Debug)]
pub struct Base {
    /// Where it is.
    pub spot: Spot,
    /// Number of its region.
    pub region: usize,
    /// Its users by time of day.
    pub profile: Profile,
    /// What it asks for.
    pub asks: UserBase,
    /// Nanoseconds that a byte takes on a user's own line.
    pub access_ns_per_byte: f64,
    /// The cache that it asks first, and the way there.
    pub cache: Option<(usize, Delay)>,
    /// Ways to the sites; None where there is none.
    pub ways: Vec<Option<Way>>,
    /// Connected sites, nearest first, with ranks: sites of one rank are equally near.
    pub nearest: Vec<(usize, u32)>,
}

impl Base {
    /// Bytes of a request to a site, all that belongs to it.
    pub fn up_bytes(&self) -> f64 {
        match &self.asks.page {
            Some(page) => page.request_bytes as f64 * f64::from(page.requests()),
            None => self.asks.request_bytes as f64,
        }
    }

    /// Bytes of its answer.
    pub fn down_bytes(&self) -> f64 {
        let page = self.asks.page.as_ref();
        page.map_or(self.asks.response_bytes, super::web::Page::response_bytes) as f64
    }

    /// Requests that a site serves for one request of a user.
    pub fn served_each(&self) -> f64 {
        self.asks.page.as_ref().map_or(1.0, |page| f64::from(page.requests()))
    }
}

/// The way from users to a site.
#[derive(Clone, Debug)]
pub struct Way {
    /// Its legs: one, or two with a cache between them.
    pub legs: Vec<Delay>,
    /// Mean of the way one way, all legs, and what the cache takes.
    pub mean_ns: f64,
    /// What the cache takes for a request that it passes on, in nanoseconds.
    pub served_ns: f64,
    /// Number of the link whose bandwidth it uses.
    pub link: usize,
    /// How a page is loaded over it.
    pub page: Option<Exchanges>,
}

/// What the ways between two regions share.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The two regions.
    pub between: (String, String),
    /// Bandwidth as given; None without a limit.
    pub mbps: Option<f64>,
}

/// A scenario with every name resolved.
#[derive(Clone, Debug)]
pub struct World {
    /// Regions of users, in the order of the user bases.
    pub regions: Vec<String>,
    /// User bases.
    pub bases: Vec<Base>,
    /// Sites.
    pub sites: Vec<(Spot, Site)>,
    /// Caches.
    pub caches: Vec<Spot>,
    /// Links.
    pub links: Vec<Link>,
}

impl World {
    /// Resolves a scenario. Refused: what has no position, latency or bandwidth that can be, or no
    /// way to any site.
    pub fn of(scenario: &Scenario) -> Result<Self, Refused> {
        let mut world = Self {
            regions: Vec::new(),
            bases: Vec::new(),
            sites: Vec::new(),
            caches: Vec::new(),
            links: Vec::new(),
        };
        for (name, site) in scenario.sites.iter() {
            let spot = Spot::of(scenario, name, site.region.as_deref(), site.lat, site.lon)?;
            world.sites.push((spot, site.clone()));
        }
        for (name, cache) in scenario.caches.iter() {
            let spot = Spot::of(scenario, name, cache.region.as_deref(), cache.lat, cache.lon)?;
            world.caches.push(spot);
        }
        for (name, base) in scenario.user_bases.iter() {
            let base = world.base(scenario, name, base)?;
            world.bases.push(base);
        }
        Ok(world)
    }

    fn base(&mut self, scenario: &Scenario, name: &str, asks: &UserBase) -> Result<Base, Refused> {
        let spot = Spot::of(scenario, name, asks.region.as_deref(), asks.lat, asks.lon)?;
        let profile = Profile::of(name, asks)?;
        let region = numbered(&mut self.regions, &spot.region);
        let direct: Vec<Option<Delay>> = (self.sites.iter())
            .map(|(site, _)| latency(scenario, &spot, site))
            .collect::<Result<_, _>>()?;
        let cache = self.cache(scenario, &spot, &direct)?;
        let mut base = Base {
            spot,
            region,
            profile,
            access_ns_per_byte: asks.access_mbps.map_or(0.0, |mbps| 8e3 / mbps),
            asks: asks.clone(),
            cache,
            ways: Vec::new(),
            nearest: Vec::new(),
        };
        for (site, direct) in direct.into_iter().enumerate() {
            let way = self.way(scenario, &base, site, direct)?;
            base.ways.push(way);
        }
        base.nearest = self.nearest(scenario, &base);
        if base.nearest.is_empty() {
            return Err(Refused::new(
                format!("User base `{name}` has no way to any site."),
                "Give the latency from its region to that of a site.",
            ));
        }
        Ok(base)
    }

    /// The nearest cache, if it is nearer than every site.
    fn cache(
        &self,
        scenario: &Scenario,
        spot: &Spot,
        direct: &[Option<Delay>],
    ) -> Result<Option<(usize, Delay)>, Refused> {
        let nearest = direct.iter().flatten().map(Delay::mean_ns).fold(f64::INFINITY, f64::min);
        let mut best: Option<(usize, Delay)> = None;
        for (number, cache) in self.caches.iter().enumerate() {
            let Some(delay) = latency(scenario, spot, cache)? else { continue };
            let least = best.as_ref().map_or(nearest, |(_, best)| best.mean_ns());
            if delay.mean_ns() < least {
                best = Some((number, delay));
            }
        }
        Ok(best)
    }

    fn way(
        &mut self,
        scenario: &Scenario,
        base: &Base,
        site: usize,
        direct: Option<Delay>,
    ) -> Result<Option<Way>, Refused> {
        let (site, _) = &self.sites[site];
        let (legs, from, served_ms) = match &base.cache {
            Some((number, first)) => {
                let cache = &self.caches[*number];
                let Some(second) = latency(scenario, cache, site)? else { return Ok(None) };
                let served_ms = scenario.caches.0[*number].1.serves_ms;
                (vec![first.clone(), second], cache, served_ms)
            }
            None => match direct {
                Some(delay) => (vec![delay], &base.spot, 0.0),
                None => return Ok(None),
            },
        };
        let mbps = bandwidth_mbps(scenario, from, site)?;
        let ends = (
            from.region.clone().min(site.region.clone()),
            from.region.clone().max(site.region.clone()),
        );
        let served_ns = served_ms * super::network::MS;
        let mean_ns = legs.iter().map(Delay::mean_ns).sum::<f64>() + served_ns / 2.0;
        // A byte's time on the user's own line; a user alone is not slowed by what others share.
        let bytes_per_s = SECOND as f64 / base.access_ns_per_byte;
        let page = base.asks.page.as_ref().map(|page| page.exchanges(2.0 * mean_ns, bytes_per_s));
        let found = self.links.iter().position(|link| link.between == ends && link.mbps == mbps);
        let link = found.unwrap_or_else(|| {
            self.links.push(Link { between: ends, mbps });
            self.links.len() - 1
        });
        Ok(Some(Way { legs, mean_ns, served_ns, link, page }))
    }

    /// Sites by distance. CloudAnalyst takes the regions in turn, so that of two regions equally
    /// near the first is asked.
    fn nearest(&self, scenario: &Scenario, base: &Base) -> Vec<(usize, u32)> {
        let region_number = |site: usize| match scenario.compat {
            Some(_) => super::table::known(&self.sites[site].0.region),
            None => None,
        };
        let mut order: Vec<(f64, Option<usize>, usize)> = (base.ways.iter().enumerate())
            .filter_map(|(site, way)| Some((way.as_ref()?.mean_ns, region_number(site), site)))
            .collect();
        order.sort_by(|a, b| a.partial_cmp(b).expect("latencies are numbers"));
        let mut rank = 0;
        let mut before: Option<(f64, Option<usize>)> = None;
        (order.into_iter())
            .map(|(mean, region, site)| {
                if before.is_some_and(|before| before != (mean, region)) {
                    rank += 1;
                }
                before = Some((mean, region));
                (site, rank)
            })
            .collect()
    }
}

/// The number of a name in a list, at whose end it is put if it is new.
fn numbered(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    })
}
