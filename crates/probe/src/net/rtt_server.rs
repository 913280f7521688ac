//! The far side of `net.rtt`: sends every datagram of its peer back, with the times at which it received
//! and sent it, and reports its counts at the end.
use super::connection::readable;
use super::messages::{gone, receive_message, send_message, Signal, UdpPort};
use super::server::{listen_both, Reception};
use super::udp::batch::{self, DatagramBatch, SLOTS};
use super::udp::packet::{flow_id, Header, HEADER_BYTES, HELLO};
use super::udp::tracker::Tracker;
use super::variation::DelayVariation;
use crate::error::Result;
use crate::timing::closed_loop::{latency_histogram, pairs};
use crate::trial::session::Session;
use crate::trial::{ListenConfig, Trial};
use hdrhistogram::Histogram;
use nephoscope_linux::clock;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// While datagrams come, a look whether the peer says something is taken after so many receptions.
const TURNS_WITHOUT_CHECK: u64 = 64;

pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value> {
    let session = trial.session;
    let (listener, socket, address) = listen_both(listen)?;
    trial.listens_at(address)?;
    let Some(mut peer) = Reception::new(session, &listener, &listen.token).next_peer(None)? else {
        return Ok(json!({"received": 0}));
    };
    let request = receive_message(&mut peer)?;
    let mut echo = EchoServer::new(session, &request, flow_id(&listen.token), peer.far_ip());
    send_message(&mut peer, &UdpPort { udp_port: address.port() })?;
    let mut turns = 0u64;
    loop {
        session.check()?;
        if session.is_stopped() {
            return Ok(json!(echo.counts(&socket)));
        }
        // A look at the peer's messages before each datagram would be part of its round trip.
        let answered = echo.answer(&socket)?;
        turns += 1;
        if answered > 0 && !turns.is_multiple_of(TURNS_WITHOUT_CHECK) {
            continue;
        }
        if readable([peer.as_raw_fd()], 0)[0] {
            receive_message::<Signal>(&mut peer).map_err(|_| gone())?;
            let report = echo.report(&socket);
            send_message(&mut peer, &report)?;
            return Ok(json!(report.counts));
        }
    }
}

/// What the running side asks for.
#[derive(Serialize, Deserialize)]
pub struct RttRequest {
    pub packet_bytes: usize,
    /// 0 if it is not known in advance.
    pub packets: u64,
    /// Whether both sides share one clock.
    pub same_clock: bool,
}

/// Datagrams at the far side.
#[derive(Serialize, Deserialize)]
pub struct RttCounts {
    /// Different datagrams that arrived.
    pub received: u64,
    pub duplicates: u64,
    pub reordered: u64,
    /// Datagrams of other programs.
    pub unauthenticated_peers: u64,
    /// Datagrams that could not be sent back.
    pub unsent: u64,
    /// Datagrams that arrived before they were sent, by the two clocks.
    pub negative: u64,
    /// Datagrams that found the socket's buffer full; `None` if the kernel does not count them.
    pub drops: Option<u64>,
}

/// Counts and times of the way to the far side.
#[derive(Serialize, Deserialize)]
pub struct RttReport {
    pub counts: RttCounts,
    pub jitter_ns: Option<f64>,
    pub mean_difference_ns: Option<f64>,
    pub ipdv: Vec<(f64, u64)>,
    pub pdv: Vec<(f64, u64)>,
    /// Whether `pdv` lacks some datagrams.
    pub pdv_cut_off: bool,
    pub delay: Vec<(f64, u64)>,
}

struct EchoServer {
    flow_id: u64,
    from: IpAddr,
    same_clock: bool,
    batch: DatagramBatch,
    tracker: Tracker,
    variation: DelayVariation,
    delay: Histogram<u64>,
    /// Datagrams that arrived before they were sent, by the two clocks.
    negative: u64,
    unauthenticated_peers: u64,
    unsent: u64,
    /// (number, transit) of the datagrams of a batch, which are recorded when it was sent back.
    transits_ns: Vec<(u64, i64)>,
}

impl EchoServer {
    fn new(session: Session, request: &RttRequest, flow_id: u64, from: IpAddr) -> Self {
        let packet_bytes = request.packet_bytes.clamp(HEADER_BYTES, 1 << 16);
        Self {
            flow_id,
            from,
            same_clock: request.same_clock,
            batch: DatagramBatch::new(session, packet_bytes),
            tracker: Tracker::new(),
            variation: DelayVariation::new(request.packets),
            delay: latency_histogram(),
            negative: 0,
            unauthenticated_peers: 0,
            unsent: 0,
            transits_ns: Vec::with_capacity(SLOTS),
        }
    }

    /// Receives what is there and sends it back; returns how many came. A duplicate is not sent back:
    /// the way back would be charged with what happened on the way here.
    fn answer(&mut self, socket: &UdpSocket) -> Result<usize> {
        let got = self.batch.receive(socket)?;
        let received_wall_ns = clock::realtime_ns();
        let mut answers = 0;
        for slot in 0..got {
            let header = Header::read(self.batch.received(slot));
            let own_header = header.filter(|header| header.flow_id == self.flow_id);
            let known = self.batch.source(slot).is_some_and(|source| source.ip() == self.from);
            let Some(mut header) = own_header.filter(|_| known) else {
                self.unauthenticated_peers += 1;
                continue;
            };
            if header.sequence != HELLO {
                if !self.tracker.see(header.sequence) {
                    continue;
                }
                let transit_ns = received_wall_ns.wrapping_sub(header.sent_wall_ns);
                self.transits_ns.push((header.sequence, transit_ns.cast_signed()));
            }
            header.far_received_wall_ns = received_wall_ns;
            header.far_sent_wall_ns = clock::realtime_ns();
            self.batch.answer(slot, answers);
            header.write(self.batch.slot(answers));
            answers += 1;
        }
        if answers > 0 {
            let sent = self.batch.send(socket, answers)?;
            self.unsent += (answers - sent) as u64;
        }
        self.record_transits();
        Ok(got)
    }

    fn record_transits(&mut self) {
        for (sequence, transit_ns) in self.transits_ns.drain(..) {
            self.variation.add(sequence, transit_ns);
            match u64::try_from(transit_ns) {
                Ok(delay_ns) if self.same_clock => self.delay.saturating_record(delay_ns),
                Ok(_) => {}
                Err(_) => self.negative += 1,
            }
        }
    }

    fn counts(&self, socket: &UdpSocket) -> RttCounts {
        RttCounts {
            received: self.tracker.unique,
            duplicates: self.tracker.duplicates,
            reordered: self.tracker.reordered,
            unauthenticated_peers: self.unauthenticated_peers,
            unsent: self.unsent,
            negative: self.negative,
            drops: batch::drops(socket).map(u64::from),
        }
    }

    fn report(&self, socket: &UdpSocket) -> RttReport {
        RttReport {
            counts: self.counts(socket),
            jitter_ns: self.variation.jitter.value_ns(),
            mean_difference_ns: self.variation.jitter.mean_difference_ns(),
            ipdv: pairs(&self.variation.ipdv),
            pdv: pairs(&self.variation.pdv()),
            pdv_cut_off: self.variation.cut_off(),
            delay: pairs(&self.delay),
        }
    }
}
