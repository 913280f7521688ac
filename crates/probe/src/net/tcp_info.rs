//! What the kernel knows about a connection that we sent on (`TCP_INFO`).
use super::connection::End;
use super::read_option;
use crate::error::Result;
use nephoscope_linux::clock;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsRawFd, RawFd};

/// The tail of a stream is acknowledged within this time, or its retransmissions are not all known.
const SETTLE_NS: u64 = 2_000_000_000;

/// Of one connection or of several together. Fields that this kernel is too old for are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpInfo {
    pub retransmits: u64,
    /// Bytes that went out, again ones included.
    pub sent_bytes: Option<u64>,
    /// Of them those that went out again.
    pub retransmitted_bytes: Option<u64>,
    /// Smoothed round trip; of several the longest.
    pub rtt_ns: u64,
    /// Least round trip seen; of several the least.
    pub rtt_min_ns: Option<u64>,
    /// Congestion window; of several their sum.
    pub window_bytes: u64,
    /// Latest rate at which bytes were delivered; of several their sum.
    pub delivery_bytes_per_s: Option<u64>,
    /// Time with something to send; of several their sum, as the next two.
    busy_us: Option<u64>,
    /// Of it, the time in which the receiver's window was full.
    receiver_limited_us: Option<u64>,
    /// Of it, the time in which the send buffer was too small.
    sender_limited_us: Option<u64>,
    /// Payload of a full segment, and the packet that carries it.
    pub segment_bytes: u64,
    pub packet_bytes: u64,
    unacknowledged: u64,
    unsent_bytes: u64,
}

/// Shares of the time in which a connection had something to send, by what held it up. Sum 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitedRatios {
    pub by_congestion_window: f64,
    pub by_receiver: f64,
    pub by_sender: f64,
}

impl TcpInfo {
    /// As the kernel writes it: `struct tcp_info` of `linux/tcp.h`, which only ever grows at its end.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let u32_at = |at: usize| {
            let word = bytes.get(at..at + 4)?;
            Some(u64::from(u32::from_ne_bytes(word.try_into().ok()?)))
        };
        let u64_at = |at: usize| {
            let word = bytes.get(at..at + 8)?;
            Some(u64::from_ne_bytes(word.try_into().ok()?))
        };
        // A least round trip that was never seen is all ones.
        let rtt_min = u32_at(148).filter(|us| *us != u64::from(u32::MAX));
        Some(Self {
            unacknowledged: u32_at(24)?,
            rtt_ns: u32_at(68)? * 1000,
            retransmits: u32_at(100)?,
            unsent_bytes: u32_at(144).unwrap_or(0),
            rtt_min_ns: rtt_min.map(|us| us * 1000),
            window_bytes: u32_at(80)? * u32_at(16)?,
            segment_bytes: u32_at(16)?,
            packet_bytes: u32_at(60)?,
            delivery_bytes_per_s: u64_at(160),
            busy_us: u64_at(168),
            receiver_limited_us: u64_at(176),
            sender_limited_us: u64_at(184),
            sent_bytes: u64_at(200),
            retransmitted_bytes: u64_at(208),
        })
    }

    /// Reads that of a socket; `None` where it has none (any more).
    pub fn read(socket: RawFd) -> Option<Self> {
        let mut bytes = [0u8; 512];
        let length = read_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Self::parse(&bytes[..length])
    }

    /// Of a connection on which all was sent, once all is acknowledged.
    pub fn settled(end: &End) -> Result<Option<Self>> {
        let until_ns = clock::monotonic_ns() + SETTLE_NS;
        loop {
            end.session().check()?;
            let info = Self::read(end.as_raw_fd());
            let busy = info.is_some_and(|info| info.unacknowledged + info.unsent_bytes > 0);
            if !busy || clock::monotonic_ns() > until_ns {
                return Ok(info);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Several connections as one; `None` without any.
    pub fn together(infos: &[Self]) -> Option<Self> {
        let sum = |of: fn(&Self) -> Option<u64>| infos.iter().map(of).sum::<Option<u64>>();
        Some(Self {
            retransmits: infos.iter().map(|info| info.retransmits).sum(),
            sent_bytes: sum(|info| info.sent_bytes),
            retransmitted_bytes: sum(|info| info.retransmitted_bytes),
            rtt_ns: infos.iter().map(|info| info.rtt_ns).max()?,
            rtt_min_ns: infos.iter().filter_map(|info| info.rtt_min_ns).min(),
            window_bytes: infos.iter().map(|info| info.window_bytes).sum(),
            delivery_bytes_per_s: sum(|info| info.delivery_bytes_per_s),
            busy_us: sum(|info| info.busy_us),
            receiver_limited_us: sum(|info| info.receiver_limited_us),
            sender_limited_us: sum(|info| info.sender_limited_us),
            segment_bytes: infos.iter().map(|info| info.segment_bytes).min()?,
            packet_bytes: infos.iter().map(|info| info.packet_bytes).min()?,
            unacknowledged: 0,
            unsent_bytes: 0,
        })
    }

    /// Share of the bytes on the wire that were there again; RFC 6349's efficiency is 1 minus it.
    pub fn retransmitted_ratio(&self) -> Option<f64> {
        let sent = self.sent_bytes.filter(|bytes| *bytes > 0)?;
        Some(self.retransmitted_bytes? as f64 / sent as f64)
    }

    /// How much longer the round trip was than the least one, over the least one (RFC 6349).
    pub fn buffer_delay_ratio(&self) -> Option<f64> {
        let least = self.rtt_min_ns.filter(|ns| *ns > 0)? as f64;
        Some((self.rtt_ns as f64 - least) / least)
    }

    /// Returns what held the connections up; `None` if this kernel does not tell.
    pub fn limited_ratios(&self) -> Option<LimitedRatios> {
        let busy_us = self.busy_us.filter(|us| *us > 0)? as f64;
        let by_receiver = self.receiver_limited_us? as f64 / busy_us;
        let by_sender = self.sender_limited_us? as f64 / busy_us;
        let by_congestion_window = (1.0 - by_receiver - by_sender).max(0.0);
        Some(LimitedRatios { by_congestion_window, by_receiver, by_sender })
    }

    /// Returns the payload that a bottleneck can carry: its rate counts the bytes of Ethernet frames
    /// without preamble and checksum, as a shaper does.
    pub fn ideal_bytes_per_s(&self, bottleneck_bits_per_s: f64) -> Option<f64> {
        const FRAME_HEADER_BYTES: u64 = 14;
        let frame_bytes =
            (self.packet_bytes > 0).then_some(self.packet_bytes)? + FRAME_HEADER_BYTES;
        Some(bottleneck_bits_per_s / 8.0 * self.segment_bytes as f64 / frame_bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratios_of_a_worked_example() {
        let info = TcpInfo {
            sent_bytes: Some(100_000_000),
            retransmitted_bytes: Some(2_000_000),
            rtt_ns: 32_000_000,
            rtt_min_ns: Some(25_000_000),
            ..TcpInfo::default()
        };
        assert_eq!(info.retransmitted_ratio(), Some(0.02));
        assert!((info.buffer_delay_ratio().unwrap() - 0.28).abs() < 1e-12);
        assert_eq!(TcpInfo::default().retransmitted_ratio(), None);
    }

    #[test]
    fn an_old_kernel_s_short_answer_has_gaps_and_no_zeros() {
        let mut bytes = [0u8; 240];
        bytes[68..72].copy_from_slice(&1500u32.to_ne_bytes());
        bytes[100..104].copy_from_slice(&7u32.to_ne_bytes());
        bytes[208..216].copy_from_slice(&99u64.to_ne_bytes());
        let info = TcpInfo::parse(&bytes).unwrap();
        assert_eq!((info.rtt_ns, info.retransmits), (1_500_000, 7));
        assert_eq!(info.retransmitted_bytes, Some(99));
        let old = TcpInfo::parse(&bytes[..104]).unwrap();
        assert_eq!((old.sent_bytes, old.retransmitted_bytes, old.rtt_min_ns), (None, None, None));
        assert_eq!(TcpInfo::parse(&bytes[..100]), None);
    }

    #[test]
    fn what_limits_a_connection_adds_up_to_one() {
        let info = TcpInfo {
            busy_us: Some(1000),
            receiver_limited_us: Some(250),
            sender_limited_us: Some(100),
            ..TcpInfo::default()
        };
        let ratios = info.limited_ratios().unwrap();
        assert_eq!((ratios.by_receiver, ratios.by_sender), (0.25, 0.1));
        assert!((ratios.by_congestion_window - 0.65).abs() < 1e-12);
        assert_eq!(TcpInfo { busy_us: Some(0), ..info }.limited_ratios(), None);
        assert_eq!(TcpInfo::default().limited_ratios(), None);
    }

    #[test]
    fn a_frame_carries_less_payload_than_its_length() {
        let info = TcpInfo { segment_bytes: 1448, packet_bytes: 1500, ..TcpInfo::default() };
        let bits = info.ideal_bytes_per_s(47e6).unwrap() * 8.0;
        assert!((bits / 44.95e6 - 1.0).abs() < 1e-4, "{bits}");
        assert_eq!(TcpInfo::default().ideal_bytes_per_s(1e6), None);
    }

    #[test]
    fn several_connections_add_up() {
        let first =
            TcpInfo { retransmits: 2, rtt_ns: 5, rtt_min_ns: Some(3), ..TcpInfo::default() };
        let second =
            TcpInfo { retransmits: 1, rtt_ns: 9, rtt_min_ns: Some(4), ..TcpInfo::default() };
        let merged = TcpInfo::together(&[first, second]).unwrap();
        assert_eq!((merged.retransmits, merged.rtt_ns, merged.rtt_min_ns), (3, 9, Some(3)));
        assert_eq!(merged.sent_bytes, None);
        assert_eq!(TcpInfo::together(&[]), None);
    }
}
