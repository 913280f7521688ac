//! Sends datagrams as the schedule says, many at a time where they are due together.
use super::batch::{self, Batch, SLOTS};
use super::pace::Pace;
use super::packet::Header;
use crate::clock;
use crate::error::ProbeError;
use crate::session::Session;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// A datagram that leaves later than this after its time is late.
pub const LATE_NS: u64 = 1_000_000;
/// Longest sleep between two looks whether it is over.
const LOOK_AROUND_NS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub flow_id: u64,
    pub to: SocketAddr,
    pub packet_bytes: usize,
    pub pace: Pace,
    /// How many; `None` until it is over.
    pub packets: Option<u64>,
    /// Before a datagram is due the last bit of waiting is spent looking at the clock.
    pub spin_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Datagrams that the kernel took.
    pub packets: u64,
    /// Of them, those that left late.
    pub late: u64,
    /// When the first and the last left.
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Sent {
    pub fn late_ratio(&self) -> f64 {
        self.late as f64 / self.packets.max(1) as f64
    }

    /// Datagrams a second: n of them span n - 1 intervals. `None` below two.
    pub fn per_s(&self) -> Option<f64> {
        let ns = self.last_ns.saturating_sub(self.first_ns);
        (self.packets > 1 && ns > 0).then(|| (self.packets - 1) as f64 * 1e9 / ns as f64)
    }
}

/// Sends until all are sent or `over` says so.
pub fn send(
    session: Session,
    socket: &UdpSocket,
    stream: &Stream,
    mut over: impl FnMut(&Sent) -> Result<bool, ProbeError>,
) -> Result<Sent, ProbeError> {
    // SAFETY: sets a property of the calling thread: sleeps end up to 50 µs late by default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let mut batch = Batch::new(session, stream.packet_bytes);
    batch.address(stream.to, stream.packet_bytes);
    let mut sent = Sent::default();
    let limit = stream.packets.unwrap_or(u64::MAX);
    while sent.packets < limit && !over(&sent)? {
        let now_ns = clock::monotonic_ns();
        let due = stream.pace.due_by(now_ns).min(limit) - sent.packets;
        if due == 0 {
            wait(stream.pace.due_ns(sent.packets) - now_ns, stream.spin_ns);
            continue;
        }
        let count = (due as usize).min(SLOTS);
        let sent_wall_ns = clock::realtime_ns();
        for slot in 0..count {
            let sequence = sent.packets + slot as u64;
            let intended_ns = stream.pace.due_ns(sequence);
            Header {
                flow_id: stream.flow_id,
                sequence,
                intended_ns,
                sent_ns: now_ns,
                sent_wall_ns,
                ..Header::default()
            }
            .write(batch.slot(slot));
        }
        let took = batch.send(socket, count)? as u64;
        if took > 0 {
            let is_late = |number: &u64| now_ns - stream.pace.due_ns(*number) > LATE_NS;
            sent.late += (sent.packets..sent.packets + took).filter(is_late).count() as u64;
            sent.first_ns = if sent.packets == 0 { now_ns } else { sent.first_ns };
            sent.last_ns = now_ns;
            sent.packets += took;
        }
    }
    Ok(sent)
}

/// Datagrams that follow one another as fast as they go, a batch at a time.
pub struct Flood {
    batch: Batch,
    flow_id: u64,
    packet_bytes: usize,
    /// Messages of a batch: one for each datagram, or fewer that the kernel cuts into datagrams.
    messages: usize,
    pub sent: Sent,
}

impl Flood {
    /// To `to`, each of `packet_bytes`.
    pub fn new(session: Session, flow_id: u64, to: SocketAddr, packet_bytes: usize) -> Self {
        let mut batch = Batch::new(session, packet_bytes);
        batch.address(to, packet_bytes);
        Self { batch, flow_id, packet_bytes, messages: SLOTS, sent: Sent::default() }
    }

    /// Lets the kernel (or the network card) cut few large messages into the datagrams of a batch.
    pub fn offload_segmentation(&mut self, socket: &UdpSocket) -> Result<(), ProbeError> {
        batch::set_segment_bytes(socket, self.packet_bytes)?;
        self.messages = self.batch.join_slots();
        Ok(())
    }

    /// Sends a batch; its bytes.
    pub fn send(&mut self, socket: &UdpSocket) -> Result<u64, ProbeError> {
        let (now_ns, sent_wall_ns) = (clock::monotonic_ns(), clock::realtime_ns());
        for slot in 0..SLOTS {
            Header {
                flow_id: self.flow_id,
                sequence: self.sent.packets + slot as u64,
                intended_ns: now_ns,
                sent_ns: now_ns,
                sent_wall_ns,
                ..Header::default()
            }
            .write(self.batch.slot(slot));
        }
        let took = self.batch.send(socket, self.messages)?;
        // Of joined slots all messages but the last are of the same size.
        let took = (took * SLOTS.div_ceil(self.messages)).min(SLOTS) as u64;
        if took > 0 {
            self.sent.first_ns = if self.sent.packets == 0 { now_ns } else { self.sent.first_ns };
            self.sent.last_ns = now_ns;
            self.sent.packets += took;
        }
        Ok(took * self.packet_bytes as u64)
    }
}

#[inline]
fn wait(left_ns: u64, spin_ns: u64) {
    if left_ns > spin_ns {
        std::thread::sleep(Duration::from_nanos((left_ns - spin_ns).min(LOOK_AROUND_NS)));
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::udp::batch::socket;
    use crate::session::Session;
    use std::net::Ipv4Addr;

    #[test]
    fn what_is_due_is_sent_in_order_and_counted() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (near, far) = (socket(any).unwrap(), socket(any).unwrap());
        let stream = Stream {
            flow_id: 5,
            to: far.local_addr().unwrap(),
            packet_bytes: 70,
            pace: Pace::new(clock::monotonic_ns(), 20_000.0),
            packets: Some(100),
            spin_ns: 50_000,
        };
        let sent = send(Session::detached(), &near, &stream, |_| Ok(false)).unwrap();
        assert_eq!(sent.packets, 100);
        let mut batch = Batch::new(Session::detached(), 70);
        let mut next = 0;
        while next < 100 {
            for slot in 0..batch.receive(&far).unwrap() {
                let header = Header::read(batch.received(slot)).unwrap();
                assert_eq!((header.flow_id, header.sequence), (5, next));
                assert!(header.sent_ns >= header.intended_ns);
                next += 1;
            }
        }
        let over =
            send(Session::detached(), &near, &Stream { packets: None, ..stream }, |_| Ok(true))
                .unwrap();
        assert_eq!((over.packets, over.per_s()), (0, None));
    }
}
