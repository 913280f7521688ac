//! Sites and ways that fail and come back.
use super::model::{Event, Message, Running};
use super::network::Spot;
use super::scenario::{LinkFailure, Outage, Reliability, Scenario};
use super::server::Part;
use super::users::HOUR;
use super::world::World;
use crate::random::Stream;
use crate::{Agenda, Nanos};

/// What fails when.
#[derive(Clone, Debug)]
pub struct Faults {
    notice: Nanos,
    outages: Vec<Vec<Outage>>,
    by_chance: Vec<Option<Reliability>>,
    links: Vec<LinkFailure>,
    /// Ways that each link failure breaks: user base and site.
    breaks: Vec<Vec<(usize, usize)>>,
    /// By user base and site, how many failures hold the way broken; empty where none can.
    broken: Vec<Vec<u32>>,
    /// The same, as brokers know it.
    known: Vec<Vec<u32>>,
    stream: Stream,
}

impl Faults {
    /// The failures of a scenario.
    pub fn of(scenario: &Scenario, world: &World, stream: Stream) -> Self {
        let affected = |failure: &LinkFailure| {
            let ways = (0..world.bases.len())
                .flat_map(|base| (0..world.sites.len()).map(move |site| (base, site)));
            ways.filter(|(base, site)| uses(world, *base, *site, failure)).collect()
        };
        let counts = if scenario.link_failures.is_empty() {
            vec![Vec::new(); world.bases.len()]
        } else {
            vec![vec![0; world.sites.len()]; world.bases.len()]
        };
        Self {
            notice: super::travel::from_ms(scenario.failover_s * 1e3),
            outages: world.sites.iter().map(|(_, site)| site.fails.clone()).collect(),
            by_chance: world.sites.iter().map(|(_, site)| site.reliability).collect(),
            links: scenario.link_failures.clone(),
            breaks: scenario.link_failures.iter().map(affected).collect(),
            broken: counts.clone(),
            known: counts,
            stream,
        }
    }

    /// Puts what is known in advance on the agenda.
    pub(super) fn starts(&mut self, begin: Nanos, end: Nanos, agenda: &mut Agenda<Event>) {
        let at = |hour: f64| begin + (hour * HOUR as f64).round() as Nanos;
        for (site, outages) in self.outages.iter().enumerate() {
            for outage in outages {
                for (hour, down) in [(outage.from_h, true), (outage.to_h, false)] {
                    for (known, late) in [(false, 0), (true, self.notice)] {
                        let site = site as u16;
                        let event = Event::Site { site, down, known, random: false };
                        agenda.at(at(hour) + late, event);
                    }
                }
            }
        }
        for (number, failure) in self.links.iter().enumerate() {
            for (hour, down) in [(failure.from_h, true), (failure.to_h, false)] {
                for (known, late) in [(false, 0), (true, self.notice)] {
                    let event = Event::Ways { failure: number as u16, down, known };
                    agenda.at(at(hour) + late, event);
                }
            }
        }
        for site in 0..self.by_chance.len() {
            self.turns_next(site, false, 0, end, agenda);
        }
    }

    /// The next failure or repair by chance of a site that is up or down now.
    fn turns_next(
        &mut self,
        site: usize,
        down: bool,
        now: Nanos,
        end: Nanos,
        agenda: &mut Agenda<Event>,
    ) {
        let Some(chance) = self.by_chance[site] else { return };
        let mean_h = if down { chance.down_h } else { chance.up_h };
        let at = now.saturating_add(self.stream.exponential_ns(mean_h * HOUR as f64));
        if at < end {
            for (known, late) in [(false, 0), (true, self.notice)] {
                let event = Event::Site { site: site as u16, down: !down, known, random: true };
                agenda.at(at + late, event);
            }
        }
    }

    /// A link failure begins or ends.
    pub(super) fn ways_turn(&mut self, failure: usize, down: bool, known: bool) {
        let counts = if known { &mut self.known } else { &mut self.broken };
        for (base, site) in &self.breaks[failure] {
            let count = &mut counts[*base][*site];
            *count = if down { *count + 1 } else { *count - 1 };
        }
    }

    /// Whether the way is broken.
    #[inline]
    pub fn broken(&self, base: usize, site: usize) -> bool {
        self.broken[base].get(site).is_some_and(|count| *count > 0)
    }

    /// By site, how many failures of the ways from a base brokers know of.
    #[inline]
    pub fn known(&self, base: usize) -> &[u32] {
        &self.known[base]
    }
}

/// Whether a leg of the way lies between the two ends of a failure.
fn uses(world: &World, base: usize, site: usize, failure: &LinkFailure) -> bool {
    let (from, to) = (&world.bases[base], &world.sites[site].0);
    let named = |spot: &Spot, end: &String| spot.name == *end || spot.region == *end;
    let between = |one: &Spot, other: &Spot| {
        let [a, b] = &failure.between;
        (named(one, a) && named(other, b)) || (named(one, b) && named(other, a))
    };
    match &from.cache {
        Some((cache, _)) => {
            let cache = &world.caches[*cache];
            between(&from.spot, cache) || between(cache, to)
        }
        None => between(&from.spot, to),
    }
}

impl Running<'_> {
    /// A site goes down or comes back, or brokers notice it.
    pub(super) fn site_turns(
        &mut self,
        site: usize,
        (down, known, random): (bool, bool, bool),
        agenda: &mut Agenda<Event>,
    ) {
        let farm = &mut self.farms[site];
        let count = if known { &mut farm.known_down } else { &mut farm.down };
        *count = if down { *count + 1 } else { *count - 1 };
        if known {
            return;
        }
        if down && farm.down == 1 {
            self.loses_all(site, agenda);
        }
        if random {
            self.faults.turns_next(site, down, agenda.now(), self.end, agenda);
        }
    }

    /// Everything in service or waiting at a site is lost.
    fn loses_all(&mut self, site: usize, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let mut lost: Vec<Part> = self.farms[site].waiting.drain(..).collect();
        for instance in 0..self.farms[site].instances.len() {
            let farm = &mut self.farms[site];
            let one = &mut farm.instances[instance];
            let parts = one.server.clear();
            one.announced = Nanos::MAX;
            parts.iter().for_each(|_| farm.balance.ends(instance));
            for changed in farm.ends_at(instance, now).unwrap_or_default() {
                self.announces_anew(site, changed, agenda);
            }
            lost.extend(parts);
        }
        for part in lost {
            let message = self.messages.get(part.message);
            message.lost = true;
            message.left -= 1;
            let Message { left, arrived, answered, .. } = *message;
            let farm = &mut self.farms[site];
            farm.inside.set(now, farm.inside.value() - u64::from(part.requests));
            farm.spent += u128::from(now - arrived) * u128::from(part.requests);
            match (left, answered) {
                (0, false) => self.served(part.message, agenda),
                (0, true) => {
                    self.messages.take(part.message);
                }
                _ => {}
            }
        }
    }
}
