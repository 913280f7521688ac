//! The simulation itself: what happens when a message is sent, arrives, is served, comes back.
use super::ask::Asking;
use super::broker::{Brokers, Present};
use super::farm::Farm;
use super::faults::Faults;
use super::noise::Noise;
use super::scenario::{Broker, Scenario, Spread};
use super::seen::{Answer, Outcome};
use super::server::Part;
use super::slab::Slab;
use super::travel::{Direction, Network};
use super::users::{DAY, HOUR};
use super::world::World;
use crate::error::Refused;
use crate::random::{Lengths, Stream};
use crate::{simulate, Agenda, Model, Nanos, Stop, SECOND};

/// A part whose rest would take less than this is done in CloudAnalyst: 0.01 ms.
const TOOL_SLACK_NS: f64 = 1e4;
/// No page.
pub(super) const NONE: u32 = u32::MAX;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// Users of a base ask.
    Asks(u16),
    /// A message arrives at its site.
    Arrives(u32),
    /// An instance is done with something, if the announcement of that number holds.
    Ends { site: u16, instance: u32, number: u32 },
    /// An answer is back (CloudAnalyst's, which counts what is on its way).
    Back(u32),
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

/// A message in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub sent: Nanos,
    pub arrived: Nanos,
    pub base: u16,
    pub site: u16,
    pub requests: u32,
    /// Parts that are not done, and an answer on its way.
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
    service: Stream,
    /// Instructions of a request, by their mean.
    spread: Lengths,
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
    pub fn counts(&self, sent: Nanos) -> bool {
        sent >= self.begin
    }

    /// CloudAnalyst: all users of a base at once.
    fn burst(&mut self, base: usize, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        self.last_look = self.last_look.max(now);
        let Some((users, next)) = self.asking[base].burst(&self.world.bases[base], now) else {
            return;
        };
        let group = u64::from(self.scenario.grouping.users);
        for _ in 0..users / group {
            self.sends(base, group as u32, agenda);
        }
        if users % group > 0 {
            self.sends(base, (users % group) as u32, agenda);
        }
        agenda.at(next, Event::Asks(base as u16));
    }

    /// A message of so many requests is sent now.
    fn sends(&mut self, number: usize, requests: u32, agenda: &mut Agenda<Event>) {
        let (now, base) = (agenda.now(), &self.world.bases[number]);
        self.asking[number].out += 1;
        if self.hits_cache(number, requests, agenda) {
            return;
        }
        let present = Present { farms: &self.farms, broken: self.faults.known(number) };
        let chosen = self.brokers.choose(base, &present, &mut self.network, now);
        let passable = |site: &usize| !self.faults.broken(number, *site);
        let way = chosen.filter(passable).and_then(|site| Some((site, base.ways[site].as_ref()?)));
        let Some((site, way)) = way else {
            self.loses(number, now, requests, agenda);
            return;
        };
        let mut message = Message {
            sent: now,
            arrived: 0,
            base: number as u16,
            site: site as u16,
            requests,
            left: 0,
            page: NONE,
            chain: 0,
            step: 0,
            answered: false,
            lost: false,
        };
        if way.page.is_some() {
            self.begins_page(message, agenda);
            return;
        }
        let bytes = base.asks.request_bytes as f64;
        let takes = self.network.send(base, way, Direction::Up, now, (requests, bytes));
        message.arrived = now + takes.round() as Nanos;
        self.farms[site].headed += u64::from(requests);
        let id = self.messages.put(message);
        agenda.at(message.arrived, Event::Arrives(id));
    }

    /// Whether a cache answers; if so, it has.
    fn hits_cache(&mut self, number: usize, requests: u32, agenda: &mut Agenda<Event>) -> bool {
        let base = &self.world.bases[number];
        let Some((cache, delay)) = &base.cache else { return false };
        let of = &self.scenario.caches.0[*cache].1;
        if !self.network.chance(of.hit_ratio) {
            return false;
        }
        let now = agenda.now();
        let own_line = base.access_ns_per_byte * (base.up_bytes() + base.down_bytes());
        let response_ns = if let Some(page) = &base.asks.page {
            let bytes_per_s = SECOND as f64 / base.access_ns_per_byte;
            let round_trip_ns = self.network.round_trip(delay);
            page.exchanges(round_trip_ns, bytes_per_s).load_ns(of.serves_ms * super::network::MS)
        } else {
            self.network.round_trip(delay) + of.serves_ms * super::network::MS + own_line
        };
        let place = self.farms.len() + cache;
        if self.counts(now) {
            self.seen.sites[place].bytes += f64::from(requests) * base.down_bytes();
        }
        self.answers(number, place, now, response_ns, requests, agenda);
        true
    }

    /// Users have their answer after `response_ns`.
    pub fn answers(
        &mut self,
        base: usize,
        place: usize,
        sent: Nanos,
        response_ns: f64,
        requests: u32,
        agenda: &mut Agenda<Event>,
    ) {
        if self.counts(sent) {
            let hour = ((sent + self.shift) % DAY / HOUR) as usize;
            let weight = if self.tool { 1 } else { requests };
            self.seen.answers(&Answer { base, place, hour, response_ns, requests, weight });
        }
        self.frees(base, sent + response_ns.round() as Nanos, agenda);
    }

    /// A group of users has its answer by then, or knows that there is none.
    fn frees(&mut self, base: usize, at: Nanos, agenda: &mut Agenda<Event>) {
        if self.world.bases[base].asks.think_time_s.is_some() {
            agenda.at(at.max(agenda.now()), Event::Thinks(base as u16));
        }
    }

    /// Requests that get no answer.
    pub fn loses(&mut self, base: usize, sent: Nanos, requests: u32, agenda: &mut Agenda<Event>) {
        if self.counts(sent) {
            self.seen.loses(base, requests);
        }
        self.frees(base, agenda.now(), agenda);
    }

    /// A message is at its site: it is split into parts, each for an instance.
    fn arrives(&mut self, id: u32, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let message = *self.messages.get(id);
        let site = message.site as usize;
        if self.tool {
            let base = &self.world.bases[message.base as usize];
            if let Some(way) = &base.ways[site] {
                self.network.lands(way, message.requests);
            }
            self.seen.sites[site].bytes += base.asks.request_bytes as f64;
        }
        if self.farms[site].down > 0 {
            self.messages.get(id).lost = true;
            self.served(id, agenda);
            return;
        }
        let inside = self.farms[site].inside.value() + u64::from(message.requests);
        self.farms[site].inside.set(now, inside);
        let most = self.scenario.grouping.requests;
        self.messages.get(id).left = message.requests.div_ceil(most);
        let mut rest = message.requests;
        while rest > 0 {
            let part = Part { message: id, requests: rest.min(most) };
            rest -= part.requests;
            match self.farms[site].balance.choose() {
                Some(instance) => self.serves(site, instance, part, agenda),
                None => self.farms[site].waiting.push_back(part),
            }
        }
    }

    /// An instance takes a part.
    fn serves(&mut self, site: usize, instance: usize, part: Part, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        self.takes(site, instance, agenda);
        let of_mean = match self.spread {
            Lengths::Constant(_) => f64::from(part.requests),
            spread => (0..part.requests).map(|_| spread.draw(&mut self.service)).sum(),
        };
        let farm = &mut self.farms[site];
        let one = &mut farm.instances[instance];
        let length_ns = of_mean * self.scenario.instructions / one.speed * super::network::MS;
        one.server.comes(now, length_ns, part);
        farm.settles(instance, now);
        farm.balance.begins(instance, now, length_ns.round() as Nanos);
        self.announces(site, instance, agenda);
    }

    /// Announces an instance's next end, unless an earlier look is announced already.
    #[inline]
    pub fn announces(&mut self, site: usize, instance: usize, agenda: &mut Agenda<Event>) {
        let one = &mut self.farms[site].instances[instance];
        let Some(at) = one.server.next_end().filter(|at| *at < one.announced) else { return };
        one.announced = at;
        one.number = one.number.wrapping_add(1);
        let (site, instance) = (site as u16, instance as u32);
        agenda.at(at, Event::Ends { site, instance, number: one.number });
    }

    /// Takes what an instance has done by now.
    fn takes(&mut self, site: usize, instance: usize, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let before = self.farms[site].instances[instance].server.len();
        if before == 0 {
            return;
        }
        while let Some(part) = self.farms[site].instances[instance].server.finished(now) {
            self.done(site, instance, part, agenda);
        }
        if self.tool {
            let server = |farms: &mut Vec<Farm>| {
                let server = &mut farms[site].instances[instance].server;
                let jobs = server.len();
                server.nearly_finished(now, TOOL_SLACK_NS, jobs)
            };
            while let Some(part) = server(&mut self.farms) {
                self.done(site, instance, part, agenda);
            }
        }
        self.farms[site].settles(instance, now);
        for changed in self.farms[site].leaves(instance, now) {
            self.announces_anew(site, changed, agenda);
        }
    }

    /// Announces the next end of an instance whose speed has changed.
    pub fn announces_anew(&mut self, site: usize, instance: usize, agenda: &mut Agenda<Event>) {
        let one = &mut self.farms[site].instances[instance];
        (one.announced, one.number) = (Nanos::MAX, one.number.wrapping_add(1));
        self.announces(site, instance, agenda);
    }

    /// A part is done.
    fn done(&mut self, site: usize, instance: usize, part: Part, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let message = self.messages.get(part.message);
        message.left -= 1;
        let Message { left, answered, arrived, base, .. } = *message;
        let farm = &mut self.farms[site];
        farm.balance.ends(instance);
        farm.inside.set(now, farm.inside.value() - u64::from(part.requests));
        farm.spent += u128::from(now - arrived) * u128::from(part.requests);
        if self.tool {
            let bytes = self.world.bases[base as usize].asks.response_bytes as f64;
            self.seen.sites[site].bytes += bytes * f64::from(part.requests);
            if !answered {
                self.tool_answers(part.message, agenda);
            } else if left == 0 {
                self.messages.take(part.message);
            }
        } else if left == 0 {
            self.served(part.message, agenda);
        }
        self.dequeues(site, agenda);
    }

    /// What waits goes to an instance, if one is free.
    pub fn dequeues(&mut self, site: usize, agenda: &mut Agenda<Event>) {
        while !self.farms[site].waiting.is_empty() {
            let Some(instance) = self.farms[site].balance.choose() else { return };
            let Some(part) = self.farms[site].waiting.pop_front() else { return };
            self.serves(site, instance, part, agenda);
        }
    }

    /// A message is served, or lost: its answer goes back.
    pub fn served(&mut self, id: u32, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let message = *self.messages.get(id);
        let (base, site) = (message.base as usize, message.site as usize);
        self.farms[site].headed -= u64::from(message.requests);
        if !message.lost {
            let took_ns = (now - message.arrived) as f64;
            self.brokers.note(site, took_ns, now);
            if self.counts(message.sent) {
                let weight = u64::from(message.requests);
                self.seen.sites[site].processing.add_many(took_ns, weight);
            }
        }
        if message.page != NONE {
            self.page_goes_on(id, agenda);
            return;
        }
        self.messages.take(id);
        let (from, way) = (&self.world.bases[base], &self.world.bases[base].ways[site]);
        let Some(way) = way.as_ref().filter(|_| !message.lost) else {
            self.loses(base, message.sent, message.requests, agenda);
            return;
        };
        let bytes = from.down_bytes();
        let back = self.network.send(from, way, Direction::Down, now, (message.requests, bytes));
        if self.counts(message.sent) {
            let both = from.up_bytes() + bytes;
            self.seen.sites[site].bytes += both * f64::from(message.requests);
        }
        let response_ns = (now - message.sent) as f64 + back;
        self.answers(base, site, message.sent, response_ns, message.requests, agenda);
    }

    /// CloudAnalyst: the first part that is done answers for the whole message.
    fn tool_answers(&mut self, id: u32, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let message = self.messages.get(id);
        message.answered = true;
        message.left += 1;
        let message = *message;
        let (base, site) = (message.base as usize, message.site as usize);
        // The moment of arrival is kept in whole milliseconds.
        let took_ns = (now - message.arrived / 1_000_000 * 1_000_000) as f64;
        self.seen.sites[site].processing.add(took_ns);
        self.brokers.note(site, took_ns, now);
        self.farms[site].headed -= u64::from(message.requests);
        let (from, way) = (&self.world.bases[base], &self.world.bases[base].ways[site]);
        let Some(way) = way else { return };
        let bytes = from.asks.response_bytes as f64;
        let back = self.network.send(from, way, Direction::Down, now, (message.requests, bytes));
        agenda.after(back.round() as Nanos, Event::Back(id));
    }

    /// CloudAnalyst: an answer is back, and taken off the traffic twice.
    fn back(&mut self, id: u32, agenda: &mut Agenda<Event>) {
        let message = self.messages.get(id);
        message.left -= 1;
        let message = *message;
        if message.left == 0 {
            self.messages.take(id);
        }
        let (base, site) = (message.base as usize, message.site as usize);
        if let Some(way) = &self.world.bases[base].ways[site] {
            self.network.lands(way, 2 * message.requests);
        }
        let response_ns = (agenda.now() - message.sent) as f64;
        self.answers(base, site, message.sent, response_ns, message.requests, agenda);
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
            Event::Arrives(id) => self.arrives(id, agenda),
            Event::Ends { site, instance, number } => {
                let (site, instance) = (site as usize, instance as usize);
                let one = &mut self.farms[site].instances[instance];
                if one.number == number {
                    one.announced = Nanos::MAX;
                    self.takes(site, instance, agenda);
                    self.announces(site, instance, agenda);
                }
            }
            Event::Back(id) => self.back(id, agenda),
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
        self.seen.in_flight = self.seen.in_flight.max(self.messages.len());
        Stop::No
    }
}
