//! Datagrams at a set rate; the same code on both sides.
use super::blocks::{BlockRates, Blocks};
use super::paced_sender::{PacedSender, SendingPace};
use super::{Intervals, Task};
use crate::clock;
use crate::closed_loop::pairs;
use crate::error::ProbeError;
use crate::load::busy_time::Busy;
use crate::net::udp::batch::{self, Batch};
use crate::net::udp::losses::{Arrived, Losses};
use crate::net::udp::pace::Pace;
use crate::net::udp::packet::{Header, HELLO};
use crate::net::udp::sender::{self, Flood, Stream};
use crate::net::udp::tracker::Tracker;
use crate::net::variation::{Jitter, Variation};
use crate::session::Session;
use crate::workers;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What one side sent and received.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UdpTransferStats {
    pub sent: SentStats,
    pub received: ReceivedStats,
    /// CPU time of the process over `received.elapsed_ns`.
    pub cpu_ns: u64,
}

/// Datagrams that one side sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SentStats {
    pub packets: u64,
    /// Share that left late.
    pub late_ratio: f64,
    /// Rate from the first to the last datagram.
    pub per_s: Option<f64>,
    /// Rates over the sender's whole time, by interval.
    pub intervals: Vec<(u64, f64)>,
    /// Share of the time in which the sender of a load had something under way.
    pub busy_ratio: Option<f64>,
    pub busy_intervals: Vec<(u64, f64)>,
    pub elapsed_ns: u64,
}

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
    pub strangers: u64,
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

/// Returns the share of the sent datagrams that did not arrive; `None` if none was sent.
pub fn loss_ratio(sent: &SentStats, received: &ReceivedStats) -> Option<f64> {
    let lost = sent.packets - received.packets;
    (sent.packets > 0).then(|| lost as f64 / sent.packets as f64)
}

/// The way of one side's datagrams.
pub struct Way<'a> {
    pub socket: &'a UdpSocket,
    pub flow_id: u64,
    /// Where to, and where from.
    pub far: SocketAddr,
    pub sends: bool,
}

pub struct Receiving {
    /// It ends when it has so many.
    pub wanted: AtomicU64,
    pub until_ns: AtomicU64,
    pub stop: AtomicBool,
    pub all_sent: AtomicBool,
}

/// Sends and receives. `conduct` is called on the calling thread meanwhile: it waits until the time
/// is over, sets `stop`, exchanges with the far side how many were sent and sets `wanted` and
/// `until_ns`; it is given the number sent when it asks for it.
pub fn run(
    session: Session,
    task: &Task,
    way: &Way<'_>,
    conduct: impl FnOnce(
        &Receiving,
        &mut dyn FnMut() -> Result<u64, ProbeError>,
    ) -> Result<(), ProbeError>,
) -> Result<UdpTransferStats, ProbeError> {
    let receiving = Receiving {
        wanted: AtomicU64::new(u64::MAX),
        until_ns: AtomicU64::new(u64::MAX),
        stop: AtomicBool::new(false),
        all_sent: AtomicBool::new(!way.sends),
    };
    let shared = &receiving;
    let first_cpu_ns = clock::process_cpu_ns();
    std::thread::scope(|scope| {
        let receiver = workers::start(scope, None, || receive(session, task, way, shared))?;
        let mut sender = None;
        if way.sends {
            let started = workers::start(scope, None, || send(session, task, way, shared));
            if started.is_err() {
                shared.until_ns.store(0, Ordering::Relaxed);
            }
            sender = Some(started?);
        }
        let mut sent = SentStats::default();
        let mut sender_ended = || {
            shared.stop.store(true, Ordering::Relaxed);
            if let Some(sender) = sender.take() {
                sent = sender.join()?;
            }
            Ok(sent.packets)
        };
        let conducted = conduct(shared, &mut sender_ended);
        if conducted.is_err() {
            shared.until_ns.store(0, Ordering::Relaxed);
        }
        sender_ended()?;
        let received = receiver.join()?;
        conducted?;
        Ok(UdpTransferStats { sent, received, cpu_ns: clock::process_cpu_ns() - first_cpu_ns })
    })
}

fn send(
    session: Session,
    task: &Task,
    way: &Way<'_>,
    shared: &Receiving,
) -> Result<SentStats, ProbeError> {
    let mut intervals = Intervals::new(task.interval_ns);
    let mut all = match &task.press {
        Some(press) if task.per_s == 0.0 => {
            flood(session, task, press, way, shared, &mut intervals)
        }
        press => {
            let per_s = task.per_s * press.map_or(1.0, |press| press.intensity_ratio);
            paced(session, task, per_s, way, shared, &mut intervals)
        }
    }?;
    shared.all_sent.store(true, Ordering::Relaxed);
    all.elapsed_ns = intervals.elapsed_ns();
    all.intervals = intervals.rates;
    Ok(all)
}

fn paced(
    session: Session,
    task: &Task,
    per_s: f64,
    way: &Way<'_>,
    shared: &Receiving,
    intervals: &mut Intervals,
) -> Result<SentStats, ProbeError> {
    let stream = Stream {
        flow_id: way.flow_id,
        to: way.far,
        packet_bytes: task.packet_bytes,
        pace: Pace::new(clock::monotonic_ns() + sender::LATE_NS / 2, per_s),
        packets: task.packets(),
        spin_ns: 50_000,
    };
    let sent = sender::send(session, way.socket, &stream, |sent| {
        intervals.note(clock::monotonic_ns(), sent.packets);
        session.check().map(|()| shared.stop.load(Ordering::Relaxed))
    })?;
    let (packets, late_ratio, per_s) = (sent.packets, sent.late_ratio(), sent.per_s());
    Ok(SentStats { packets, late_ratio, per_s, ..SentStats::default() })
}

fn flood(
    session: Session,
    task: &Task,
    press: &SendingPace,
    way: &Way<'_>,
    shared: &Receiving,
    intervals: &mut Intervals,
) -> Result<SentStats, ProbeError> {
    // SAFETY: sets a property of the calling thread: sleeps end up to 50 µs late by default.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let (busy, mut shares) = (Busy::default(), Intervals::new(task.interval_ns));
    let fd = way.socket.as_raw_fd();
    let mut presser =
        PacedSender::new(session, press, fd, task.packet_bytes, 1, task.interval_ns, &busy);
    let mut flood = Flood::new(session, way.flow_id, way.far, task.packet_bytes);
    if task.segmentation_offload {
        flood.offload_segmentation(way.socket)?;
    }
    let over = || shared.stop.load(Ordering::Relaxed);
    while !over() {
        presser.turn(|| flood.send(way.socket), over)?;
        let now_ns = clock::monotonic_ns();
        intervals.note(now_ns, flood.sent.packets);
        shares.note(now_ns, busy.ns(now_ns));
    }
    let busy_ns = busy.ns(clock::monotonic_ns());
    Ok(SentStats {
        packets: flood.sent.packets,
        per_s: flood.sent.per_s(),
        busy_ratio: Some(busy_ns as f64 / shares.elapsed_ns().max(1) as f64),
        busy_intervals: shares.rates.iter().map(|(at_ns, s)| (*at_ns, s / 1e9)).collect(),
        ..SentStats::default()
    })
}

fn receive(
    session: Session,
    task: &Task,
    way: &Way<'_>,
    shared: &Receiving,
) -> Result<ReceivedStats, ProbeError> {
    let (mut tracker, mut jitter) = (Tracker::new(), Jitter::default());
    // What a load delivers is not looked at datagram by datagram.
    let is_measured = task.press.is_none();
    let mut variation = is_measured.then(|| Variation::new(task.packets().unwrap_or(0)));
    let mut arrived = Arrived::default();
    let mut blocks = Blocks::new(task.block_bytes, 1, clock::monotonic_ns());
    let mut strangers = 0;
    let mut batch = Batch::new(session, task.packet_bytes.max(64));
    let first_drops = batch::drops(way.socket);
    let mut intervals = Intervals::new(task.interval_ns);
    let (mut first_ns, mut last_ns, mut bytes) = (0, 0, 0u64);
    let (mut first_bytes, mut first_packets) = (0, 0);
    loop {
        let got = batch.receive(way.socket)?;
        let (now_ns, now_wall_ns) = (clock::monotonic_ns(), clock::realtime_ns());
        let before_bytes = bytes;
        for slot in 0..got {
            let datagram = batch.received(slot);
            let known = batch.source(slot).is_some_and(|source| source.ip() == way.far.ip());
            let header = Header::read(datagram).filter(|_| known);
            let Some(header) = header.filter(|header| header.flow_id == way.flow_id) else {
                strangers += 1;
                continue;
            };
            if header.sequence == HELLO || !tracker.see(header.sequence) {
                continue;
            }
            bytes += datagram.len() as u64;
            let transit_ns = now_wall_ns.wrapping_sub(header.sent_wall_ns).cast_signed();
            jitter.add(transit_ns);
            if let Some(variation) = &mut variation {
                variation.add(header.sequence, transit_ns);
                arrived.see(header.sequence);
            }
        }
        if bytes > before_bytes {
            blocks.received(now_ns, bytes - before_bytes, true);
        }
        if got > 0 && tracker.unique > 0 {
            if first_ns == 0 {
                // The arrivals that begin the time are not part of what was carried in it.
                (first_ns, first_bytes, first_packets) = (now_ns, bytes, tracker.unique);
            }
            last_ns = now_ns;
        }
        intervals.note(now_ns, bytes);
        let all = tracker.unique >= shared.wanted.load(Ordering::Relaxed);
        if all || now_ns >= shared.until_ns.load(Ordering::Relaxed) {
            break;
        }
    }
    let sent = shared.wanted.load(Ordering::Relaxed);
    let known = is_measured && sent < u64::MAX;
    let rate =
        |sum: u64| (last_ns > first_ns).then(|| sum as f64 * 1e9 / (last_ns - first_ns) as f64);
    Ok(ReceivedStats {
        packets: tracker.unique,
        ipdv: variation.as_ref().map(|all| pairs(&all.ipdv)).unwrap_or_default(),
        pdv: variation.as_ref().map(|all| pairs(&all.pdv())).unwrap_or_default(),
        losses: if known { arrived.losses(sent) } else { Losses::default() },
        blocks: Blocks::joined(&[blocks]),
        per_s: rate(tracker.unique - first_packets),
        bytes_per_s: rate(bytes - first_bytes),
        duplicates: tracker.duplicates,
        reordered: tracker.reordered,
        strangers,
        // An earlier task of the same connection may have lost some, too.
        drops: batch::drops(way.socket).zip(first_drops).map(|(last, first)| last - first),
        jitter_ns: jitter.value_ns(),
        elapsed_ns: intervals.elapsed_ns(),
        intervals: intervals.rates,
    })
}

/// Sends every hello back until `over`; where the first came from.
pub fn answer_hellos(
    session: Session,
    socket: &UdpSocket,
    flow_id: u64,
    from: IpAddr,
    mut over: impl FnMut() -> Result<bool, ProbeError>,
) -> Result<Option<SocketAddr>, ProbeError> {
    let mut batch = Batch::new(session, 64);
    let mut source = None;
    while !over()? {
        for slot in 0..batch.receive(socket)? {
            let ours = Header::read(batch.received(slot)).is_some_and(|h| h.flow_id == flow_id);
            let known = batch.source(slot).filter(|address| address.ip() == from && ours);
            if let Some(address) = known {
                source = Some(address);
                batch.answer(slot, 0);
                batch.send(socket, 1)?;
            }
        }
    }
    Ok(source)
}
