//! Sends datagrams as the schedule says, many at a time where they are due together.
use super::batch::{self, DatagramBatch, SLOTS};
use super::pace::Pace;
use super::packet::Header;
use super::slots::SendSlots;
use crate::error::{ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// A datagram that leaves later than this after its time is late.
pub const LATE_NS: u64 = 1_000_000;
/// Longest sleep between two looks whether it is over.
const CHECK_INTERVAL_NS: u64 = 20_000_000;

#[derive(Clone, Debug)]
pub struct DatagramStream {
    pub flow_id: u64,
    pub to: SocketAddr,
    pub packet_bytes: usize,
    /// Slots a second, from when the sender is prepared.
    pub per_s: f64,
    /// The slots in which a datagram leaves.
    pub slots: SendSlots,
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
    stream: &DatagramStream,
    mut over: impl FnMut(&Sent) -> Result<bool>,
) -> Result<Sent> {
    scheduling::minimise_timer_slack();
    let mut batch = DatagramBatch::new(session, stream.packet_bytes);
    batch.address(stream.to, stream.packet_bytes);
    let mut sent = Sent::default();
    // The first is late neither because the gate took its time nor because the memory did.
    let pace = Pace::new(clock::monotonic_ns() + LATE_NS / 2, stream.per_s);
    let mut times = stream.slots.clone().map(|slot| pace.due_ns(slot)).peekable();
    // When those are due that are to leave next.
    let mut due_ns = VecDeque::with_capacity(SLOTS);
    while !over(&sent)? {
        let now_ns = clock::monotonic_ns();
        while due_ns.len() < SLOTS {
            let Some(time_ns) = times.next_if(|time_ns| *time_ns <= now_ns) else { break };
            due_ns.push_back(time_ns);
        }
        if due_ns.is_empty() {
            let Some(next_ns) = times.peek() else { break };
            wait(next_ns - now_ns, stream.spin_ns);
            continue;
        }
        let sent_wall_ns = clock::realtime_ns();
        for (place, intended_ns) in due_ns.iter().enumerate() {
            Header {
                flow_id: stream.flow_id,
                sequence: sent.packets + place as u64,
                intended_ns: *intended_ns,
                sent_ns: now_ns,
                sent_wall_ns,
                ..Header::default()
            }
            .write(batch.slot(place));
        }
        let took = batch.send(socket, due_ns.len())?;
        if took > 0 {
            let is_late = |due_ns: &u64| now_ns - due_ns > LATE_NS;
            sent.late += due_ns.drain(..took).filter(is_late).count() as u64;
            sent.first_ns = if sent.packets == 0 { now_ns } else { sent.first_ns };
            sent.last_ns = now_ns;
            sent.packets += took as u64;
        }
    }
    Ok(sent)
}

/// Datagrams that follow one another as fast as they go, a batch at a time.
pub struct Flood {
    batch: DatagramBatch,
    flow_id: u64,
    packet_bytes: usize,
    /// Messages of a batch: one for each datagram, or fewer that the kernel cuts into datagrams.
    messages: usize,
    pub sent: Sent,
}

impl Flood {
    /// To `to`, each of `packet_bytes`; connects the socket there.
    pub fn new(
        session: Session,
        flow_id: u64,
        socket: &UdpSocket,
        to: SocketAddr,
        packet_bytes: usize,
    ) -> Result<Self> {
        // The kernel looks up the route of a connected socket once, not for every datagram.
        socket.connect(to).map_err(|error| ProbeError::os("Connecting a socket", &error))?;
        let mut batch = DatagramBatch::new(session, packet_bytes);
        batch.address(to, packet_bytes);
        batch.send_connected();
        Ok(Self { batch, flow_id, packet_bytes, messages: SLOTS, sent: Sent::default() })
    }

    /// Lets the kernel (or the network card) cut few large messages into the datagrams of a batch.
    pub fn offload_segmentation(&mut self, socket: &UdpSocket) -> Result<()> {
        batch::set_segment_bytes(socket, self.packet_bytes)?;
        self.messages = self.batch.join_slots();
        Ok(())
    }

    /// Sends a batch; its bytes.
    pub fn send(&mut self, socket: &UdpSocket) -> Result<u64> {
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
        std::thread::sleep(Duration::from_nanos((left_ns - spin_ns).min(CHECK_INTERVAL_NS)));
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::udp::batch::socket;
    use crate::trial::session::Session;
    use std::net::Ipv4Addr;

    #[test]
    fn what_is_due_is_sent_in_order_and_counted() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (near, far) = (socket(any).unwrap(), socket(any).unwrap());
        let stream = DatagramStream {
            flow_id: 5,
            to: far.local_addr().unwrap(),
            packet_bytes: 70,
            per_s: 20_000.0,
            slots: SendSlots::new(Some(100), None),
            spin_ns: 50_000,
        };
        let sent = send(Session::detached(), &near, &stream, |_| Ok(false)).unwrap();
        assert_eq!(sent.packets, 100);
        let mut batch = DatagramBatch::new(Session::detached(), 70);
        let mut next = 0;
        while next < 100 {
            for slot in 0..batch.receive(&far).unwrap() {
                let header = Header::read(batch.received(slot)).unwrap();
                assert_eq!((header.flow_id, header.sequence), (5, next));
                assert!(header.sent_ns >= header.intended_ns);
                next += 1;
            }
        }
        let endless = DatagramStream { slots: SendSlots::new(None, None), ..stream };
        let over = send(Session::detached(), &near, &endless, |_| Ok(true)).unwrap();
        assert_eq!((over.packets, over.per_s()), (0, None));
    }
}
