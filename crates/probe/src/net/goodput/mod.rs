//! `net.throughput` and the loads of the network: what the near and the far side share.
pub mod client;
pub mod datagrams;
pub mod paced_sender;
pub mod samples;
pub mod server;
pub mod tcp_streams;

use crate::clock;
use paced_sender::SendingPace;
use serde::{Deserialize, Serialize};

/// What is to be carried; the near side tells it to the far side.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Task {
    /// TCP streams, else datagrams.
    pub tcp: bool,
    pub up: bool,
    pub down: bool,
    /// TCP connections each way.
    pub streams: usize,
    /// Bytes of one write and at most of one read.
    pub send_bytes: usize,
    /// What is received before this time after the first byte is not counted.
    pub warmup_ns: u64,
    /// How long is counted; 0 until told to stop.
    pub duration_ns: u64,
    pub interval_ns: u64,
    pub packet_bytes: usize,
    /// Datagrams a second, each way; of a load that sends as many as it can 0.
    pub per_s: f64,
    /// How long the last datagrams are awaited.
    pub wait_ns: u64,
    /// How hard a load presses; `None` for a measurement.
    pub press: Option<SendingPace>,
}

impl Task {
    /// Datagrams each way; `None` where the time says when it is over, or a word.
    pub fn packets(&self) -> Option<u64> {
        if self.press.is_some() {
            return None;
        }
        let packets = (self.duration_ns as f64 * self.per_s / 1e9).round() as u64;
        (self.duration_ns > 0).then_some(packets.max(2))
    }
}

/// Direction of a TCP stream: from the near to the far side, or back.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamRole {
    Up,
    Down,
}

/// The rate of each interval, from a sum that only grows.
#[derive(Debug)]
pub struct Intervals {
    length_ns: u64,
    start_ns: u64,
    last_ns: u64,
    last_sum: u64,
    /// (end, nanoseconds since the start; a second's worth).
    pub rates: Vec<(u64, f64)>,
}

impl Intervals {
    pub fn new(length_ns: u64) -> Self {
        let now_ns = clock::monotonic_ns();
        Self { length_ns, start_ns: now_ns, last_ns: now_ns, last_sum: 0, rates: Vec::new() }
    }

    /// Takes note of the sum; closes the interval when its time is over.
    pub fn note(&mut self, now_ns: u64, sum: u64) {
        let ns = now_ns.saturating_sub(self.last_ns);
        if ns >= self.length_ns {
            let rate = (sum - self.last_sum) as f64 * 1e9 / ns as f64;
            self.rates.push((now_ns - self.start_ns, rate));
            (self.last_ns, self.last_sum) = (now_ns, sum);
        }
    }

    pub fn elapsed_ns(&self) -> u64 {
        clock::monotonic_ns() - self.start_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_s_rate_is_its_growth_over_its_time() {
        let mut intervals = Intervals::new(100);
        let start = intervals.start_ns;
        intervals.note(start + 50, 10);
        assert!(intervals.rates.is_empty());
        intervals.note(start + 100, 30);
        intervals.note(start + 300, 30);
        intervals.note(start + 400, 130);
        assert_eq!(intervals.rates, [(100, 3e8), (300, 0.0), (400, 1e9)]);
    }
}
