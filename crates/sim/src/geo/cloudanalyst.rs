//! The parts of CloudAnalyst's model that have no counterpart: bursts, and responses that end with the
//! first batch.
use super::model::{GeoEvent, GeoEvents, GeoSimulation, InFlightMessage, Message};
use super::transfer::Direction;
use crate::Nanos;

impl GeoSimulation<'_> {
    /// Sends the requests of all users of a base at once.
    pub(super) fn send_burst(&mut self, base: usize, events: &mut GeoEvents) {
        let now = events.now();
        self.last_burst = self.last_burst.max(now);
        let burst = self.sources[base].burst(&self.topology.bases[base], now);
        let Some((users, next)) = burst else { return };
        let group = u64::from(self.scenario.grouping.users);
        for _ in 0..users / group {
            self.send_message(base, group as u32, events);
        }
        if users % group > 0 {
            self.send_message(base, (users % group) as u32, events);
        }
        events.schedule_at(next, GeoEvent::Request(base as u16));
    }

    /// Answers a whole message when its first batch is complete.
    pub(super) fn answer_first_batch(&mut self, id: u32, events: &mut GeoEvents) {
        let now = events.now();
        let message = self.messages.get(id);
        message.is_answered = true;
        let message = *message;
        let (base, site) = (message.base as usize, message.site as usize);
        // The tool stores the arrival in whole milliseconds.
        let took_ns = (now - message.arrived / 1_000_000 * 1_000_000) as f64;
        self.outcome.sites[site].processing.add(took_ns);
        self.broker.record(site, took_ns, now);
        self.pools[site].assigned -= u64::from(message.requests);
        let (from, path) = (&self.topology.bases[base], &self.topology.bases[base].paths[site]);
        let Some(path) = path else { return };
        let bytes = from.config.response_bytes as f64;
        let duration =
            self.network.send(from, path, Direction::Down, now, (message.requests, bytes));
        let Message { sent, requests, base, site, .. } = message;
        let response = InFlightMessage { sent, requests, base, site };
        events.schedule_after((duration + 0.5) as Nanos, GeoEvent::ResponseArrival(response));
    }

    /// Receives a response, and subtracts it from the traffic twice.
    pub(super) fn receive_response(&mut self, message: &InFlightMessage, events: &mut GeoEvents) {
        self.in_flight -= 1;
        let (base, site) = (message.base as usize, message.site as usize);
        if let Some(path) = &self.topology.bases[base].paths[site] {
            self.network.subtract_traffic(path, 2 * message.requests);
        }
        let response_ns = (events.now() - message.sent) as f64;
        self.answer(base, site, message.sent, response_ns, message.requests, events);
    }
}
