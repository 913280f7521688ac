//! When the next request is sent: by the schedule of an open loop, or after a response and the time that
//! a user thinks.
use super::EngineWorker;
use crate::error::Result;
use crate::http::requests::{Protocol, Think};
use nephoscope_linux::clock;
use nephoscope_wire::random::Random;
use std::cmp::Reverse;

/// Requests that are due together are sent so many at a time; then responses are read.
const BURST: usize = 64;

impl<P: Protocol> EngineWorker<'_, P> {
    pub(super) fn advance_schedule(&mut self) {
        let next_ns = self.schedule.as_mut().and_then(Iterator::next);
        let start_ns = self.recorder.window.start_ns;
        self.next_due_ns = next_ns.map_or(u64::MAX, |ns| start_ns.saturating_add(ns));
    }

    /// Sends the requests that are due.
    pub(super) fn send_due(&mut self, now_ns: u64) -> Result<()> {
        for _ in 0..BURST {
            if !self.send_scheduled(now_ns)? && !self.send_after_thinking(now_ns)? {
                break;
            }
        }
        Ok(())
    }

    /// Sends the next request of the schedule; false when none is due or no connection is free.
    fn send_scheduled(&mut self, now_ns: u64) -> Result<bool> {
        let due_ns = self.next_due_ns;
        if due_ns > now_ns || due_ns >= self.recorder.window.end_ns {
            return Ok(false);
        }
        let Some(slot) = self.free.pop_front().map(|slot| slot as usize) else { return Ok(false) };
        let connection = &mut self.connections[slot];
        connection.queued = false;
        let ready_ns = due_ns.max(connection.free_since_ns);
        self.advance_schedule();
        let now_ns = clock::monotonic_ns();
        self.recorder.dispatched(ready_ns, now_ns);
        self.begin(slot, due_ns, now_ns);
        self.flush(slot, now_ns)?;
        self.offer(slot, ready_ns);
        Ok(true)
    }

    /// Sends what the next user of a closed loop has thought about; false when none is ready.
    fn send_after_thinking(&mut self, now_ns: u64) -> Result<bool> {
        let Some(Reverse((due_ns, slot))) = self.timers.peek().copied() else { return Ok(false) };
        if due_ns > now_ns || due_ns >= self.recorder.window.end_ns {
            return Ok(false);
        }
        let now_ns = clock::monotonic_ns();
        // All that this connection is to send now goes out together.
        while self.timers.peek() == Some(&Reverse((due_ns, slot))) {
            self.timers.pop();
            if self.think.is_some_and(|think| think.mean_ns > 0) {
                self.recorder.dispatched(due_ns, now_ns);
            }
            self.begin(slot as usize, due_ns, now_ns);
        }
        self.flush(slot as usize, now_ns)?;
        Ok(true)
    }

    /// Whether a request of the schedule was due and has not been sent.
    pub(super) fn has_backlog(&self) -> bool {
        self.next_due_ns < self.recorder.window.end_ns
    }

    /// After the end: what was due and found no free connection.
    pub(super) fn give_up_unsent(&mut self, now_ns: u64) {
        let end_ns = self.recorder.window.end_ns;
        while self.next_due_ns < end_ns && self.free.is_empty() {
            let class = self.protocol.draw_class();
            self.recorder.unsent(self.next_due_ns, class, now_ns);
            self.advance_schedule();
        }
    }

    /// Decides what follows `count` requests of a connection that have ended.
    #[inline]
    pub(super) fn follow(&mut self, slot: usize, count: usize, now_ns: u64, wait_ns: u64) {
        let Some(think) = self.think else { return self.offer(slot, now_ns) };
        for _ in 0..count {
            let due_ns = now_ns + think.draw(&mut self.random).max(wait_ns);
            if due_ns > now_ns {
                self.timers.push(Reverse((due_ns, slot as u32)));
            } else if now_ns < self.recorder.window.end_ns {
                self.begin(slot, now_ns, now_ns);
            }
        }
    }

    /// Makes a connection of an open loop take another request if it can.
    #[inline]
    pub(super) fn offer(&mut self, slot: usize, now_ns: u64) {
        let connection = &mut self.connections[slot];
        if !connection.queued && connection.in_flight.len() < self.settings.depth {
            connection.queued = true;
            connection.free_since_ns = now_ns;
            self.free.push_back(slot as u32);
        }
    }
}

impl Think {
    fn draw(&self, random: &mut Random) -> u64 {
        if self.exponential {
            (-(1.0 - random.uniform()).ln() * self.mean_ns as f64) as u64
        } else {
            self.mean_ns
        }
    }
}
