//! A message at its site: its parts are given to instances, served, and it is answered.
use super::model::{Event, Message, OnItsWay, Running, NONE};
use super::server::Part;
use super::travel::Direction;
use crate::random::Lengths;
use crate::{Agenda, Nanos};

impl OnItsWay {
    /// The message when it is there, alone and not begun.
    pub(super) fn at_site(self, arrived: Nanos) -> Message {
        let Self { sent, requests, base, site } = self;
        let (left, page, chain, step, answered, lost) = (0, NONE, 0, 0, false, false);
        Message { sent, arrived, base, site, requests, left, page, chain, step, answered, lost }
    }
}

impl Message {
    /// What has to be known of it on its way back.
    pub(super) fn on_its_way(&self) -> OnItsWay {
        let Self { sent, requests, base, site, .. } = *self;
        OnItsWay { sent, requests, base, site }
    }
}

impl Running<'_> {
    /// A message comes to its site.
    #[inline]
    pub(super) fn comes(&mut self, message: &OnItsWay, agenda: &mut Agenda<Event>) {
        let id = self.messages.put(message.at_site(agenda.now()));
        self.arrives(id, agenda);
    }

    /// A message is at its site: it is split into parts, each for an instance.
    pub(super) fn arrives(&mut self, id: u32, agenda: &mut Agenda<Event>) {
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
        let alone = message.requests <= most;
        self.messages.get(id).left = if alone { 1 } else { message.requests.div_ceil(most) };
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
        if !self.farms[site].instances[instance].server.is_empty() {
            self.takes(site, instance, agenda);
        }
        let of_mean = match self.spread {
            Lengths::Constant(_) => f64::from(part.requests),
            spread => (0..part.requests).map(|_| spread.draw(&mut self.service)).sum(),
        };
        let farm = &mut self.farms[site];
        let one = &mut farm.instances[instance];
        let length_ns = of_mean * self.scenario.instructions / one.speed * super::network::MS;
        one.server.comes(now, length_ns, part);
        farm.begins_at(instance, now);
        farm.balance.begins(instance, now, (length_ns + 0.5) as Nanos);
        self.announces(site, instance, agenda);
    }

    /// Announces an instance's next end, unless an earlier look is announced already.
    #[inline]
    pub(super) fn announces(&mut self, site: usize, instance: usize, agenda: &mut Agenda<Event>) {
        let one = &mut self.farms[site].instances[instance];
        let Some(at) = one.server.next_end().filter(|at| *at < one.announced) else { return };
        one.announced = at;
        let (site, instance) = (site as u16, instance as u32);
        agenda.at(at, Event::Ends { site, instance });
    }

    /// Takes what an instance has done by now.
    pub(super) fn takes(&mut self, site: usize, instance: usize, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        while let Some(part) = self.farms[site].instances[instance].finished(now, self.tool) {
            self.done(site, instance, part, agenda);
        }
        if let Some(faster) = self.farms[site].ends_at(instance, now) {
            faster.into_iter().for_each(|one| self.announces_anew(site, one, agenda));
        }
    }

    /// Announces the next end of an instance whose speed has changed.
    pub(super) fn announces_anew(
        &mut self,
        site: usize,
        instance: usize,
        agenda: &mut Agenda<Event>,
    ) {
        self.farms[site].instances[instance].announced = Nanos::MAX;
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
            }
            if left == 0 {
                self.messages.take(part.message);
            }
        } else if left == 0 {
            self.served(part.message, agenda);
        }
        if !self.farms[site].waiting.is_empty() {
            self.dequeues(site, agenda);
        }
    }

    /// What waits goes to an instance, if one is free.
    pub(super) fn dequeues(&mut self, site: usize, agenda: &mut Agenda<Event>) {
        while !self.farms[site].waiting.is_empty() {
            let Some(instance) = self.farms[site].balance.choose() else { return };
            let Some(part) = self.farms[site].waiting.pop_front() else { return };
            self.serves(site, instance, part, agenda);
        }
    }

    /// A message is served, or lost: its answer goes back.
    pub(super) fn served(&mut self, id: u32, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let message = *self.messages.get(id);
        self.in_flight -= 1;
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
}
