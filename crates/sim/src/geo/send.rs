//! A message on its way to a site, and an answer on its way to the users.
use super::broker::Present;
use super::model::{Event, OnItsWay, Running};
use super::seen::Answer;
use super::travel::Direction;
use super::users::{DAY, HOUR};
use crate::{Agenda, Nanos, SECOND};

impl Running<'_> {
    /// A message of so many requests is sent now.
    pub(super) fn sends(&mut self, number: usize, requests: u32, agenda: &mut Agenda<Event>) {
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
        let message = OnItsWay { sent: now, requests, base: number as u16, site: site as u16 };
        if way.page.is_some() {
            self.begins_page(message.at_site(now), agenda);
            return;
        }
        let bytes = base.asks.request_bytes as f64;
        let takes = self.network.send(base, way, Direction::Up, now, (requests, bytes));
        self.farms[site].headed += u64::from(requests);
        self.in_flight += 1;
        agenda.at(now + (takes + 0.5) as Nanos, Event::Comes(message));
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
    pub(super) fn answers(
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
        self.frees(base, sent + (response_ns + 0.5) as Nanos, agenda);
    }

    /// A group of users has its answer by then, or knows that there is none.
    fn frees(&mut self, base: usize, at: Nanos, agenda: &mut Agenda<Event>) {
        if self.world.bases[base].asks.think_time_s.is_some() {
            agenda.at(at.max(agenda.now()), Event::Thinks(base as u16));
        }
    }

    /// Requests that get no answer.
    pub(super) fn loses(
        &mut self,
        base: usize,
        sent: Nanos,
        requests: u32,
        agenda: &mut Agenda<Event>,
    ) {
        if self.counts(sent) {
            self.seen.loses(base, requests);
        }
        self.frees(base, agenda.now(), agenda);
    }
}
