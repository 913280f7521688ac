//! Requests that fail, and those whose time is over.
use super::EngineWorker;
use crate::error::Result;
use crate::http::requests::connection::ConnectionState;
use crate::http::requests::failures::{Failure, TIMEOUT, WRONG_LENGTH};
use crate::http::requests::{limits, Protocol};
use std::mem::take;

/// A user whose connection failed waits at least this long before the next attempt.
const RETRY_NS: u64 = 10_000_000;
/// Requests that took too long are looked for a hundred times per time limit, within these bounds.
const SWEEP_NS: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000;

impl<P: Protocol> EngineWorker<'_, P> {
    /// Closes a connection that failed, and its requests with it.
    #[cold]
    pub(super) fn fail(&mut self, slot: usize, failure: Failure, now_ns: u64) -> Result<()> {
        if let Some(error) = limits::met_by(failure) {
            return Err(error);
        }
        let connection = &mut self.connections[slot];
        connection.close();
        let mut requests = take(&mut connection.in_flight);
        self.in_flight -= requests.len();
        for request in &mut requests {
            if request.sent_ns == 0 {
                request.class = self.protocol.draw_class();
            }
            self.recorder.failed(request, failure, now_ns);
        }
        if failure == WRONG_LENGTH && requests.is_empty() {
            self.recorder.count_unrequested();
        }
        self.follow(slot, requests.len(), now_ns, RETRY_NS);
        Ok(())
    }

    /// Ends the requests whose time is over; with their connections, unless the protocol can give
    /// up one request of several.
    pub(super) fn sweep(&mut self, now_ns: u64) {
        let timeout_ns = self.settings.timeout_ns;
        self.next_sweep_ns = now_ns + (timeout_ns / 100).clamp(*SWEEP_NS.start(), *SWEEP_NS.end());
        for slot in 0..self.connections.len() {
            while self.is_overdue(slot, now_ns) {
                // A time limit is no limit of this machine, so this cannot fail.
                let _ = self.give_up_oldest(slot, now_ns);
            }
        }
    }

    fn is_overdue(&self, slot: usize, now_ns: u64) -> bool {
        let begun_ns = self.connections[slot].in_flight.front().map(|request| request.begun_ns);
        begun_ns.is_some_and(|begun_ns| now_ns.saturating_sub(begun_ns) >= self.settings.timeout_ns)
    }

    fn give_up_oldest(&mut self, slot: usize, now_ns: u64) -> Result<()> {
        let connection = &mut self.connections[slot];
        let shares = connection.state == ConnectionState::Open && connection.written > 1;
        if !shares || !self.protocol.cancel_oldest(&mut connection.parser) {
            return self.fail(slot, TIMEOUT, now_ns);
        }
        if let Some(request) = connection.take(0) {
            self.recorder.failed(&request, TIMEOUT, now_ns);
            self.in_flight -= 1;
        }
        self.follow(slot, 1, now_ns, RETRY_NS);
        self.flush(slot, now_ns)
    }
}
