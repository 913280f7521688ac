//! The running side of `net.rtt`: datagrams leave as a schedule says that was fixed before the first
//! of them, whatever comes back and when.
use super::client::reach;
use super::messages::{receive_message, send_message, Signal, UdpPort};
use super::rtt_server::{RttReport, RttRequest};
use super::udp::batch::{self, Batch};
use super::udp::pace::Pace;
use super::udp::packet::{flow_id, Header, HELLO};
use super::udp::sender::{self, Sent, Stream};
use super::udp::tracker::Tracker;
use super::variation::Variation;
use crate::clock;
use crate::closed_loop::latency_histogram;
use crate::error::{Kind, ProbeError};
use crate::session::Session;
use crate::trial::Trial;
use crate::workers;
use hdrhistogram::Histogram;
use nephoscope_wire::lines::Peer;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};

/// Attempts to get a datagram there and back before the trial begins, and the time between them.
const HELLOS: u64 = 40;
const HELLO_EVERY_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug)]
pub struct RttConfig {
    pub per_s: f64,
    pub packet_bytes: usize,
    /// How long they are sent; 0 until told to stop.
    pub duration_ns: u64,
    pub wait_ns: u64,
    pub interval_ns: u64,
    /// The last bit of waiting, spent looking at the clock.
    pub spin_ns: u64,
    pub same_clock: bool,
}

impl RttConfig {
    /// How many datagrams that makes; `None` when it is not known in advance.
    pub fn packets(&self) -> Option<u64> {
        let packets = (self.duration_ns as f64 * self.per_s / 1e9).round() as u64;
        (self.duration_ns > 0).then_some(packets.max(1))
    }
}

pub struct RttResult {
    pub sent: Sent,
    pub back: Arrivals,
    pub far: RttReport,
    /// Datagrams that came back and found our socket full.
    pub drops: Option<u64>,
}

/// Asks the far side; `trial`'s gate opens when all is prepared.
pub fn ask(trial: &mut Trial, question: &RttConfig, peer: &Peer) -> Result<RttResult, ProbeError> {
    let session = trial.session;
    let mut far = reach(session, peer)?.patient();
    let packets = question.packets();
    let RttConfig { packet_bytes, same_clock, .. } = *question;
    let request = RttRequest { packet_bytes, packets: packets.unwrap_or(0), same_clock };
    send_message(&mut far, &request)?;
    let UdpPort { udp_port } = receive_message(&mut far)?;
    let to = SocketAddr::new(peer.address, udp_port);
    let socket = batch::socket(any_of(peer.address)).map_err(|e| ProbeError::os("A socket", &e))?;
    let flow_id = flow_id(&peer.token);
    hello(session, &socket, to, flow_id)?;
    let until_ns = AtomicU64::new(u64::MAX);
    let wanted = AtomicU64::new(u64::MAX);
    let mut back = Arrivals::new(question, packets.unwrap_or(0));
    let sent = std::thread::scope(|scope| {
        let receive = || back.receive(session, &socket, flow_id, peer.address, &until_ns, &wanted);
        let receiver = workers::start(scope, None, receive)?;
        let sent = trial.prepared().and_then(|()| {
            // The first is not late because the gate took its time.
            let pace = Pace::new(clock::monotonic_ns() + sender::LATE_NS / 2, question.per_s);
            let stream =
                Stream { flow_id, to, packet_bytes, pace, packets, spin_ns: question.spin_ns };
            sender::send(session, &socket, &stream, |_| {
                session.check().map(|()| session.is_stopped())
            })
        });
        if let Ok(sent) = &sent {
            wanted.store(sent.packets, Ordering::Relaxed);
            until_ns.store(clock::monotonic_ns() + question.wait_ns, Ordering::Relaxed);
        } else {
            until_ns.store(0, Ordering::Relaxed);
        }
        receiver.join()?;
        sent
    })?;
    send_message(&mut far, &Signal::Finish)?;
    let far: RttReport = receive_message(&mut far)?;
    check_counts(sent.packets, far.counts.received, back.tracker.unique)?;
    Ok(RttResult { sent, back, far, drops: batch::drops(&socket) })
}

/// Nothing can arrive that was not sent.
fn check_counts(sent: u64, received: u64, returned: u64) -> Result<(), ProbeError> {
    if returned <= received && received <= sent {
        return Ok(());
    }
    Err(ProbeError::new(
        Kind::Failed,
        "counts_disagree",
        format!("{sent} datagrams were sent, {received} arrived and {returned} came back."),
        "Run it again; if it happens again, report it.",
    ))
}

/// Any address of the family of another.
pub fn any_of(address: IpAddr) -> SocketAddr {
    match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Sends a datagram until one comes back: there is a way, its addresses are resolved.
pub fn hello(
    session: Session,
    socket: &UdpSocket,
    to: SocketAddr,
    flow_id: u64,
) -> Result<(), ProbeError> {
    let mut batch = Batch::new(session, 64);
    for _ in 0..HELLOS {
        batch.address(to, 64);
        Header { flow_id, sequence: HELLO, ..Header::default() }.write(batch.slot(0));
        batch.send(socket, 1)?;
        let until_ns = clock::monotonic_ns() + HELLO_EVERY_NS;
        while clock::monotonic_ns() < until_ns {
            session.check()?;
            for slot in 0..batch.receive(socket)? {
                let header = Header::read(batch.received(slot));
                if header.is_some_and(|header| header.flow_id == flow_id) {
                    return Ok(());
                }
            }
        }
    }
    Err(ProbeError::new(
        Kind::Failed,
        "no_datagrams",
        format!("None of {HELLOS} datagrams to {to} came back, although TCP to it works."),
        "Let UDP pass to this port and back in every firewall on the way.",
    ))
}

pub struct Arrivals {
    same_clock: bool,
    interval_ns: u64,
    pub tracker: Tracker,
    /// From when it was to be sent.
    pub rtt: Histogram<u64>,
    /// From when it was sent.
    pub rtt_sent: Histogram<u64>,
    /// The way back, if the clocks are one.
    pub delay: Histogram<u64>,
    pub variation: Variation,
    /// Arrivals before departure, by the two clocks.
    pub negative: u64,
    /// Datagrams that were none of ours.
    pub strangers: u64,
    /// (end on the monotonic clock, median, longest) of the round trips of each interval.
    pub intervals: Vec<(u64, u64, u64)>,
    interval: Histogram<u64>,
}

impl Arrivals {
    fn new(question: &RttConfig, packets: u64) -> Self {
        Self {
            same_clock: question.same_clock,
            interval_ns: question.interval_ns,
            tracker: Tracker::new(),
            rtt: latency_histogram(),
            rtt_sent: latency_histogram(),
            delay: latency_histogram(),
            variation: Variation::new(packets),
            negative: 0,
            strangers: 0,
            intervals: Vec::new(),
            interval: latency_histogram(),
        }
    }

    /// Receives until `wanted` different ones have come, or until `until_ns`.
    fn receive(
        &mut self,
        session: Session,
        socket: &UdpSocket,
        flow_id: u64,
        from: IpAddr,
        until_ns: &AtomicU64,
        wanted: &AtomicU64,
    ) -> Result<(), ProbeError> {
        let mut batch = Batch::new(session, 2048);
        let mut interval_ends_ns = 0;
        loop {
            let got = batch.receive(socket)?;
            let (now_ns, now_wall_ns) = (clock::monotonic_ns(), clock::realtime_ns());
            if interval_ends_ns == 0 && got > 0 {
                interval_ends_ns = now_ns + self.interval_ns;
            }
            for slot in 0..got {
                let known = batch.source(slot).is_some_and(|source| source.ip() == from);
                let header = Header::read(batch.received(slot)).filter(|_| known);
                match header.filter(|header| header.flow_id == flow_id) {
                    Some(header) if header.sequence != HELLO => {
                        self.note(&header, now_ns, now_wall_ns);
                    }
                    Some(_) => {}
                    None => self.strangers += 1,
                }
            }
            if now_ns >= interval_ends_ns && interval_ends_ns > 0 {
                self.close_interval(now_ns);
                interval_ends_ns = now_ns + self.interval_ns;
            }
            let all = self.tracker.unique >= wanted.load(Ordering::Relaxed);
            if all || now_ns >= until_ns.load(Ordering::Relaxed) {
                self.close_interval(now_ns);
                return Ok(());
            }
        }
    }

    #[inline]
    fn note(&mut self, header: &Header, now_ns: u64, now_wall_ns: u64) {
        if !self.tracker.see(header.sequence) {
            return;
        }
        let rtt_ns = now_ns.saturating_sub(header.intended_ns);
        self.rtt.saturating_record(rtt_ns);
        self.interval.saturating_record(rtt_ns);
        self.rtt_sent.saturating_record(now_ns.saturating_sub(header.sent_ns));
        let transit_ns = now_wall_ns.wrapping_sub(header.far_sent_wall_ns).cast_signed();
        self.variation.add(header.sequence, transit_ns);
        match u64::try_from(transit_ns) {
            Ok(delay_ns) if self.same_clock => self.delay.saturating_record(delay_ns),
            Ok(_) => {}
            Err(_) => self.negative += 1,
        }
    }

    fn close_interval(&mut self, now_ns: u64) {
        if !self.interval.is_empty() {
            let (median, longest) = (self.interval.value_at_quantile(0.5), self.interval.max());
            self.intervals.push((now_ns, median, longest));
            self.interval.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_was_sent_cannot_arrive() {
        assert!(check_counts(10, 8, 7).is_ok());
        assert!(check_counts(0, 0, 0).is_ok());
        assert_eq!(check_counts(10, 11, 7).unwrap_err().name, "counts_disagree");
        assert_eq!(check_counts(10, 8, 9).unwrap_err().name, "counts_disagree");
    }

    #[test]
    fn the_number_of_datagrams_follows_from_rate_and_time() {
        let question = RttConfig {
            per_s: 1000.0,
            packet_bytes: 64,
            duration_ns: 1_500_000_000,
            wait_ns: 0,
            interval_ns: 1,
            spin_ns: 0,
            same_clock: false,
        };
        assert_eq!(question.packets(), Some(1500));
        assert_eq!(RttConfig { duration_ns: 1, ..question }.packets(), Some(1));
        assert_eq!(RttConfig { duration_ns: 0, ..question }.packets(), None);
    }
}
