//! What the kernel knows about a connection that we sent on (`TCP_INFO`).
use super::connection::End;
use super::read_option;
use crate::clock;
use crate::error::ProbeError;
use serde::{Deserialize, Serialize};
use std::os::fd::AsRawFd;

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
    unacknowledged: u64,
    unsent_bytes: u64,
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
            sent_bytes: u64_at(200),
            retransmitted_bytes: u64_at(208),
        })
    }

    fn read(end: &End) -> Option<Self> {
        let mut bytes = [0u8; 512];
        let length = read_option(end.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Self::parse(&bytes[..length])
    }

    /// Of a connection on which all was sent, once all is acknowledged.
    pub fn settled(end: &End) -> Result<Option<Self>, ProbeError> {
        let until_ns = clock::monotonic_ns() + SETTLE_NS;
        loop {
            end.session().check()?;
            let info = Self::read(end);
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
    fn several_connections_add_up() {
        let one = TcpInfo { retransmits: 2, rtt_ns: 5, rtt_min_ns: Some(3), ..TcpInfo::default() };
        let two = TcpInfo { retransmits: 1, rtt_ns: 9, rtt_min_ns: Some(4), ..TcpInfo::default() };
        let both = TcpInfo::together(&[one, two]).unwrap();
        assert_eq!((both.retransmits, both.rtt_ns, both.rtt_min_ns), (3, 9, Some(3)));
        assert_eq!(both.sent_bytes, None);
        assert_eq!(TcpInfo::together(&[]), None);
    }
}
