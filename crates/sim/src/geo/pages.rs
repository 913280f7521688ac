//! Pages: several exchanges for one request of a user.
use super::model::{Event, Message, Running};
use super::web::{Exchange, Exchanges};
use crate::{Agenda, Nanos};

/// A page that is being loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// How much longer than on average its ways take.
    factor: f64,
    /// Chains that are not at their end.
    chains: u16,
    /// When the last of those that are was.
    last: Nanos,
    /// Some of it is lost.
    lost: bool,
}

/// The document, before the chains.
const DOCUMENT: u16 = u16::MAX;

fn exchange(page: &Exchanges, chain: u16, step: u16) -> Option<&Exchange> {
    if chain == DOCUMENT {
        return (step == 0).then_some(&page.document);
    }
    page.chains.get(chain as usize)?.get(step as usize)
}

impl Running<'_> {
    /// A page load begins now with its document.
    pub(super) fn begins_page(&mut self, message: Message, agenda: &mut Agenda<Event>) {
        let factor = self.network.factor();
        let load = Load { factor, chains: 1, last: agenda.now(), lost: false };
        let page = self.pages.put(load);
        let first = Message { page, chain: DOCUMENT, step: 0, ..message };
        self.asks_exchange(first, agenda.now(), agenda);
    }

    fn page_of(&self, message: &Message) -> Option<&Exchanges> {
        let way = self.world.bases[message.base as usize].ways[message.site as usize].as_ref();
        way.and_then(|way| way.page.as_ref())
    }

    /// Users of the load, each of whom sends all its requests.
    fn users(&self) -> u32 {
        self.scenario.grouping.users
    }

    /// The exchange at a message's place is asked for at that moment.
    fn asks_exchange(&mut self, message: Message, at: Nanos, agenda: &mut Agenda<Event>) {
        let Some(page) = self.page_of(&message) else { return };
        let Some(one) = exchange(page, message.chain, message.step) else { return };
        let (up_ns, requests) = (one.up_ns, one.requests * self.users());
        let factor = self.pages.get(message.page).factor;
        let arrived = at + (up_ns * factor).round() as Nanos;
        self.farms[message.site as usize].headed += u64::from(requests);
        let id = self.messages.put(Message { requests, arrived, ..message });
        self.in_flight += 1;
        agenda.at(arrived, Event::Arrives(id));
    }

    /// An exchange is served, or lost: the next of its chain, the chains, or the end of the page.
    pub(super) fn page_goes_on(&mut self, id: u32, agenda: &mut Agenda<Event>) {
        let message = self.messages.take(id);
        let Some(page) = self.page_of(&message) else { return };
        let down_ns = exchange(page, message.chain, message.step).map_or(0.0, |one| one.down_ns);
        let more = exchange(page, message.chain, message.step + 1).is_some();
        let chains = if message.chain == DOCUMENT { page.chains.len() as u16 } else { 0 };
        let load = self.pages.get(message.page);
        load.lost |= message.lost;
        let at = agenda.now() + (down_ns * load.factor).round() as Nanos;
        if more && !load.lost {
            let next = Message { step: message.step + 1, lost: false, answered: false, ..message };
            self.asks_exchange(next, at, agenda);
            return;
        }
        load.last = load.last.max(at);
        load.chains -= 1;
        if !load.lost {
            load.chains += chains;
            for chain in 0..chains {
                self.asks_exchange(Message { chain, step: 0, ..message }, at, agenda);
            }
        }
        self.ends_page(&message, agenda);
    }

    fn ends_page(&mut self, message: &Message, agenda: &mut Agenda<Event>) {
        if self.pages.get(message.page).chains > 0 {
            return;
        }
        let load = self.pages.take(message.page);
        let (base, site, users) = (message.base as usize, message.site as usize, self.users());
        if load.lost {
            self.loses(base, message.sent, users, agenda);
            return;
        }
        if self.counts(message.sent) {
            let from = &self.world.bases[base];
            let bytes = from.up_bytes() + from.down_bytes();
            self.seen.sites[site].bytes += bytes * f64::from(users);
        }
        let response_ns = (load.last - message.sent) as f64;
        self.answers(base, site, message.sent, response_ns, users, agenda);
    }
}
