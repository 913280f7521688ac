//! The far side of `net.rtt`: sends every datagram of its peer back, with both times at which it had
//! it, and tells at the end what it counted.
use super::messages::{count, gone, receive_message, send_message};
use super::server::{listen_both, next_peer};
use super::udp::batch::{self, Batch};
use super::udp::packet::{flow_id, Header, HEADER_BYTES, HELLO};
use super::udp::tracker::Tracker;
use super::variation::Variation;
use crate::clock;
use crate::closed_loop::{self, latency_histogram};
use crate::error::ProbeError;
use crate::session::Session;
use crate::trial::{ListenConfig, Trial};
use hdrhistogram::Histogram;
use serde_json::{json, Value};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::RawFd;

/// Serves one peer.
pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value, ProbeError> {
    let session = trial.session;
    let (listener, socket, address) = listen_both(listen)?;
    trial.listens_at(address)?;
    let Some(mut peer) = next_peer(session, &listener, &listen.token)? else {
        return Ok(json!({"received": 0}));
    };
    let asked = receive_message(&mut peer)?;
    let mut echo = Echo::new(session, &asked, flow_id(&listen.token), peer.far_address())?;
    send_message(&mut peer, &json!({"udp_port": address.port()}))?;
    loop {
        session.check()?;
        if session.is_stopped() {
            return Ok(echo.counts(&socket));
        }
        let (datagrams, words) = wait_for(batch::descriptor(&socket), peer.descriptor());
        if datagrams {
            echo.answer(&socket)?;
        }
        if words {
            receive_message(&mut peer).map_err(|_| gone())?;
            let counts = echo.counts(&socket);
            send_message(&mut peer, &echo.report(counts.clone()))?;
            return Ok(counts);
        }
    }
}

/// Whether something has come on either descriptor, in a tenth of a second at most.
fn wait_for(first: RawFd, second: RawFd) -> (bool, bool) {
    let mut polls = [first, second].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: two valid entries.
    let ready = unsafe { libc::poll(polls.as_mut_ptr(), 2, 100) };
    if ready <= 0 {
        return (false, false);
    }
    (polls[0].revents != 0, polls[1].revents != 0)
}

/// What it has seen so far.
struct Echo {
    flow_id: u64,
    from: IpAddr,
    same_clock: bool,
    batch: Batch,
    tracker: Tracker,
    variation: Variation,
    delay: Histogram<u64>,
    /// Datagrams that arrived before they were sent, by the two clocks.
    negative: u64,
    strangers: u64,
    unsent: u64,
}

impl Echo {
    fn new(
        session: Session,
        asked: &Value,
        flow_id: u64,
        from: IpAddr,
    ) -> Result<Self, ProbeError> {
        let packet_bytes = (count(asked, "packet_bytes")? as usize).clamp(HEADER_BYTES, 1 << 16);
        Ok(Self {
            flow_id,
            from,
            same_clock: asked["same_clock"] == true,
            batch: Batch::new(session, packet_bytes),
            tracker: Tracker::new(),
            variation: Variation::new(count(asked, "packets")?),
            delay: latency_histogram(),
            negative: 0,
            strangers: 0,
            unsent: 0,
        })
    }

    /// Receives what is there and sends it back. A duplicate is not sent back: the way back would
    /// be charged with what happened on the way here.
    fn answer(&mut self, socket: &UdpSocket) -> Result<(), ProbeError> {
        let got = self.batch.receive(socket)?;
        let received_wall_ns = clock::realtime_ns();
        let mut answers = 0;
        for slot in 0..got {
            let header = Header::read(self.batch.received(slot));
            let ours = header.filter(|header| header.flow_id == self.flow_id);
            let known = self.batch.source(slot).is_some_and(|source| source.ip() == self.from);
            let Some(mut header) = ours.filter(|_| known) else {
                self.strangers += 1;
                continue;
            };
            if header.sequence != HELLO && !self.note(&header, received_wall_ns) {
                continue;
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
        Ok(())
    }

    /// Whether it is to be sent back.
    fn note(&mut self, header: &Header, received_wall_ns: u64) -> bool {
        if !self.tracker.see(header.sequence) {
            return false;
        }
        let transit_ns = received_wall_ns.wrapping_sub(header.sent_wall_ns).cast_signed();
        self.variation.add(header.sequence, transit_ns);
        match u64::try_from(transit_ns) {
            Ok(delay_ns) if self.same_clock => self.delay.saturating_record(delay_ns),
            Ok(_) => {}
            Err(_) => self.negative += 1,
        }
        true
    }

    fn counts(&self, socket: &UdpSocket) -> Value {
        json!({
            "received": self.tracker.unique,
            "duplicates": self.tracker.duplicates,
            "reordered": self.tracker.reordered,
            "strangers": self.strangers,
            "unsent": self.unsent,
            "negative": self.negative,
            "drops": batch::drops(socket),
        })
    }

    fn report(&self, mut counts: Value) -> Value {
        counts["jitter_ns"] = json!(self.variation.jitter.value_ns());
        counts["mean_difference_ns"] = json!(self.variation.jitter.mean_difference_ns());
        counts["ipdv"] = json!(closed_loop::pairs(&self.variation.ipdv));
        counts["pdv"] = json!(closed_loop::pairs(&self.variation.pdv()));
        counts["pdv_cut_off"] = json!(self.variation.cut_off());
        counts["delay"] = json!(closed_loop::pairs(&self.delay));
        counts
    }
}
