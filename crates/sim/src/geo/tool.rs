//! What only CloudAnalyst does: bursts, and answers by the first part that is done.
use super::model::{Event, OnItsWay, Running};
use super::travel::Direction;
use crate::{Agenda, Nanos};

impl Running<'_> {
    /// CloudAnalyst: all users of a base at once.
    pub(super) fn burst(&mut self, base: usize, agenda: &mut Agenda<Event>) {
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

    /// CloudAnalyst: the first part that is done answers for the whole message.
    pub(super) fn tool_answers(&mut self, id: u32, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let message = self.messages.get(id);
        message.answered = true;
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
        agenda.after((back + 0.5) as Nanos, Event::Back(message.on_its_way()));
    }

    /// CloudAnalyst: an answer is back, and taken off the traffic twice.
    pub(super) fn back(&mut self, message: &OnItsWay, agenda: &mut Agenda<Event>) {
        self.in_flight -= 1;
        let (base, site) = (message.base as usize, message.site as usize);
        if let Some(way) = &self.world.bases[base].ways[site] {
            self.network.lands(way, 2 * message.requests);
        }
        let response_ns = (agenda.now() - message.sent) as f64;
        self.answers(base, site, message.sent, response_ns, message.requests, agenda);
    }
}
