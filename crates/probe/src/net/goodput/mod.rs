//! `net.throughput` and the loads of the network: what the near and the far side share.
pub mod background_load;
pub mod blocks;
pub mod client;
pub mod datagram_receiver;
pub mod datagrams;
pub mod paced_sender;
pub mod rate_search;
pub mod samples;
pub mod server;
pub mod tcp_samples;
pub mod tcp_streams;
pub mod udp_samples;

use super::congestion_control::CongestionControl;
use super::messages::not_understood;
use super::udp::packet::HEADER_BYTES;
use super::udp::slots::{PairSelection, SendSlots};
use crate::error::Result;
use crate::load::{DURATION, INTENSITY, INTERVAL, PERIOD};
use nephoscope_linux::clock;
use nephoscope_wire::spec::Param;
use paced_sender::SendingPace;
use serde::{Deserialize, Serialize};

/// What is to be carried; the near side tells it to the far side.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct TransferTask {
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
    /// Bytes that each TCP stream carries, instead of a duration; 0 for the duration.
    pub stream_bytes: u64,
    /// Received bytes of each sample of the goodput; 0 for no such samples.
    pub block_bytes: u64,
    /// Of the receiving ends of TCP; 0 lets the kernel adapt it.
    pub receive_buffer_bytes: usize,
    /// Of the sending ends of TCP.
    pub congestion_control: CongestionControl,
    /// Sends over TCP what the page cache holds, without copying it.
    pub zero_copy: bool,
    /// Lets the kernel cut large buffers into datagrams.
    pub segmentation_offload: bool,
    /// Which task of its connection it is, from 0.
    pub number: u64,
    /// Another task follows on the same connection.
    pub more_follow: bool,
    pub interval_ns: u64,
    pub packet_bytes: usize,
    /// Datagrams a second, each way; of a load that sends as many as it can 0.
    pub per_s: f64,
    /// The slots of that rate in which datagrams leave; `None` for all.
    pub pairs: Option<PairSelection>,
    /// How long the last datagrams are awaited.
    pub wait_ns: u64,
    /// The pace of a load; `None` for a measurement. The far side knows it by its former name.
    #[serde(rename = "press")]
    pub pace: Option<SendingPace>,
}

pub const STREAMS: Param = Param::count("streams", 1, 1..=128);
pub const SEND_BYTES: Param = Param::int("send_bytes", 128 << 10, 1..=16 << 20);
pub const TRANSFER: Param = Param::int("transfer_bytes", 0, 0..=1 << 50);
pub const BLOCK: Param = Param::int("block_bytes", 0, 0..=1 << 40);
pub const RECEIVE_BUFFER: Param = Param::int("receive_buffer_bytes", 0, 0..=1 << 30);
pub const PACKET_BYTES: Param = Param::int("packet_bytes", 1400, HEADER_BYTES as i64..=65_507);
pub const WARMUP: Param = Param::int("warmup_ns", 300_000_000, 0..=600_000_000_000);
pub const WAIT: Param = Param::int("wait_ns", 1_000_000_000, 0..=60_000_000_000);
pub const PAIR_RATIO: Param = Param::float("pair_ratio", 1.0, 1e-4..=1.0);
pub const RATE_BITS_PER_S_MAX: f64 = 400e9;
/// Bytes or datagrams a second of a task; 0 is full speed.
const PER_S: Param = Param::float("per_s", 0.0, 0.0..=RATE_BITS_PER_S_MAX / 8.0);
/// A measurement has a schedule, of a thousand bits a second at least.
const MEASURED_PER_S: Param = Param::float("per_s", 1.0, 1e-3..=RATE_BITS_PER_S_MAX / 8.0);

impl TransferTask {
    /// Returns a task that another machine sent, if its numbers lie in the bounds of the parameters.
    pub fn checked(self) -> Result<Self> {
        let mut numbers = vec![
            (STREAMS, self.streams as f64),
            (SEND_BYTES, self.send_bytes as f64),
            (PACKET_BYTES, self.packet_bytes as f64),
            (WARMUP, self.warmup_ns as f64),
            (WAIT, self.wait_ns as f64),
            (DURATION, self.duration_ns as f64),
            (TRANSFER, self.stream_bytes as f64),
            (BLOCK, self.block_bytes as f64),
            (RECEIVE_BUFFER, self.receive_buffer_bytes as f64),
            (INTERVAL, self.interval_ns as f64),
            (PER_S, self.per_s),
        ];
        if let Some(pace) = &self.pace {
            numbers.push((INTENSITY, pace.intensity_ratio));
            numbers.push((PERIOD, pace.period_ns as f64));
            numbers.push((PER_S, pace.bytes_per_s));
        } else if !self.tcp {
            numbers.push((MEASURED_PER_S, self.per_s));
        }
        numbers.extend(self.pairs.map(|pairs| (PAIR_RATIO, pairs.start_ratio)));
        match numbers.iter().find(|(param, number)| !param.allows(*number)) {
            None => Ok(self),
            Some((param, number)) => Err(not_understood(&format!(
                "{} = {number} is out of the bounds of the benchmark",
                param.id
            ))),
        }
    }

    /// Slots of the schedule each way; `None` where the time says when it is over, or a word.
    pub fn packets(&self) -> Option<u64> {
        if self.pace.is_some() {
            return None;
        }
        let packets = (self.duration_ns as f64 * self.per_s / 1e9).round() as u64;
        (self.duration_ns > 0).then_some(packets.max(2))
    }

    /// The slots in which datagrams leave; the same on both sides.
    pub fn slots(&self) -> SendSlots {
        SendSlots::new(self.packets(), self.pairs)
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

    /// Takes note of the sum; closes the interval when its time is over, and returns its end then.
    pub fn note(&mut self, now_ns: u64, sum: u64) -> Option<u64> {
        let ns = now_ns.saturating_sub(self.last_ns);
        if ns < self.length_ns {
            return None;
        }
        let rate = (sum - self.last_sum) as f64 * 1e9 / ns as f64;
        self.rates.push((now_ns - self.start_ns, rate));
        (self.last_ns, self.last_sum) = (now_ns, sum);
        Some(now_ns - self.start_ns)
    }

    pub fn elapsed_ns(&self) -> u64 {
        clock::monotonic_ns() - self.start_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_out_of_the_bounds_are_refused() {
        let pace = SendingPace { intensity_ratio: 0.5, period_ns: 10_000_000, bytes_per_s: 0.0 };
        let task = TransferTask {
            up: true,
            streams: 1,
            send_bytes: 1,
            interval_ns: 100_000_000,
            packet_bytes: 64,
            per_s: 10.0,
            ..TransferTask::default()
        };
        assert!(task.checked().is_ok());
        assert!(TransferTask { pace: Some(pace), per_s: 0.0, ..task }.checked().is_ok());
        let with_pace = |pace| Some(pace);
        for wrong in [
            TransferTask { streams: 0, ..task },
            TransferTask { streams: 1 << 40, ..task },
            TransferTask { send_bytes: 0, ..task },
            TransferTask { send_bytes: 2 << 30, ..task },
            TransferTask { packet_bytes: 1 << 58, ..task },
            TransferTask { packet_bytes: 0, ..task },
            TransferTask { interval_ns: 0, ..task },
            TransferTask { duration_ns: u64::MAX, ..task },
            TransferTask { wait_ns: u64::MAX, ..task },
            TransferTask { block_bytes: u64::MAX, ..task },
            TransferTask { receive_buffer_bytes: usize::MAX, ..task },
            TransferTask { stream_bytes: u64::MAX, ..task },
            TransferTask { per_s: 0.0, ..task },
            TransferTask { per_s: -1.0, ..task },
            TransferTask { per_s: 1e300, ..task },
            TransferTask { per_s: f64::NAN, ..task },
            TransferTask { pairs: Some(PairSelection { start_ratio: 0.0, seed: 1 }), ..task },
            TransferTask { pace: with_pace(SendingPace { intensity_ratio: -1.0, ..pace }), ..task },
            TransferTask { pace: with_pace(SendingPace { period_ns: 0, ..pace }), ..task },
            TransferTask { pace: with_pace(SendingPace { bytes_per_s: 1e300, ..pace }), ..task },
        ] {
            let refused = wrong.checked().unwrap_err();
            assert!(refused.message.contains("out of the bounds"), "{wrong:?}: {refused:?}");
        }
    }

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
