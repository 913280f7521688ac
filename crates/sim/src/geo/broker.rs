//! Which site answers.
use super::farm::Farm;
use super::scenario::Broker;
use super::travel::Network;
use super::users::HOUR;
use super::world::{Base, Way, World};
use crate::random::Stream;
use crate::Nanos;

/// CloudAnalyst: a processing time older than this says nothing any more: ten minutes.
const STALE: Nanos = HOUR / 6;
/// What a new processing time counts in the recent one.
const RECENT: f64 = 0.1;
/// A site that is not asked is taken for less and less busy, by e in so many nanoseconds: otherwise
/// one long line would keep everybody away long after it is gone.
const FADES_NS: f64 = 1e10;

/// What is known of a site's processing times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Processing {
    /// The last one, in nanoseconds, and when it was seen.
    pub last: Option<(f64, Nanos)>,
    /// Recent ones, the later the more.
    recent: f64,
    /// CloudAnalyst: the least at its minutely looks.
    pub best: Option<f64>,
}

/// Who chooses sites.
#[derive(Clone, Debug)]
pub struct Brokers {
    rule: Broker,
    tool: bool,
    /// Of each site.
    pub processing: Vec<Processing>,
    /// What a request takes on an idle instance.
    idle_ns: Vec<f64>,
    stream: Stream,
}

/// What is passable at present.
pub struct Present<'a> {
    /// The sites.
    pub farms: &'a [Farm],
    /// Known broken ways of this base by site; empty where nothing can break.
    pub broken: &'a [u32],
}

impl Present<'_> {
    fn open(&self, site: usize) -> bool {
        self.farms[site].known_down == 0 && self.broken.get(site).is_none_or(|count| *count == 0)
    }
}

impl Brokers {
    /// Brokers of that rule.
    pub fn new(rule: Broker, tool: bool, world: &World, instructions: f64, stream: Stream) -> Self {
        let idle = |speed: f64| instructions / speed * super::network::MS;
        Self {
            rule,
            tool,
            processing: vec![Processing::default(); world.sites.len()],
            idle_ns: world.sites.iter().map(|(_, site)| idle(site.speed)).collect(),
            stream,
        }
    }

    /// A site has processed a request.
    #[inline]
    pub fn note(&mut self, site: usize, took_ns: f64, now: Nanos) {
        let seen = &mut self.processing[site];
        let known = seen.last.is_some();
        seen.recent = if known { seen.recent + RECENT * (took_ns - seen.recent) } else { took_ns };
        seen.last = Some((took_ns, now));
    }

    /// The site for a message; None if none can be reached.
    #[inline]
    pub fn choose(
        &mut self,
        base: &Base,
        present: &Present<'_>,
        network: &mut Network,
        now: Nanos,
    ) -> Option<usize> {
        match self.rule {
            Broker::Closest | Broker::Reconfiguring => self.closest(base, present),
            Broker::BestResponse if self.tool => self.tool_best(base, present, network, now),
            Broker::BestResponse => self.best(base, present, now),
            Broker::Weighted => self.weighted(base, present),
            Broker::Overflow { requests_per_instance } => {
                self.overflow(base, present, requests_per_instance)
            }
        }
    }

    /// One of the nearest sites, by chance among the equally near.
    #[inline]
    fn closest(&mut self, base: &Base, present: &Present<'_>) -> Option<usize> {
        let mut open = base.nearest.iter().filter(|entry| present.open(entry.0));
        let (first, rank) = *open.next()?;
        let others = open.take_while(|entry| entry.1 == rank).count() as u64;
        if others == 0 {
            return Some(first);
        }
        let place = self.stream.below(others + 1) as usize;
        base.nearest.iter().filter(|entry| present.open(entry.0)).nth(place).map(|entry| entry.0)
    }

    fn best(&mut self, base: &Base, present: &Present<'_>, now: Nanos) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for (site, way) in ways(base).filter(|(site, _)| present.open(*site)) {
            let (seen, idle_ns) = (&self.processing[site], self.idle_ns[site]);
            let busy_ns = seen.last.map_or(0.0, |(_, at)| {
                (seen.recent - idle_ns) * (-((now - at) as f64) / FADES_NS).exp()
            });
            let takes = 2.0 * way.mean_ns + idle_ns + busy_ns;
            if best.is_none_or(|(least, _)| takes < least) {
                best = Some((takes, site));
            }
        }
        best.map(|entry| entry.1)
    }

    /// CloudAnalyst's: if the closest does not seem best, one of the two by chance.
    fn tool_best(
        &mut self,
        base: &Base,
        present: &Present<'_>,
        network: &mut Network,
        now: Nanos,
    ) -> Option<usize> {
        let closest = self.closest(base, present)?;
        let mut best: Option<(f64, usize)> = None;
        for (site, way) in ways(base) {
            let seen = &mut self.processing[site];
            seen.last = seen.last.filter(|(_, at)| now - at <= STALE);
            let takes = seen.last.map_or(0.0, |last| last.0) + network.tool_estimate(way);
            if best.is_none_or(|(least, _)| takes < least) {
                best = Some((takes, site));
            }
        }
        let best = best.map_or(closest, |entry| entry.1);
        let other = best != closest && self.stream.uniform() < 0.5;
        Some(if other { best } else { closest })
    }

    fn weighted(&mut self, base: &Base, present: &Present<'_>) -> Option<usize> {
        let open = |(site, _): &(usize, &Way)| present.open(*site);
        let weight = |site: usize| present.farms[site].setup.weight;
        let sum: f64 = ways(base).filter(open).map(|(site, _)| weight(site)).sum();
        let mut left = self.stream.uniform() * sum;
        let mut chosen = None;
        for (site, _) in ways(base).filter(open).filter(|(site, _)| weight(*site) > 0.0) {
            chosen = Some(site);
            left -= weight(site);
            if left < 0.0 {
                break;
            }
        }
        chosen
    }

    fn overflow(&mut self, base: &Base, present: &Present<'_>, most: f64) -> Option<usize> {
        let open = || base.nearest.iter().map(|entry| entry.0).filter(|site| present.open(*site));
        let room = |site: &usize| {
            let farm = &present.farms[*site];
            (farm.headed as f64) < most * farm.balance.open() as f64
        };
        let roomy = open().find(room);
        roomy.or_else(|| open().next())
    }
}

fn ways(base: &Base) -> impl Iterator<Item = (usize, &Way)> {
    base.ways.iter().enumerate().filter_map(|(site, way)| Some((site, way.as_ref()?)))
}
