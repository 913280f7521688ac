//! The simulation itself: what happens when a message is sent, arrives, is served, comes back.
use super::ask::Asking;
use super::broker::Brokers;
use super::farm::Farm;
use super::faults::Faults;
use super::noise::Noise;
use super::scenario::{Broker, Scenario, Spread};
use super::seen::Outcome;
use super::slab::Slab;
use super::travel::Network;
use super::users::{DAY, HOUR};
use super::world::World;
use crate::error::Refused;
use crate::random::{Lengths, Stream};
use crate::{simulate, Agenda, Model, Nanos, Stop, SECOND};

/// No page.
pub(super) const NONE: u32 = u32::MAX;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// Users of a base ask.
    Asks(u16),
    /// A message arrives at its site.
    Comes(OnItsWay),
    /// A message of a page load arrives at its site.
    Arrives(u32),
    /// An instance is done with something, if that is still announced for now.
    Ends { site: u16, instance: u32 },
    /// An answer is back (CloudAnalyst's, which counts what is on its way).
    Back(OnItsWay),
    /// A group of users has its answer and thinks.
    Thinks(u16),
    /// A site looks whether it has instances enough.
    Looks(u16),
    /// An ordered instance begins to serve.
    Opens(u16),
    /// A site goes down or comes back; known: brokers notice it.
    Site { site: u16, down: bool, known: bool, random: bool },
    /// A way breaks or is mended; known: brokers notice it.
    Ways { failure: u16, down: bool, known: bool },
    /// Counting begins.
    Begins,
    /// Counting of what lasts ends.
    Closes,
}

/// What has to be known of a message on its way: it lies in the event itself, because tens of
/// thousands of them come in another order than they were sent, each a cache miss elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnItsWay {
    pub sent: Nanos,
    pub requests: u32,
    pub base: u16,
    pub site: u16,
}

/// A message at its site, or one of a page load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub sent: Nanos,
    pub arrived: Nanos,
    pub base: u16,
    pub site: u16,
    pub requests: u32,
    /// Parts that are not done.
    pub left: u32,
    /// The page load that it belongs to, with its place there.
    pub page: u32,
    pub chain: u16,
    pub step: u16,
    pub answered: bool,
    pub lost: bool,
}

/// A scenario as it runs.
pub(super) struct Running<'a> {
    pub scenario: &'a Scenario,
    pub world: &'a World,
    pub tool: bool,
    pub farms: Vec<Farm>,
    pub network: Network,
    pub asking: Vec<Asking>,
    pub brokers: Brokers,
    pub faults: Faults,
    pub messages: Slab<Message>,
    /// Messages that are not answered.
    pub in_flight: usize,
    pub pages: Slab<super::pages::Load>,
    pub seen: Outcome,
    /// From when on it counts.
    pub begin: Nanos,
    /// Until when users ask.
    pub end: Nanos,
    /// How far into a day moment 0 lies.
    pub shift: Nanos,
    /// When the last users looked whether to ask (CloudAnalyst's end).
    pub last_look: Nanos,
    pub service: Stream,
    /// Instructions of a request, by their mean.
    pub spread: Lengths,
}

/// Simulates a scenario once. Refused: a scenario that cannot be, more load than the sites can
/// serve, more memory than there is.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Outcome, Refused> {
    scenario.check()?;
    let world = World::of(scenario)?;
    super::load::check(scenario, &world)?;
    let mut agenda = Agenda::default();
    let mut running = Running::new(scenario, &world, seed)?;
    running.starts(&mut agenda);
    simulate(&mut running, &mut agenda, Nanos::MAX - 1);
    Ok(running.closes(agenda.passed()))
}

impl<'a> Running<'a> {
    fn new(scenario: &'a Scenario, world: &'a World, seed: u64) -> Result<Self, Refused> {
        let tool = scenario.compat.is_some();
        let stream = |source: u64| Stream::of(seed, 0, source);
        let begin = (scenario.warm_up_s() * SECOND as f64).round() as Nanos;
        let end = begin + (scenario.duration_h * HOUR as f64).round() as Nanos;
        let shift = (DAY - begin % DAY) % DAY;
        let users = if tool {
            Noise::Hundredths(Box::default())
        } else {
            Noise::of(scenario.variation.users, "variation.users")?
        };
        let asking = (0..world.bases.len() as u64).map(|base| {
            Asking::new(&scenario.grouping, users.clone(), shift, end, stream(100 + base))
        });
        let farm = |site: &super::scenario::Site| {
            let mut site = site.clone();
            if scenario.broker == Broker::Reconfiguring && !tool {
                site.autoscaling = site.autoscaling.or_else(|| Some(Default::default()));
            }
            Farm::new(&site, scenario.balancer, tool, shift)
        };
        Ok(Self {
            scenario,
            world,
            tool,
            farms: world.sites.iter().map(|(_, site)| farm(site)).collect(),
            network: Network::of(scenario, world, stream(1))?,
            asking: asking.collect(),
            brokers: Brokers::new(scenario.broker, tool, world, scenario.instructions, stream(2)),
            faults: Faults::of(scenario, world, stream(3)),
            messages: Slab::default(),
            in_flight: 0,
            pages: Slab::default(),
            seen: Outcome::new(scenario, world),
            begin,
            end,
            shift,
            last_look: 0,
            service: stream(4),
            spread: match scenario.instructions_spread {
                Spread::Constant => Lengths::Constant(1.0),
                Spread::Exponential => Lengths::Exponential(1.0),
                Spread::LogNormal(variation) => Lengths::log_normal(1.0, variation)?,
            },
        })
    }

    fn starts(&mut self, agenda: &mut Agenda<Event>) {
        agenda.at(self.begin, Event::Begins);
        self.faults.starts(self.begin, self.end, agenda);
        for base in 0..self.asking.len() {
            let first = match self.tool {
                true => Some(super::travel::from_ms(100.0)),
                false => self.asking[base].next(&self.world.bases[base], 0),
            };
            if let Some(at) = first {
                agenda.at(at, Event::Asks(base as u16));
            }
        }
        for site in 0..self.farms.len() {
            if let Some(every) = self.looks_every(site) {
                agenda.at(every, Event::Looks(site as u16));
            }
        }
        agenda.at(self.end, Event::Closes);
    }

    fn closes(mut self, events: u64) -> Outcome {
        self.seen.events = events;
        self.seen.closes_times();
        for (number, (_, cache)) in self.scenario.caches.iter().enumerate() {
            self.seen.closes_cache(self.farms.len() + number, cache);
        }
        for (site, farm) in self.farms.iter().enumerate() {
            let area = farm.inside.area(farm.inside.changed());
            let ratio = (farm.spent > 0).then(|| area as f64 / farm.spent as f64);
            self.seen.sites[site].little_ratio = ratio;
        }
        if self.tool {
            let until = self.last_look.max(self.end);
            for (site, farm) in self.farms.iter().enumerate() {
                self.seen.closes(site, farm, until, true);
            }
        }
        self.seen
    }

    /// The counts of what lasts, at the moment at which the run ends; requests may still be in
    /// service.
    fn closes_counts(&mut self, now: Nanos) {
        for (site, farm) in self.farms.iter_mut().enumerate() {
            let many = farm.many.value() as f64;
            farm.by_hour.set(now, many);
            if !self.tool {
                self.seen.closes(site, farm, now, false);
            }
        }
    }

    /// Whether what was sent then counts.
    pub(super) fn counts(&self, sent: Nanos) -> bool {
        sent >= self.begin
    }
}

impl Model for Running<'_> {
    type Event = Event;

    fn happens(&mut self, event: Event, agenda: &mut Agenda<Event>) -> Stop {
        let now = agenda.now();
        match event {
            Event::Asks(base) if self.tool => self.burst(base as usize, agenda),
            Event::Asks(number) => {
                let base = &self.world.bases[number as usize];
                if let Some(at) = self.asking[number as usize].next(base, now) {
                    agenda.at(at, Event::Asks(number));
                }
                if self.asking[number as usize].asks(base) {
                    self.sends(number as usize, self.scenario.grouping.users, agenda);
                }
            }
            Event::Comes(message) => self.comes(&message, agenda),
            Event::Arrives(id) => self.arrives(id, agenda),
            Event::Ends { site, instance } => {
                let (site, instance) = (site as usize, instance as usize);
                let one = &mut self.farms[site].instances[instance];
                if one.announced == now {
                    one.announced = Nanos::MAX;
                    self.takes(site, instance, agenda);
                    self.announces(site, instance, agenda);
                }
            }
            Event::Back(message) => self.back(&message, agenda),
            Event::Thinks(base) => self.asking[base as usize].out -= 1,
            Event::Looks(site) => self.looks(site as usize, agenda),
            Event::Opens(site) => self.opens(site as usize, agenda),
            Event::Site { site, down, known, random } => {
                self.site_turns(site as usize, (down, known, random), agenda);
            }
            Event::Ways { failure, down, known } => {
                self.faults.ways_turn(failure as usize, down, known);
            }
            Event::Begins => {
                if now > 0 {
                    self.farms.iter_mut().for_each(|farm| farm.begins(now));
                }
            }
            Event::Closes => self.closes_counts(now),
        }
        self.seen.in_flight = self.seen.in_flight.max(self.in_flight);
        Stop::No
    }
}
