//! Failures of sites and network paths.
use super::model::{GeoEvent, GeoEvents, GeoSimulation, Message};
use super::network::Location;
use super::profile::HOUR;
use super::scenario::{GeoScenario, LinkFailure, Outage, Reliability};
use super::server::RequestBatch;
use super::topology::Topology;
use crate::random::RandomStream;
use crate::Nanos;

/// Scheduled and random failures.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Delay until the broker knows of a failure or a recovery.
    failover: Nanos,
    outages: Vec<Vec<Outage>>,
    random: Vec<Option<Reliability>>,
    links: Vec<LinkFailure>,
    /// User base and site of the network paths that each link failure affects.
    affected: Vec<Vec<(usize, usize)>>,
    /// Number of failures of each network path, by user base and site; empty if none can fail.
    failures: Vec<Vec<u32>>,
    /// Number of those that the broker knows.
    known_failures: Vec<Vec<u32>>,
    stream: RandomStream,
}

impl Faults {
    pub fn new(scenario: &GeoScenario, topology: &Topology, stream: RandomStream) -> Self {
        let affected = |failure: &LinkFailure| {
            let paths = (0..topology.bases.len())
                .flat_map(|base| (0..topology.sites.len()).map(move |site| (base, site)));
            paths.filter(|(base, site)| affects(topology, *base, *site, failure)).collect()
        };
        let counts = if scenario.link_failures.is_empty() {
            vec![Vec::new(); topology.bases.len()]
        } else {
            vec![vec![0; topology.sites.len()]; topology.bases.len()]
        };
        Self {
            failover: super::transfer::from_ms(scenario.failover_s * 1e3),
            outages: topology.sites.iter().map(|(_, site)| site.outages.clone()).collect(),
            random: topology.sites.iter().map(|(_, site)| site.reliability).collect(),
            links: scenario.link_failures.clone(),
            affected: scenario.link_failures.iter().map(affected).collect(),
            failures: counts.clone(),
            known_failures: counts,
            stream,
        }
    }

    /// Schedules the failures that are known in advance, and the first random ones.
    pub(super) fn schedule(&mut self, start: Nanos, end: Nanos, events: &mut GeoEvents) {
        let time = |hour: f64| start + (hour * HOUR as f64).round() as Nanos;
        // When a failure begins and ends, and when the broker knows of that.
        let changes = |from_h: f64, to_h: f64| {
            [(time(from_h), true), (time(to_h), false)].into_iter().flat_map(|(time, is_down)| {
                [(time, is_down, false), (time + self.failover, is_down, true)]
            })
        };
        for (site, outages) in self.outages.iter().enumerate() {
            for outage in outages {
                for (time, is_down, is_known) in changes(outage.from_h, outage.to_h) {
                    let (site, is_random) = (site as u16, false);
                    events.schedule_at(
                        time,
                        GeoEvent::SiteState { site, is_down, is_known, is_random },
                    );
                }
            }
        }
        for (number, failure) in self.links.iter().enumerate() {
            for (time, is_down, is_known) in changes(failure.from_h, failure.to_h) {
                let failure = number as u16;
                events.schedule_at(time, GeoEvent::LinkState { failure, is_down, is_known });
            }
        }
        for site in 0..self.random.len() {
            self.schedule_random(site, false, 0, end, events);
        }
    }

    /// Schedules the next random failure or repair of a site that is up or down now.
    fn schedule_random(
        &mut self,
        site: usize,
        is_down: bool,
        now: Nanos,
        end: Nanos,
        events: &mut GeoEvents,
    ) {
        let Some(times) = self.random[site] else { return };
        let mean_h = if is_down { times.down_h } else { times.up_h };
        let time = now.saturating_add(self.stream.exponential_ns(mean_h * HOUR as f64));
        if time >= end {
            return;
        }
        for (is_known, delay) in [(false, 0), (true, self.failover)] {
            let (site, is_down, is_random) = (site as u16, !is_down, true);
            let event = GeoEvent::SiteState { site, is_down, is_known, is_random };
            events.schedule_at(time + delay, event);
        }
    }

    pub(super) fn set_link_state(&mut self, failure: usize, is_down: bool, is_known: bool) {
        let counts = if is_known { &mut self.known_failures } else { &mut self.failures };
        for (base, site) in &self.affected[failure] {
            change(&mut counts[*base][*site], is_down);
        }
    }

    /// Returns whether a network path is down.
    #[inline]
    pub fn is_down(&self, base: usize, site: usize) -> bool {
        self.failures[base].get(site).is_some_and(|count| *count > 0)
    }

    /// Returns the number of known failures of the network paths from a base by site.
    #[inline]
    pub fn known_failures(&self, base: usize) -> &[u32] {
        &self.known_failures[base]
    }
}

fn change(count: &mut u32, is_down: bool) {
    *count = if is_down { *count + 1 } else { *count - 1 };
}

/// Returns whether a leg of the network path lies between the two ends of a failure.
fn affects(topology: &Topology, base: usize, site: usize, failure: &LinkFailure) -> bool {
    let (from, to) = (&topology.bases[base], &topology.sites[site].0);
    let is = |location: &Location, end: &String| location.name == *end || location.region == *end;
    let lies_between = |from: &Location, to: &Location| {
        let [a, b] = &failure.between;
        (is(from, a) && is(to, b)) || (is(from, b) && is(to, a))
    };
    match &from.cache {
        Some((cache, _)) => {
            let cache = &topology.caches[*cache];
            lies_between(&from.location, cache) || lies_between(cache, to)
        }
        None => lies_between(&from.location, to),
    }
}

impl GeoSimulation<'_> {
    /// A site goes down or recovers, or the broker notices it.
    pub(super) fn set_site_state(
        &mut self,
        site: usize,
        (is_down, is_known, is_random): (bool, bool, bool),
        events: &mut GeoEvents,
    ) {
        let pool = &mut self.pools[site];
        change(if is_known { &mut pool.known_failures } else { &mut pool.failures }, is_down);
        if is_known {
            return;
        }
        if is_down && pool.failures == 1 {
            self.lose_all(site, events);
        }
        if is_random {
            self.faults.schedule_random(site, is_down, events.now(), self.end, events);
        }
    }

    /// Loses everything in service or waiting at a site.
    fn lose_all(&mut self, site: usize, events: &mut GeoEvents) {
        let now = events.now();
        let mut lost: Vec<RequestBatch> = self.pools[site].waiting.drain(..).collect();
        for number in 0..self.pools[site].instances.len() {
            let pool = &mut self.pools[site];
            let instance = &mut pool.instances[number];
            let batches = instance.server.clear();
            instance.scheduled = Nanos::MAX;
            batches.iter().for_each(|_| pool.balancer.complete(number));
            let changed = pool.mark_idle(number, now).unwrap_or_default();
            self.reschedule(site, changed, events);
            lost.extend(batches);
        }
        for batch in lost {
            let message = self.messages.get(batch.message);
            message.is_lost = true;
            let Message { batches_left, is_answered, .. } = self.leave_system(batch, now);
            match (batches_left, is_answered) {
                (0, false) => self.complete_message(batch.message, events),
                (0, true) => {
                    self.messages.remove(batch.message);
                }
                _ => {}
            }
        }
    }
}
