//! Page loads: several exchanges for one request of a user.
use super::model::{GeoEvent, GeoEvents, GeoSimulation, Message};
use super::page::{Exchange, Exchanges};
use crate::Nanos;

/// A page that is being loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageLoad {
    /// Factor of its latencies.
    latency_factor: f64,
    /// Number of chains that have not ended.
    chains: u16,
    /// End of the last of those that have.
    last_end: Nanos,
    is_lost: bool,
}

/// The document, before the chains.
const DOCUMENT: u16 = u16::MAX;

fn find_exchange(page: &Exchanges, chain: u16, step: u16) -> Option<&Exchange> {
    if chain == DOCUMENT {
        return (step == 0).then_some(&page.document);
    }
    page.chains.get(chain as usize)?.get(step as usize)
}

impl GeoSimulation<'_> {
    /// Starts a page load with its document.
    pub(super) fn start_page(&mut self, message: Message, events: &mut GeoEvents) {
        let latency_factor = self.network.latency_factor();
        let now = events.now();
        let load = PageLoad { latency_factor, chains: 1, last_end: now, is_lost: false };
        let page = self.pages.insert(load);
        let first = Message { page, chain: DOCUMENT, step: 0, ..message };
        self.request_exchange(first, now, events);
    }

    fn exchanges(&self, message: &Message) -> Option<&Exchanges> {
        let path = self.topology.bases[message.base as usize].paths[message.site as usize].as_ref();
        path.and_then(|path| path.page.as_ref())
    }

    /// Sends the requests of an exchange at that time, once for each user of the group.
    fn request_exchange(&mut self, message: Message, time: Nanos, events: &mut GeoEvents) {
        let Some(page) = self.exchanges(&message) else { return };
        let Some(exchange) = find_exchange(page, message.chain, message.step) else { return };
        let (up_ns, requests) = (exchange.up_ns, exchange.requests * self.scenario.grouping.users);
        let factor = self.pages.get(message.page).latency_factor;
        let arrived = time + (up_ns * factor).round() as Nanos;
        self.pools[message.site as usize].assigned += u64::from(requests);
        let id = self.messages.insert(Message { requests, arrived, ..message });
        self.in_flight += 1;
        events.schedule_at(arrived, GeoEvent::PageMessageArrival(id));
    }

    /// Continues after an exchange was served or lost: with the next of its chain, with the chains after
    /// the document, or with the end of the page.
    pub(super) fn continue_page(&mut self, id: u32, events: &mut GeoEvents) {
        let message = self.messages.remove(id);
        let Some(page) = self.exchanges(&message) else { return };
        let exchange = find_exchange(page, message.chain, message.step);
        let down_ns = exchange.map_or(0.0, |exchange| exchange.down_ns);
        let has_next = find_exchange(page, message.chain, message.step + 1).is_some();
        let chains = if message.chain == DOCUMENT { page.chains.len() as u16 } else { 0 };
        let load = self.pages.get(message.page);
        load.is_lost |= message.is_lost;
        let end = events.now() + (down_ns * load.latency_factor).round() as Nanos;
        if has_next && !load.is_lost {
            let step = message.step + 1;
            let next = Message { step, is_lost: false, is_answered: false, ..message };
            self.request_exchange(next, end, events);
            return;
        }
        load.last_end = load.last_end.max(end);
        load.chains -= 1;
        if !load.is_lost {
            load.chains += chains;
            for chain in 0..chains {
                self.request_exchange(Message { chain, step: 0, ..message }, end, events);
            }
        }
        self.finish_page(&message, events);
    }

    fn finish_page(&mut self, message: &Message, events: &mut GeoEvents) {
        if self.pages.get(message.page).chains > 0 {
            return;
        }
        let load = self.pages.remove(message.page);
        let users = self.scenario.grouping.users;
        let (base, site) = (message.base as usize, message.site as usize);
        if load.is_lost {
            self.lose(base, message.sent, users, events);
            return;
        }
        if self.is_measured(message.sent) {
            let from = &self.topology.bases[base];
            let bytes = from.up_bytes() + from.down_bytes();
            self.outcome.sites[site].bytes += bytes * f64::from(users);
        }
        let response_ns = (load.last_end - message.sent) as f64;
        self.answer(base, site, message.sent, response_ns, users, events);
    }
}
