//! The simulation: its events and its state.
use super::broker::SiteBroker;
use super::faults::Faults;
use super::instance_pool::InstancePool;
use super::outcome::GeoOutcome;
use super::page_loads::PageLoad;
use super::profile::{DAY, HOUR};
use super::random_factor::RandomFactor;
use super::request_source::RequestSource;
use super::scenario::{Broker, GeoScenario, Site, Spread};
use super::slab::Slab;
use super::topology::Topology;
use super::transfer::{from_ms, Network};
use crate::error::Result;
use crate::random::{Distribution, RandomStream};
use crate::{simulate, EventQueue, Model, Nanos, SECOND};

/// No page.
pub(super) const NO_PAGE: u32 = u32::MAX;

pub(super) type GeoEvents = EventQueue<GeoEvent>;

#[derive(Clone, Copy, Debug)]
pub(super) enum GeoEvent {
    /// Users of a base send a request.
    Request(u16),
    /// A message arrives at its site.
    MessageArrival(InFlightMessage),
    /// A message of a page load arrives at its site.
    PageMessageArrival(u32),
    /// An instance completes a batch, if that is still scheduled for now.
    Completion {
        site: u16,
        instance: u32,
    },
    /// A response arrives at the users (CloudAnalyst's, which counts what is in flight).
    ResponseArrival(InFlightMessage),
    /// A group of users has its response and thinks.
    Thinking(u16),
    /// The autoscaler checks a site.
    ScalingCheck(u16),
    /// A starting instance is ready.
    InstanceReady(u16),
    /// A site goes down or recovers; is_known: the broker notices it.
    SiteState {
        site: u16,
        is_down: bool,
        is_known: bool,
        is_random: bool,
    },
    /// A link goes down or recovers; is_known: the broker notices it.
    LinkState {
        failure: u16,
        is_down: bool,
        is_known: bool,
    },
    WarmUpEnd,
    MeasurementEnd,
}

/// A message in flight. It is part of the event itself, because tens of thousands of them arrive in
/// another order than they were sent, each of which would be a cache miss elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlightMessage {
    pub sent: Nanos,
    pub requests: u32,
    pub base: u16,
    pub site: u16,
}

/// A message at its site, or one of a page load.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Message {
    pub sent: Nanos,
    pub arrived: Nanos,
    pub base: u16,
    pub site: u16,
    pub requests: u32,
    pub batches_left: u32,
    /// The page load to which it belongs, with its position there.
    pub page: u32,
    pub chain: u16,
    pub step: u16,
    pub is_answered: bool,
    pub is_lost: bool,
}

/// A running scenario.
pub(super) struct GeoSimulation<'a> {
    pub scenario: &'a GeoScenario,
    pub topology: &'a Topology,
    /// CloudAnalyst's model.
    pub compat: bool,
    pub pools: Vec<InstancePool>,
    pub network: Network,
    pub sources: Vec<RequestSource>,
    pub broker: SiteBroker,
    pub faults: Faults,
    pub messages: Slab<Message>,
    /// Number of unanswered messages.
    pub in_flight: usize,
    pub pages: Slab<PageLoad>,
    pub outcome: GeoOutcome,
    /// End of the warm-up.
    pub start: Nanos,
    /// No requests are sent from then on.
    pub end: Nanos,
    /// Time of the day at time 0.
    pub day_offset: Nanos,
    /// Time of the last burst (CloudAnalyst's end).
    pub last_burst: Nanos,
    pub service_stream: RandomStream,
    /// Instructions of a request relative to their mean.
    pub relative_instructions: Distribution,
}

/// Simulates a scenario once.
pub fn run(scenario: &GeoScenario, seed: u64) -> Result<GeoOutcome> {
    scenario.check()?;
    let topology = Topology::new(scenario)?;
    super::load::check(scenario, &topology)?;
    let mut events = EventQueue::default();
    let mut simulation = GeoSimulation::new(scenario, &topology, seed)?;
    simulation.schedule_initial(&mut events);
    simulate(&mut simulation, &mut events, Nanos::MAX - 1);
    Ok(simulation.finish(events.processed()))
}

impl<'a> GeoSimulation<'a> {
    fn new(scenario: &'a GeoScenario, topology: &'a Topology, seed: u64) -> Result<Self> {
        let compat = scenario.compat.is_some();
        let stream = |source: u64| RandomStream::new(seed, 0, source);
        let start = (scenario.warm_up_s() * SECOND as f64).round() as Nanos;
        let end = start + (scenario.duration_h * HOUR as f64).round() as Nanos;
        let day_offset = (DAY - start % DAY) % DAY;
        let users = match compat {
            true => RandomFactor::cloudanalyst(),
            false => RandomFactor::new(scenario.variation.users, "variation.users")?,
        };
        let sources = (0..topology.bases.len() as u64).map(|base| {
            let stream = stream(100 + base);
            RequestSource::new(&scenario.grouping, users.clone(), day_offset, end, stream)
        });
        let pool = |site: &Site| {
            let mut site = site.clone();
            if scenario.broker == Broker::Reconfiguring && !compat {
                site.autoscaling = site.autoscaling.or_else(|| Some(Default::default()));
            }
            InstancePool::new(site, scenario.balancer, compat, day_offset)
        };
        let (rule, instructions) = (scenario.broker, scenario.instructions);
        Ok(Self {
            scenario,
            topology,
            compat,
            pools: topology.sites.iter().map(|(_, site)| pool(site)).collect(),
            network: Network::new(scenario, topology, stream(1))?,
            sources: sources.collect(),
            broker: SiteBroker::new(rule, compat, topology, instructions, stream(2)),
            faults: Faults::new(scenario, topology, stream(3)),
            messages: Slab::default(),
            in_flight: 0,
            pages: Slab::default(),
            outcome: GeoOutcome::new(scenario, topology),
            start,
            end,
            day_offset,
            last_burst: 0,
            service_stream: stream(4),
            relative_instructions: match scenario.instructions_spread {
                Spread::Constant => Distribution::Constant(1.0),
                Spread::Exponential => Distribution::Exponential(1.0),
                Spread::LogNormal(variation) => Distribution::log_normal(1.0, variation)?,
            },
        })
    }

    fn schedule_initial(&mut self, events: &mut GeoEvents) {
        events.schedule_at(self.start, GeoEvent::WarmUpEnd);
        self.faults.schedule(self.start, self.end, events);
        for base in 0..self.sources.len() {
            let first = match self.compat {
                true => Some(from_ms(100.0)),
                false => self.sources[base].next(&self.topology.bases[base], 0),
            };
            if let Some(time) = first {
                events.schedule_at(time, GeoEvent::Request(base as u16));
            }
        }
        for site in 0..self.pools.len() {
            if let Some(interval) = self.scaling_interval(site) {
                events.schedule_at(interval, GeoEvent::ScalingCheck(site as u16));
            }
        }
        events.schedule_at(self.end, GeoEvent::MeasurementEnd);
    }

    fn finish(mut self, events: u64) -> GeoOutcome {
        self.outcome.events = events;
        self.outcome.merge_moments();
        for (number, (_, cache)) in self.scenario.caches.iter().enumerate() {
            self.outcome.close_cache(self.pools.len() + number, cache);
        }
        let until = self.last_burst.max(self.end);
        for (site, pool) in self.pools.iter().enumerate() {
            let area = pool.in_system.area(pool.in_system.last_change());
            let time = pool.time_in_system;
            self.outcome.sites[site].little_ratio = (time > 0).then(|| area as f64 / time as f64);
            if self.compat {
                self.outcome.close_site(site, pool, until, true);
            }
        }
        self.outcome
    }

    /// Closes the statistics of sites at the end of the run; requests may still be in service.
    fn end_measurement(&mut self, now: Nanos) {
        for (site, pool) in self.pools.iter_mut().enumerate() {
            let count = pool.count.value() as f64;
            pool.count_by_hour.set(now, count);
            if !self.compat {
                self.outcome.close_site(site, pool, now, false);
            }
        }
    }

    /// Returns whether a request sent at that time is measured.
    pub(super) fn is_measured(&self, sent: Nanos) -> bool {
        sent >= self.start
    }
}

impl Model for GeoSimulation<'_> {
    type Event = GeoEvent;

    fn handle(&mut self, event: GeoEvent, events: &mut GeoEvents) {
        let now = events.now();
        match event {
            GeoEvent::Request(base) if self.compat => self.send_burst(base as usize, events),
            GeoEvent::Request(number) => {
                let base = &self.topology.bases[number as usize];
                let source = &mut self.sources[number as usize];
                if let Some(time) = source.next(base, now) {
                    events.schedule_at(time, GeoEvent::Request(number));
                }
                if source.sends(base) {
                    self.send_message(number as usize, self.scenario.grouping.users, events);
                }
            }
            GeoEvent::MessageArrival(message) => {
                let id = self.messages.insert(message.at_site(now));
                self.process_arrival(id, events);
            }
            GeoEvent::PageMessageArrival(id) => self.process_arrival(id, events),
            GeoEvent::Completion { site, instance } => {
                let (site, number) = (site as usize, instance as usize);
                let instance = &mut self.pools[site].instances[number];
                if instance.scheduled == now {
                    instance.scheduled = Nanos::MAX;
                    self.collect_completed(site, number, events);
                    self.schedule_completion(site, number, events);
                }
            }
            GeoEvent::ResponseArrival(message) => self.receive_response(&message, events),
            GeoEvent::Thinking(base) => self.sources[base as usize].waiting -= 1,
            GeoEvent::ScalingCheck(site) => self.check_scaling(site as usize, events),
            GeoEvent::InstanceReady(site) => self.start_instance(site as usize, events),
            GeoEvent::SiteState { site, is_down, is_known, is_random } => {
                self.set_site_state(site as usize, (is_down, is_known, is_random), events);
            }
            GeoEvent::LinkState { failure, is_down, is_known } => {
                self.faults.set_link_state(failure as usize, is_down, is_known);
            }
            GeoEvent::WarmUpEnd => {
                if now > 0 {
                    self.pools.iter_mut().for_each(|pool| pool.end_warm_up(now));
                }
            }
            GeoEvent::MeasurementEnd => self.end_measurement(now),
        }
        self.outcome.in_flight = self.outcome.in_flight.max(self.in_flight);
    }
}
