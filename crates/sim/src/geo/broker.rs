//! Selection of the site that serves a request.
use super::instance_pool::InstancePool;
use super::network::MS;
use super::profile::HOUR;
use super::scenario::Broker;
use super::topology::{Base, NetworkPath, Topology};
use super::transfer::Network;
use crate::random::RandomStream;
use crate::Nanos;

/// CloudAnalyst: a processing time older than ten minutes is discarded.
const MAX_AGE: Nanos = HOUR / 6;
/// Weight of a new processing time in the moving average.
const NEW_WEIGHT: f64 = 0.1;
/// The expected load of a site that receives no requests falls by a factor of e in this time: otherwise
/// one long queue would divert all requests long after it is gone.
const DECAY_NS: f64 = 1e10;

/// Processing times of a site.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessingTimes {
    /// The last one in nanoseconds, and when it was observed.
    pub last: Option<(f64, Nanos)>,
    average: f64,
    /// CloudAnalyst: the minimum at its checks every minute.
    pub best: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct SiteBroker {
    rule: Broker,
    compat: bool,
    pub processing: Vec<ProcessingTimes>,
    /// Service time of a request on an idle instance of each site.
    idle_ns: Vec<f64>,
    stream: RandomStream,
}

/// What is available at present.
pub struct Availability<'a> {
    pub pools: &'a [InstancePool],
    /// Number of known failures of the paths of this base by site; empty if none can fail.
    pub failures: &'a [u32],
}

impl Availability<'_> {
    fn is_open(&self, site: usize) -> bool {
        self.pools[site].known_failures == 0
            && self.failures.get(site).is_none_or(|count| *count == 0)
    }
}

impl SiteBroker {
    pub fn new(
        rule: Broker,
        compat: bool,
        topology: &Topology,
        instructions: f64,
        stream: RandomStream,
    ) -> Self {
        let idle = |speed: f64| instructions / speed * MS;
        Self {
            rule,
            compat,
            processing: vec![ProcessingTimes::default(); topology.sites.len()],
            idle_ns: topology.sites.iter().map(|(_, site)| idle(site.speed)).collect(),
            stream,
        }
    }

    /// Records the processing time of a request.
    #[inline]
    pub fn record(&mut self, site: usize, took_ns: f64, now: Nanos) {
        let times = &mut self.processing[site];
        times.average = match times.last {
            Some(_) => times.average + NEW_WEIGHT * (took_ns - times.average),
            None => took_ns,
        };
        times.last = Some((took_ns, now));
    }

    /// Returns the site for a message; None if none is available.
    #[inline]
    pub fn choose(
        &mut self,
        base: &Base,
        present: &Availability<'_>,
        network: &mut Network,
        now: Nanos,
    ) -> Option<usize> {
        match self.rule {
            Broker::Closest | Broker::Reconfiguring => self.closest(base, present),
            Broker::BestResponse if self.compat => {
                self.cloudanalyst_best(base, present, network, now)
            }
            Broker::BestResponse => self.best(base, present, now),
            Broker::Weighted => self.weighted(base, present),
            Broker::Overflow { requests_per_instance } => {
                overflow(base, present, requests_per_instance)
            }
        }
    }

    /// Returns one of the nearest sites, a random one of several.
    #[inline]
    fn closest(&mut self, base: &Base, present: &Availability<'_>) -> Option<usize> {
        let mut open = base.nearest.iter().filter(|entry| present.is_open(entry.0));
        let (first, rank) = *open.next()?;
        let rivals = open.take_while(|entry| entry.1 == rank).count() as u64;
        if rivals == 0 {
            return Some(first);
        }
        let place = self.stream.below(rivals + 1) as usize;
        let mut open = base.nearest.iter().filter(|entry| present.is_open(entry.0));
        open.nth(place).map(|entry| entry.0)
    }

    fn best(&mut self, base: &Base, present: &Availability<'_>, now: Nanos) -> Option<usize> {
        let open = paths(base).filter(|(site, _)| present.is_open(*site));
        first_min(open.map(|(site, path)| {
            let (times, idle_ns) = (&self.processing[site], self.idle_ns[site]);
            let busy_ns = times.last.map_or(0.0, |(_, time)| {
                (times.average - idle_ns) * (-((now - time) as f64) / DECAY_NS).exp()
            });
            (2.0 * path.mean_ns + idle_ns + busy_ns, site)
        }))
    }

    /// CloudAnalyst's: if the closest site does not seem best, a random one of the two.
    fn cloudanalyst_best(
        &mut self,
        base: &Base,
        present: &Availability<'_>,
        network: &mut Network,
        now: Nanos,
    ) -> Option<usize> {
        let closest = self.closest(base, present)?;
        let best = first_min(paths(base).map(|(site, path)| {
            let times = &mut self.processing[site];
            times.last = times.last.filter(|(_, time)| now - time <= MAX_AGE);
            // It takes the delay of one byte for that of the request.
            let delay = network.cloudanalyst_delay(path, 1.0);
            (times.last.map_or(0.0, |last| last.0) + delay, site)
        }));
        let best = best.unwrap_or(closest);
        let is_best = best != closest && self.stream.uniform() < 0.5;
        Some(if is_best { best } else { closest })
    }

    fn weighted(&mut self, base: &Base, present: &Availability<'_>) -> Option<usize> {
        let open = |(site, _): &(usize, &NetworkPath)| present.is_open(*site);
        let weight = |site: usize| present.pools[site].site.weight;
        let sum: f64 = paths(base).filter(open).map(|(site, _)| weight(site)).sum();
        let mut left = self.stream.uniform() * sum;
        let mut chosen = None;
        for (site, _) in paths(base).filter(open).filter(|(site, _)| weight(*site) > 0.0) {
            chosen = Some(site);
            left -= weight(site);
            if left < 0.0 {
                break;
            }
        }
        chosen
    }
}

fn overflow(base: &Base, present: &Availability<'_>, max: f64) -> Option<usize> {
    let open = || base.nearest.iter().map(|entry| entry.0).filter(|site| present.is_open(*site));
    let has_room = |site: &usize| {
        let pool = &present.pools[*site];
        (pool.assigned as f64) < max * pool.balancer.open_count() as f64
    };
    open().find(has_room).or_else(|| open().next())
}

fn paths(base: &Base) -> impl Iterator<Item = (usize, &NetworkPath)> {
    base.paths.iter().enumerate().filter_map(|(site, path)| Some((site, path.as_ref()?)))
}

/// Returns the first site of minimum time.
fn first_min(times: impl Iterator<Item = (f64, usize)>) -> Option<usize> {
    times.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, site)| site)
}
