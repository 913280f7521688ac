//! Messages from the users to a site, and responses to the users.
use super::broker::Availability;
use super::model::{GeoEvent, GeoEvents, GeoSimulation, InFlightMessage};
use super::network::MS;
use super::outcome::Response;
use super::profile::{DAY, HOUR};
use super::transfer::Direction;
use crate::Nanos;

impl GeoSimulation<'_> {
    /// Sends a message of so many requests now.
    pub(super) fn send_message(&mut self, number: usize, requests: u32, events: &mut GeoEvents) {
        let (now, base) = (events.now(), &self.topology.bases[number]);
        self.sources[number].waiting += 1;
        if self.answer_from_cache(number, requests, events) {
            return;
        }
        let failures = self.faults.known_failures(number);
        let present = Availability { pools: &self.pools, failures };
        let chosen = self.broker.choose(base, &present, &mut self.network, now);
        let chosen = chosen.filter(|site| !self.faults.is_down(number, *site));
        let path = chosen.and_then(|site| Some((site, base.paths[site].as_ref()?)));
        let Some((site, path)) = path else {
            self.lose(number, now, requests, events);
            return;
        };
        let (base_number, site_number) = (number as u16, site as u16);
        let message = InFlightMessage { sent: now, requests, base: base_number, site: site_number };
        if path.page.is_some() {
            self.start_page(message.at_site(now), events);
            return;
        }
        let bytes = base.config.request_bytes as f64;
        let duration = self.network.send(base, path, Direction::Up, now, (requests, bytes));
        self.pools[site].assigned += u64::from(requests);
        self.in_flight += 1;
        events.schedule_at(now + (duration + 0.5) as Nanos, GeoEvent::MessageArrival(message));
    }

    /// Answers a message from the cache, if there is one that holds the answer; returns whether it did.
    fn answer_from_cache(&mut self, number: usize, requests: u32, events: &mut GeoEvents) -> bool {
        let base = &self.topology.bases[number];
        let Some((number_of_cache, delay)) = &base.cache else { return false };
        let cache = &self.scenario.caches.0[*number_of_cache].1;
        if !self.network.draw_bool(cache.hit_ratio) {
            return false;
        }
        let now = events.now();
        let service_ns = cache.service_ms * MS;
        let round_trip_ns = self.network.round_trip(delay);
        let response_ns = if let Some(page) = &base.config.page {
            page.exchanges(round_trip_ns, base.access_bytes_per_s()).load_ns(service_ns)
        } else {
            let access_ns = base.access_ns_per_byte * (base.up_bytes() + base.down_bytes());
            round_trip_ns + service_ns + access_ns
        };
        let site = self.pools.len() + number_of_cache;
        if self.is_measured(now) {
            self.outcome.sites[site].bytes += f64::from(requests) * base.down_bytes();
        }
        self.answer(number, site, now, response_ns, requests, events);
        true
    }

    /// Users have their response after `response_ns`.
    pub(super) fn answer(
        &mut self,
        base: usize,
        site: usize,
        sent: Nanos,
        response_ns: f64,
        requests: u32,
        events: &mut GeoEvents,
    ) {
        if self.is_measured(sent) {
            let hour = ((sent + self.day_offset) % DAY / HOUR) as usize;
            let weight = if self.compat { 1 } else { requests };
            let response = Response { base, site, hour, response_ns, requests, weight };
            self.outcome.add_response(&response);
        }
        self.release_users(base, sent + (response_ns + 0.5) as Nanos, events);
    }

    /// A group of users has its response at that time, or knows that there is none.
    fn release_users(&mut self, base: usize, time: Nanos, events: &mut GeoEvents) {
        if self.topology.bases[base].config.think_time_s.is_some() {
            events.schedule_at(time.max(events.now()), GeoEvent::Thinking(base as u16));
        }
    }

    /// Requests get no response.
    pub(super) fn lose(&mut self, base: usize, sent: Nanos, requests: u32, events: &mut GeoEvents) {
        if self.is_measured(sent) {
            self.outcome.add_unserved(base, requests);
        }
        self.release_users(base, events.now(), events);
    }
}
