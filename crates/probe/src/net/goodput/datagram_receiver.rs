//! The receiving end of datagrams; the same code on both sides.
use super::blocks::{BlockRates, Blocks};
use super::datagrams::{DatagramPath, Receiving};
use super::{Intervals, TransferTask};
use crate::error::Result;
use crate::net::udp::batch::{self, DatagramBatch, LONGEST_BYTES, SLOTS};
use crate::net::udp::losses::{Arrived, Losses};
use crate::net::udp::packet::{Header, HELLO};
use crate::net::udp::tracker::Tracker;
use crate::net::variation::{DelayVariation, Jitter};
use crate::timing::closed_loop::pairs;
use crate::trial::session::Session;
use nephoscope_linux::clock;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;

/// Pause of the receiver of a flood while less than a batch waits. A receiver that sleeps in the kernel is
/// woken up by each datagram, at the sender's cost. Buffers of 200 kB hold 64-byte datagrams for longer.
const PAUSE_NS: u64 = 100_000;

/// Datagrams that one side received.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReceivedStats {
    /// Different datagrams.
    pub packets: u64,
    /// Rate from the first to the last arrival; `None` below two.
    pub per_s: Option<f64>,
    /// The same of their bytes.
    pub bytes_per_s: Option<f64>,
    pub duplicates: u64,
    /// Datagrams that arrived after a later one.
    pub reordered: u64,
    /// Datagrams of other programs.
    pub unauthenticated_peers: u64,
    /// Datagrams that found the socket's buffer full; `None` if the kernel does not count them.
    pub drops: Option<u64>,
    /// RFC 3550.
    pub jitter_ns: Option<f64>,
    /// (|D| of successive datagrams, count).
    pub ipdv: Vec<(f64, u64)>,
    /// (delay minus the least delay, count).
    pub pdv: Vec<(f64, u64)>,
    pub losses: Losses,
    pub blocks: BlockRates,
    /// Bytes per second, by interval.
    pub intervals: Vec<(u64, f64)>,
    pub elapsed_ns: u64,
}

/// What has arrived, and when.
struct ReceivedDatagrams<'a> {
    path: &'a DatagramPath<'a>,
    tracker: Tracker,
    /// `None` of a flood: what it delivers is not timed datagram by datagram.
    times: Option<ArrivalTiming>,
    blocks: Blocks,
    bytes: u64,
    unauthenticated_peers: u64,
    /// Time, bytes and datagrams at the first arrival, which begins the time and is no part of it.
    first: Option<(u64, u64, u64)>,
    last_ns: u64,
}

struct ArrivalTiming {
    jitter: Jitter,
    variation: DelayVariation,
    arrived: Arrived,
}

impl<'a> ReceivedDatagrams<'a> {
    fn new(task: &TransferTask, path: &'a DatagramPath<'a>) -> Self {
        let times = task.pace.is_none().then(|| ArrivalTiming {
            jitter: Jitter::default(),
            variation: DelayVariation::new(task.packets().unwrap_or(0)),
            arrived: Arrived::default(),
        });
        Self {
            path,
            tracker: Tracker::new(),
            times,
            blocks: Blocks::new(task.block_bytes, 1, clock::monotonic_ns()),
            bytes: 0,
            unauthenticated_peers: 0,
            first: None,
            last_ns: 0,
        }
    }

    /// Takes note of the slots of a batch that were received.
    fn note_batch(&mut self, batch: &DatagramBatch, slots: usize, now_ns: u64) {
        let (now_wall_ns, before_bytes) = (clock::realtime_ns(), self.bytes);
        for slot in 0..slots {
            let known = batch.source(slot).is_some_and(|source| source.ip() == self.path.far.ip());
            for datagram in batch.datagrams(slot) {
                let header = Header::read(datagram).filter(|_| known);
                match header.filter(|header| header.flow_id == self.path.flow_id) {
                    Some(header) => self.note(&header, datagram.len(), now_wall_ns),
                    None => self.unauthenticated_peers += 1,
                }
            }
        }
        if self.bytes > before_bytes {
            self.blocks.received(now_ns, self.bytes - before_bytes, true);
        }
        if slots > 0 && self.tracker.unique > 0 {
            self.first.get_or_insert((now_ns, self.bytes, self.tracker.unique));
            self.last_ns = now_ns;
        }
    }

    #[inline]
    fn note(&mut self, header: &Header, bytes: usize, now_wall_ns: u64) {
        if header.sequence == HELLO || !self.tracker.see(header.sequence) {
            return;
        }
        self.bytes += bytes as u64;
        if let Some(times) = &mut self.times {
            let transit_ns = now_wall_ns.wrapping_sub(header.sent_wall_ns).cast_signed();
            times.jitter.add(transit_ns);
            times.variation.add(header.sequence, transit_ns);
            times.arrived.see(header.sequence);
        }
    }

    /// sent: how many were, where that is known.
    fn stats(self, task: &TransferTask, sent: Option<u64>, intervals: Intervals) -> ReceivedStats {
        let (first_ns, first_bytes, first_packets) = self.first.unwrap_or_default();
        let rate = |sum: u64| {
            let ns = self.last_ns.saturating_sub(first_ns);
            (ns > 0).then(|| sum as f64 * 1e9 / ns as f64)
        };
        let times = self.times.as_ref();
        let losses = times.zip(sent).map(|(times, sent)| {
            times.arrived.losses(task.slots().take(usize::try_from(sent).unwrap_or(usize::MAX)))
        });
        ReceivedStats {
            packets: self.tracker.unique,
            ipdv: times.map(|times| pairs(&times.variation.ipdv)).unwrap_or_default(),
            pdv: times.map(|times| pairs(&times.variation.pdv())).unwrap_or_default(),
            losses: losses.unwrap_or_default(),
            per_s: rate(self.tracker.unique - first_packets),
            bytes_per_s: rate(self.bytes - first_bytes),
            duplicates: self.tracker.duplicates,
            reordered: self.tracker.reordered,
            unauthenticated_peers: self.unauthenticated_peers,
            drops: None,
            jitter_ns: times.and_then(|times| times.jitter.value_ns()),
            blocks: Blocks::joined(&[self.blocks]),
            elapsed_ns: intervals.elapsed_ns(),
            intervals: intervals.rates,
        }
    }
}

/// Receives until all that `shared` wants has come, or until its time is over.
pub fn receive(
    session: Session,
    task: &TransferTask,
    path: &DatagramPath<'_>,
    shared: &Receiving,
) -> Result<ReceivedStats> {
    let is_flood = task.pace.is_some();
    let slot_bytes = if task.segmentation_offload {
        batch::join_received(path.socket);
        LONGEST_BYTES
    } else {
        task.packet_bytes.max(64)
    };
    let mut batch = DatagramBatch::new(session, slot_bytes);
    let first_drops = batch::drops(path.socket);
    let mut intervals = Intervals::new(task.interval_ns);
    let mut arrivals = ReceivedDatagrams::new(task, path);
    loop {
        let got = if is_flood {
            batch.receive_up_to(path.socket, SLOTS)?
        } else {
            batch.receive(path.socket)?
        };
        let now_ns = clock::monotonic_ns();
        arrivals.note_batch(&batch, got, now_ns);
        intervals.note(now_ns, arrivals.bytes);
        let all = arrivals.tracker.unique >= shared.wanted.load(Ordering::Relaxed);
        if all || now_ns >= shared.until_ns.load(Ordering::Relaxed) {
            break;
        }
        if is_flood && got > 0 && got < SLOTS {
            clock::nap(PAUSE_NS);
        }
    }
    let sent = Some(shared.wanted.load(Ordering::Relaxed)).filter(|sent| *sent < u64::MAX);
    // An earlier task of the same connection may have lost some, too.
    let last_drops = batch::drops(path.socket);
    let drops = first_drops.zip(last_drops).map(|(first, last)| drops_between(first, last));
    Ok(ReceivedStats { drops, ..arrivals.stats(task, sent, intervals) })
}

/// Returns how often the kernel's counter, which has 32 bits, rose.
fn drops_between(first: u32, last: u32) -> u64 {
    u64::from(last.wrapping_sub(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_beyond_the_end_of_the_counter() {
        assert_eq!(drops_between(5, 5), 0);
        assert_eq!(drops_between(u32::MAX - 1, 3), 5);
    }
}
