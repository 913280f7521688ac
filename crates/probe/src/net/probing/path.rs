//! The path to a host: its hops, and the longest packet that it carries whole.
use super::icmp_errors::DeliveryFailure;
use super::icmp_socket::{unreachable, IcmpSocket, HEADER_BYTES};
use super::wait_readable;
use crate::error::{ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_linux::clock;
use std::io::Error;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

const HOPS_MAX: u8 = 64;
/// Attempts for one length before silence counts as a refusal.
const ATTEMPTS: u32 = 3;
/// A send that meets the report about an earlier packet is repeated.
const SENDS: u32 = 8;
const LONGEST_BYTES: u64 = 65_535;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HopResponse {
    Destination { rtt_ns: u64 },
    Router { address: IpAddr, rtt_ns: u64 },
    TooLong { mtu_bytes: u64 },
    Unreachable { address: Option<IpAddr> },
    Silence,
}

/// A router or the destination.
pub struct Hop {
    /// Who answered, and how long it took.
    pub answers: Vec<(IpAddr, u64)>,
    pub sent: u64,
}

pub struct ProbedPath {
    session: Session,
    socket: IcmpSocket,
    to: IpAddr,
    wait_ns: u64,
    sequence: u16,
}

/// The hops in their order; whether the last is the destination, and who said that there is none.
pub struct Hops {
    pub hops: Vec<Hop>,
    pub is_complete: bool,
    pub refused_by: Option<IpAddr>,
}

/// bytes: longest packet of IP that arrives whole. is_silent: whether longer ones vanish without a
/// report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtu {
    pub bytes: u64,
    pub is_silent: bool,
}

impl ProbedPath {
    pub fn open(session: Session, to: IpAddr, wait_ns: u64) -> Result<Self> {
        let socket = IcmpSocket::open(to)?;
        socket.ask_for_reports().map_err(|error| ProbeError::os("Setting up a socket", &error))?;
        Ok(Self { session, socket, to, wait_ns, sequence: 0 })
    }

    /// Finds the hops, at most `limit`, by `probes` packets each.
    pub fn hops(&mut self, limit: u8, probes: u64) -> Result<Hops> {
        let mut path = Hops { hops: Vec::new(), is_complete: false, refused_by: None };
        for hop_limit in 1..=limit {
            let mut hop = Hop { answers: Vec::new(), sent: probes };
            for _ in 0..probes {
                match self.exchange(self.shortest_bytes(), hop_limit)? {
                    HopResponse::Destination { rtt_ns } => {
                        hop.answers.push((self.to, rtt_ns));
                        path.is_complete = true;
                    }
                    HopResponse::Router { address, rtt_ns } => hop.answers.push((address, rtt_ns)),
                    HopResponse::Unreachable { address } => path.refused_by = address,
                    HopResponse::TooLong { .. } | HopResponse::Silence => {}
                }
            }
            path.hops.push(hop);
            if path.is_complete || path.refused_by.is_some() {
                break;
            }
        }
        Ok(path)
    }

    /// Finds the path MTU; `None` if the destination answers no packet at all.
    pub fn mtu(&mut self) -> Result<Option<PathMtu>> {
        let shortest = self.shortest_bytes();
        if self.try_length(shortest)? != Length::Passes {
            return Ok(None);
        }
        search_mtu(shortest, LONGEST_BYTES, |bytes| self.try_length(bytes)).map(Some)
    }

    fn try_length(&mut self, bytes: u64) -> Result<Length> {
        for _ in 0..ATTEMPTS {
            match self.exchange(bytes, HOPS_MAX)? {
                HopResponse::Destination { .. } => return Ok(Length::Passes),
                HopResponse::TooLong { mtu_bytes } => return Ok(Length::Refused { mtu_bytes }),
                _ => {}
            }
        }
        Ok(Length::Vanishes)
    }

    fn ip_header_bytes(&self) -> u64 {
        if self.to.is_ipv6() {
            40
        } else {
            20
        }
    }

    /// A packet that every link carries.
    fn shortest_bytes(&self) -> u64 {
        self.ip_header_bytes() + HEADER_BYTES as u64 + 16
    }

    /// Sends a packet of `bytes`, headers included, and waits for what becomes of it.
    fn exchange(&mut self, bytes: u64, hop_limit: u8) -> Result<HopResponse> {
        self.session.check()?;
        self.sequence = self.sequence.wrapping_add(1);
        let mut packet = vec![0u8; (bytes - self.ip_header_bytes()) as usize];
        let set = self.socket.set_hop_limit(hop_limit);
        set.map_err(|error| ProbeError::os("Setting up a socket", &error))?;
        self.socket.write_header(&mut packet, self.sequence);
        let sent_ns = clock::monotonic_ns();
        if let Err(error) = self.send(&packet) {
            if error.raw_os_error() != Some(libc::EMSGSIZE) {
                return Err(unreachable(self.to, &error));
            }
            let own = std::iter::from_fn(|| self.socket.next_report()).last();
            return Ok(match own.map(|report| report.failure) {
                Some(DeliveryFailure::TooLong { mtu_bytes }) => HopResponse::TooLong { mtu_bytes },
                _ => HopResponse::TooLong { mtu_bytes: bytes - 1 },
            });
        }
        let until_ns = sent_ns + self.wait_ns;
        let mut buffer = vec![0u8; LONGEST_BYTES as usize];
        while clock::monotonic_ns() < until_ns {
            self.session.check()?;
            if wait_readable(self.socket.as_raw_fd(), until_ns) {
                if let Some(answer) = self.take_answer(&mut buffer, sent_ns) {
                    return Ok(answer);
                }
            }
        }
        Ok(HopResponse::Silence)
    }

    fn send(&self, packet: &[u8]) -> Result<(), Error> {
        let mut sent = self.socket.send(packet);
        for _ in 1..SENDS {
            match &sent {
                Err(error) if error.raw_os_error() != Some(libc::EMSGSIZE) => {
                    sent = self.socket.send(packet);
                }
                _ => break,
            }
        }
        sent
    }

    /// The answer to the latest packet, if it is there.
    fn take_answer(&self, buffer: &mut [u8], sent_ns: u64) -> Option<HopResponse> {
        let reply = self.socket.receive(buffer);
        let rtt_ns = clock::monotonic_ns() - sent_ns;
        if reply.ok().flatten().is_some_and(|reply| reply.sequence == self.sequence) {
            return Some(HopResponse::Destination { rtt_ns });
        }
        while let Some(report) = self.socket.next_report() {
            if report.sequence != Some(self.sequence) {
                continue;
            }
            return Some(match (report.failure, report.router) {
                (DeliveryFailure::HopsUsedUp, Some(address)) => {
                    HopResponse::Router { address, rtt_ns }
                }
                (DeliveryFailure::HopsUsedUp, None) => HopResponse::Silence,
                (DeliveryFailure::TooLong { mtu_bytes }, _) => HopResponse::TooLong { mtu_bytes },
                (DeliveryFailure::Unreachable, address) => HopResponse::Unreachable { address },
            });
        }
        None
    }
}

/// What becomes of packets of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Passes,
    /// A link carries `mtu_bytes` only.
    Refused {
        mtu_bytes: u64,
    },
    Vanishes,
}

/// Finds the longest length between `passing`, which passes, and `longest`. Follows what routers
/// report, and halves where packets vanish without a report.
fn search_mtu(
    passing: u64,
    longest: u64,
    mut try_length: impl FnMut(u64) -> Result<Length>,
) -> Result<PathMtu> {
    // All lengths up to `low` pass, none above `high` does.
    let (mut low, mut high, mut is_silent) = (passing, longest, false);
    let mut candidate = longest;
    while low < high {
        match try_length(candidate)? {
            Length::Passes => low = candidate,
            Length::Refused { mtu_bytes } => high = mtu_bytes.min(candidate - 1).max(low),
            Length::Vanishes => {
                (high, is_silent) = (candidate - 1, true);
            }
        }
        candidate = if is_silent { (low + high).div_ceil(2) } else { high };
    }
    Ok(PathMtu { bytes: low, is_silent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_lead_to_the_mtu_in_few_steps() {
        let mut tried = Vec::new();
        let mtu = search_mtu(44, 65_535, |bytes| {
            tried.push(bytes);
            Ok(match bytes {
                9001.. => Length::Refused { mtu_bytes: 9000 },
                1401.. => Length::Refused { mtu_bytes: 1400 },
                _ => Length::Passes,
            })
        });
        assert_eq!(mtu.unwrap(), PathMtu { bytes: 1400, is_silent: false });
        assert_eq!(tried, [65_535, 9000, 1400]);
    }

    #[test]
    fn silence_is_halved_to_the_exact_length() {
        for limit in [44, 45, 576, 1279, 1280, 1500, 9000, 65_534, 65_535] {
            let mut steps = 0;
            let mtu = search_mtu(44, 65_535, |bytes| {
                steps += 1;
                Ok(if bytes > limit { Length::Vanishes } else { Length::Passes })
            });
            assert_eq!(mtu.unwrap().bytes, limit);
            assert!(steps <= 18, "{steps}");
        }
    }

    #[test]
    fn a_report_that_makes_no_sense_ends_all_the_same() {
        let mtu = search_mtu(44, 1000, |_| Ok(Length::Refused { mtu_bytes: 0 }));
        assert_eq!(mtu.unwrap().bytes, 44);
        let mtu = search_mtu(44, 100, |_| Ok(Length::Refused { mtu_bytes: 90_000 }));
        assert_eq!(mtu.unwrap().bytes, 44);
    }
}
