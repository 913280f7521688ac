//! The running side of `net.rtt`: datagrams leave as a schedule says that was fixed before the first
//! of them, whatever comes back and when.
use super::client::reach;
use super::messages::{receive_message, send_message, Signal, UdpPort};
use super::probing::ProbingConfig;
use super::round_trips::{Arrival, Departure, RoundTrips};
use super::rtt_server::{RttReport, RttRequest};
use super::udp::batch::{self, DatagramBatch};
use super::udp::packet::{flow_id, Header, HELLO};
use super::udp::sender::{self, DatagramStream, Sent};
use super::udp::slots::SendSlots;
use super::variation::DelayVariation;
use crate::error::{FailureKind, ProbeError, Result};
use crate::threads::workers;
use crate::timing::closed_loop::latency_histogram;
use crate::trial::session::Session;
use crate::trial::Trial;
use hdrhistogram::Histogram;
use nephoscope_linux::clock;
use nephoscope_wire::lines::Peer;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};

/// Attempts to get a datagram there and back before the trial begins, and the time between them.
const HELLOS: u64 = 40;
const HELLO_EVERY_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug)]
pub struct RttConfig {
    pub probing: ProbingConfig,
    pub packet_bytes: usize,
    /// The last bit of waiting, spent looking at the clock.
    pub spin_ns: u64,
    pub same_clock: bool,
}

pub struct RttResult {
    pub sent: Sent,
    pub back: ReturnedDatagrams,
    pub far: RttReport,
    /// Datagrams that came back and found our socket full.
    pub drops: Option<u64>,
}

/// Asks the far side; `trial`'s gate opens when all is prepared.
pub fn ask(trial: &mut Trial, question: &RttConfig, peer: &Peer) -> Result<RttResult> {
    let session = trial.session;
    let mut far = reach(session, peer)?.patient();
    let packets = question.probing.probes();
    let RttConfig { packet_bytes, same_clock, .. } = *question;
    let request = RttRequest { packet_bytes, packets: packets.unwrap_or(0), same_clock };
    send_message(&mut far, &request)?;
    let UdpPort { udp_port } = receive_message(&mut far)?;
    let to = SocketAddr::new(peer.address, udp_port);
    let socket = batch::socket(any_of(peer.address)).map_err(|e| ProbeError::os("A socket", &e))?;
    let flow_id = flow_id(&peer.token);
    hello(session, &socket, to, flow_id)?;
    let path = DatagramRoute { session, socket: &socket, flow_id, to };
    let mut back = ReturnedDatagrams::new(question, packets.unwrap_or(0));
    let sent = if question.probing.per_s > 0.0 {
        // Where the kernel has no times of arrival, those of the program are the only ones.
        let _ = batch::ask_for_kernel_times(&socket);
        ask_by_schedule(trial, question, &path, &mut back)?
    } else {
        trial.prepared()?;
        ask_in_turn(question, &path, &mut back)?
    };
    send_message(&mut far, &Signal::Finish)?;
    let far: RttReport = receive_message(&mut far)?;
    check_counts(sent.packets, far.counts.received, back.trips.tracker.unique)?;
    Ok(RttResult { sent, back, far, drops: batch::drops(&socket).map(u64::from) })
}

/// Where the datagrams of a trial go.
struct DatagramRoute<'a> {
    session: Session,
    socket: &'a UdpSocket,
    flow_id: u64,
    to: SocketAddr,
}

/// Sends by a schedule; answers come when they come.
fn ask_by_schedule(
    trial: &mut Trial,
    question: &RttConfig,
    path: &DatagramRoute,
    back: &mut ReturnedDatagrams,
) -> Result<Sent> {
    let session = path.session;
    let until_ns = AtomicU64::new(u64::MAX);
    let wanted = AtomicU64::new(u64::MAX);
    std::thread::scope(|scope| {
        let receiver = workers::start(scope, None, || back.receive(path, &until_ns, &wanted))?;
        let sent = trial.prepared().and_then(|()| {
            let stream = DatagramStream {
                flow_id: path.flow_id,
                to: path.to,
                packet_bytes: question.packet_bytes,
                per_s: question.probing.per_s,
                slots: SendSlots::new(question.probing.probes(), None),
                spin_ns: question.spin_ns,
            };
            sender::send(session, path.socket, &stream, |_| {
                session.check().map(|()| session.is_stopped())
            })
        });
        if let Ok(sent) = &sent {
            wanted.store(sent.packets, Ordering::Relaxed);
            until_ns.store(clock::monotonic_ns() + question.probing.wait_ns, Ordering::Relaxed);
        } else {
            until_ns.store(0, Ordering::Relaxed);
        }
        receiver.join()?;
        sent
    })
}

/// Sends each datagram when the one before has come back, or was waited for long enough. By the
/// plainest calls on a connected socket: whatever else is done between them is part of each time.
fn ask_in_turn(
    question: &RttConfig,
    path: &DatagramRoute,
    back: &mut ReturnedDatagrams,
) -> Result<Sent> {
    let (session, socket) = (path.session, path.socket);
    socket.connect(path.to).map_err(|error| ProbeError::os("Connecting a socket", &error))?;
    let mut packet = vec![0x5A; question.packet_bytes];
    let mut answer = vec![0u8; 2048];
    let mut sent = Sent::default();
    let mut now_ns = clock::monotonic_ns();
    let end_ns = match question.probing.duration_ns {
        0 => u64::MAX,
        duration_ns => now_ns + duration_ns,
    };
    while now_ns < end_ns && !session.is_stopped() {
        session.check()?;
        let sent_wall_ns = clock::realtime_ns();
        // The work on the answer before is no part of this round trip.
        now_ns = clock::monotonic_ns();
        let header = Header {
            flow_id: path.flow_id,
            sequence: sent.packets,
            intended_ns: now_ns,
            sent_ns: now_ns,
            sent_wall_ns,
            ..Header::default()
        };
        header.write(&mut packet);
        if let Err(error) = socket.send(&packet) {
            batch::is_not_now(session, "Sending datagrams", &error)?;
            now_ns = clock::monotonic_ns();
            continue;
        }
        sent.first_ns = if sent.packets == 0 { now_ns } else { sent.first_ns };
        (sent.last_ns, sent.packets) = (now_ns, sent.packets + 1);
        let (unique, until_ns) = (back.trips.tracker.unique, now_ns + question.probing.wait_ns);
        while back.trips.tracker.unique == unique && now_ns < until_ns {
            let got = socket.recv(&mut answer);
            now_ns = clock::monotonic_ns();
            match got {
                Ok(bytes) => back.note_datagram(path, &answer[..bytes], now_ns),
                Err(error) => batch::is_not_now(session, "Receiving datagrams", &error)?,
            }
        }
        back.trips.note_time(now_ns);
    }
    back.trips.close_interval(now_ns);
    Ok(sent)
}

/// Nothing can arrive that was not sent.
fn check_counts(sent: u64, received: u64, returned: u64) -> Result<()> {
    if returned <= received && received <= sent {
        return Ok(());
    }
    Err(ProbeError::new(
        FailureKind::Failed,
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
pub fn hello(session: Session, socket: &UdpSocket, to: SocketAddr, flow_id: u64) -> Result<()> {
    let mut batch = DatagramBatch::new(session, 64);
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
        FailureKind::Failed,
        "no_datagrams",
        format!("None of {HELLOS} datagrams to {to} came back, although TCP to it works."),
        "Let UDP pass to this port and back in every firewall on the way.",
    ))
}

/// Datagrams that came back.
pub struct ReturnedDatagrams {
    same_clock: bool,
    pub trips: RoundTrips,
    /// The way back, if the clocks are one.
    pub delay: Histogram<u64>,
    pub variation: DelayVariation,
    /// Arrivals before departure, by the two clocks.
    pub negative: u64,
    /// Datagrams that were none of ours.
    pub unauthenticated_peers: u64,
}

impl ReturnedDatagrams {
    fn new(question: &RttConfig, packets: u64) -> Self {
        Self {
            same_clock: question.same_clock,
            trips: RoundTrips::new(question.probing.record),
            delay: latency_histogram(),
            variation: DelayVariation::new(packets),
            negative: 0,
            unauthenticated_peers: 0,
        }
    }

    /// Receives until `wanted` different ones have come, or until `until_ns`.
    fn receive(
        &mut self,
        path: &DatagramRoute,
        until_ns: &AtomicU64,
        wanted: &AtomicU64,
    ) -> Result<()> {
        let mut batch = DatagramBatch::new(path.session, 2048);
        loop {
            let now_ns = self.receive_batch(path, &mut batch)?;
            let all = self.trips.tracker.unique >= wanted.load(Ordering::Relaxed);
            if all || now_ns >= until_ns.load(Ordering::Relaxed) {
                self.trips.close_interval(now_ns);
                return Ok(());
            }
        }
    }

    /// Receives what is there; returns the time.
    #[inline]
    fn receive_batch(&mut self, path: &DatagramRoute, batch: &mut DatagramBatch) -> Result<u64> {
        let got = batch.receive(path.socket)?;
        let (now_ns, now_wall_ns) = (clock::monotonic_ns(), clock::realtime_ns());
        for slot in 0..got {
            let known = batch.source(slot).is_some_and(|source| source.ip() == path.to.ip());
            let header = Header::read(batch.received(slot)).filter(|_| known);
            match header.filter(|header| header.flow_id == path.flow_id) {
                Some(header) if header.sequence != HELLO => {
                    let kernel_wall_ns = batch.kernel_wall_ns(slot);
                    self.note(&header, &Arrival { now_ns, kernel_wall_ns }, now_wall_ns);
                }
                Some(_) => {}
                None => self.unauthenticated_peers += 1,
            }
        }
        self.trips.note_time(now_ns);
        Ok(now_ns)
    }

    /// Takes note of a datagram of the only sender from which a connected socket receives.
    #[inline]
    fn note_datagram(&mut self, path: &DatagramRoute, datagram: &[u8], now_ns: u64) {
        match Header::read(datagram).filter(|header| header.flow_id == path.flow_id) {
            Some(header) if header.sequence != HELLO => {
                let arrival = Arrival { now_ns, kernel_wall_ns: None };
                self.note(&header, &arrival, clock::realtime_ns());
            }
            Some(_) => {}
            None => self.unauthenticated_peers += 1,
        }
    }

    #[inline]
    fn note(&mut self, header: &Header, arrival: &Arrival, now_wall_ns: u64) {
        let Header { sequence, intended_ns, sent_ns, sent_wall_ns, .. } = *header;
        let probe = Departure { sequence, intended_ns, sent_ns, sent_wall_ns };
        if !self.trips.answered(&probe, arrival) {
            return;
        }
        let transit_ns = now_wall_ns.wrapping_sub(header.far_sent_wall_ns).cast_signed();
        self.variation.add(header.sequence, transit_ns);
        match u64::try_from(transit_ns) {
            Ok(delay_ns) if self.same_clock => self.delay.saturating_record(delay_ns),
            Ok(_) => {}
            Err(_) => self.negative += 1,
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
}
