//! Messages at a site: their batches are assigned to instances and served, and they are answered.
use super::model::{GeoEvent, GeoEvents, GeoSimulation, InFlightMessage, Message, NO_PAGE};
use super::network::MS;
use super::server::RequestBatch;
use super::transfer::Direction;
use crate::random::Distribution;
use crate::Nanos;

impl InFlightMessage {
    /// Returns the message at its site, before its service and without a page.
    pub(super) fn at_site(self, arrived: Nanos) -> Message {
        Message {
            sent: self.sent,
            arrived,
            base: self.base,
            site: self.site,
            requests: self.requests,
            page: NO_PAGE,
            ..Message::default()
        }
    }
}

impl GeoSimulation<'_> {
    /// Splits a message that arrives at its site into batches, and assigns them to instances.
    pub(super) fn process_arrival(&mut self, id: u32, events: &mut GeoEvents) {
        let now = events.now();
        let message = *self.messages.get(id);
        let site = message.site as usize;
        if self.compat {
            let base = &self.topology.bases[message.base as usize];
            if let Some(path) = &base.paths[site] {
                self.network.subtract_traffic(path, message.requests);
            }
            self.outcome.sites[site].bytes += base.config.request_bytes as f64;
        }
        let pool = &mut self.pools[site];
        if pool.failures > 0 {
            self.messages.get(id).is_lost = true;
            self.complete_message(id, events);
            return;
        }
        pool.in_system.set(now, pool.in_system.value() + u64::from(message.requests));
        let max = self.scenario.grouping.requests;
        let is_single = message.requests <= max;
        self.messages.get(id).batches_left =
            if is_single { 1 } else { message.requests.div_ceil(max) };
        let mut rest = message.requests;
        while rest > 0 {
            let batch = RequestBatch { message: id, requests: rest.min(max) };
            rest -= batch.requests;
            match self.pools[site].balancer.choose() {
                Some(instance) => self.serve(site, instance, batch, events),
                None => self.pools[site].waiting.push_back(batch),
            }
        }
    }

    fn serve(&mut self, site: usize, number: usize, batch: RequestBatch, events: &mut GeoEvents) {
        let now = events.now();
        if !self.pools[site].instances[number].server.is_empty() {
            self.collect_completed(site, number, events);
        }
        let relative = match self.relative_instructions {
            Distribution::Constant(_) => f64::from(batch.requests),
            distribution => {
                let requests = 0..batch.requests;
                requests.map(|_| distribution.draw(&mut self.service_stream)).sum()
            }
        };
        let pool = &mut self.pools[site];
        let instance = &mut pool.instances[number];
        let service_ns = relative * self.scenario.instructions / instance.speed * MS;
        instance.server.arrive(now, service_ns, batch);
        pool.mark_busy(number, now);
        pool.balancer.assign(number, now, (service_ns + 0.5) as Nanos);
        self.schedule_completion(site, number, events);
    }

    /// Schedules an instance's next completion, unless an earlier event is scheduled already.
    #[inline]
    pub(super) fn schedule_completion(
        &mut self,
        site: usize,
        number: usize,
        events: &mut GeoEvents,
    ) {
        let instance = &mut self.pools[site].instances[number];
        let next = instance.server.next_completion();
        let Some(time) = next.filter(|time| *time < instance.scheduled) else { return };
        instance.scheduled = time;
        let (site, instance) = (site as u16, number as u32);
        events.schedule_at(time, GeoEvent::Completion { site, instance });
    }

    /// Takes what an instance has completed by now.
    pub(super) fn collect_completed(&mut self, site: usize, number: usize, events: &mut GeoEvents) {
        let now = events.now();
        while let Some(batch) = self.pools[site].instances[number].pop_completed(now, self.compat) {
            self.complete_batch(site, number, batch, events);
        }
        if let Some(changed) = self.pools[site].mark_idle(number, now) {
            self.reschedule(site, changed, events);
        }
    }

    /// Schedules the next completions of instances whose speed has changed.
    pub(super) fn reschedule(&mut self, site: usize, changed: Vec<usize>, events: &mut GeoEvents) {
        for number in changed {
            self.pools[site].instances[number].scheduled = Nanos::MAX;
            self.schedule_completion(site, number, events);
        }
    }

    /// Counts a batch that leaves its site; returns its message.
    pub(super) fn leave_system(&mut self, batch: RequestBatch, now: Nanos) -> Message {
        let message = self.messages.get(batch.message);
        message.batches_left -= 1;
        let requests = batch.requests;
        let pool = &mut self.pools[message.site as usize];
        pool.in_system.set(now, pool.in_system.value() - u64::from(requests));
        pool.time_in_system += u128::from(now - message.arrived) * u128::from(requests);
        *message
    }

    fn complete_batch(
        &mut self,
        site: usize,
        number: usize,
        batch: RequestBatch,
        events: &mut GeoEvents,
    ) {
        self.pools[site].balancer.complete(number);
        let Message { batches_left, is_answered, base, .. } =
            self.leave_system(batch, events.now());
        if self.compat {
            let bytes = self.topology.bases[base as usize].config.response_bytes as f64;
            self.outcome.sites[site].bytes += bytes * f64::from(batch.requests);
            if !is_answered {
                self.answer_first_batch(batch.message, events);
            }
            if batches_left == 0 {
                self.messages.remove(batch.message);
            }
        } else if batches_left == 0 {
            self.complete_message(batch.message, events);
        }
        if !self.pools[site].waiting.is_empty() {
            self.serve_waiting(site, events);
        }
    }

    /// Assigns waiting batches to instances, as long as one is idle.
    pub(super) fn serve_waiting(&mut self, site: usize, events: &mut GeoEvents) {
        while !self.pools[site].waiting.is_empty() {
            let Some(number) = self.pools[site].balancer.choose() else { return };
            let Some(batch) = self.pools[site].waiting.pop_front() else { return };
            self.serve(site, number, batch, events);
        }
    }

    /// Sends the response to a message that was served, or lost.
    pub(super) fn complete_message(&mut self, id: u32, events: &mut GeoEvents) {
        let now = events.now();
        let message = *self.messages.get(id);
        self.in_flight -= 1;
        let (base, site) = (message.base as usize, message.site as usize);
        self.pools[site].assigned -= u64::from(message.requests);
        if !message.is_lost {
            let took_ns = (now - message.arrived) as f64;
            self.broker.record(site, took_ns, now);
            if self.is_measured(message.sent) {
                let weight = u64::from(message.requests);
                self.outcome.sites[site].processing.add_many(took_ns, weight);
            }
        }
        if message.page != NO_PAGE {
            self.continue_page(id, events);
            return;
        }
        self.messages.remove(id);
        let (from, path) = (&self.topology.bases[base], &self.topology.bases[base].paths[site]);
        let Some(path) = path.as_ref().filter(|_| !message.is_lost) else {
            self.lose(base, message.sent, message.requests, events);
            return;
        };
        let bytes = from.down_bytes();
        let duration =
            self.network.send(from, path, Direction::Down, now, (message.requests, bytes));
        if self.is_measured(message.sent) {
            let transferred = from.up_bytes() + bytes;
            self.outcome.sites[site].bytes += transferred * f64::from(message.requests);
        }
        let response_ns = (now - message.sent) as f64 + duration;
        self.answer(base, site, message.sent, response_ns, message.requests, events);
    }
}
