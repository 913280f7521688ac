//! Datagrams at a set rate; the same code on both sides.
use super::datagram_receiver::{receive, ReceivedStats};
use super::paced_sender::{PacedSender, SendingPace};
use super::{Intervals, TransferTask};
use crate::error::Result;
use crate::load::busy_time::Busy;
use crate::net::udp::batch::DatagramBatch;
use crate::net::udp::packet::Header;
use crate::net::udp::sender::{self, DatagramStream, Flood};
use crate::threads::workers;
use crate::trial::idle_cpu;
use crate::trial::session::Session;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
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

/// Returns the share of the sent datagrams that did not arrive; `None` if none was sent.
pub fn loss_ratio(sent: &SentStats, received: &ReceivedStats) -> Option<f64> {
    let lost = sent.packets - received.packets;
    (sent.packets > 0).then(|| lost as f64 / sent.packets as f64)
}

/// The path of one side's datagrams.
pub struct DatagramPath<'a> {
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
    task: &TransferTask,
    path: &DatagramPath<'_>,
    conduct: impl FnOnce(&Receiving, &mut dyn FnMut() -> Result<u64>) -> Result<()>,
) -> Result<UdpTransferStats> {
    let receiving = Receiving {
        wanted: AtomicU64::new(u64::MAX),
        until_ns: AtomicU64::new(u64::MAX),
        stop: AtomicBool::new(false),
        all_sent: AtomicBool::new(!path.sends),
    };
    let shared = &receiving;
    let first_cpu_ns = idle_cpu::benchmark_cpu_ns();
    std::thread::scope(|scope| {
        let receiver = workers::start(scope, None, || receive(session, task, path, shared))?;
        let mut sender = None;
        if path.sends {
            let started = workers::start(scope, None, || send(session, task, path, shared));
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
        Ok(UdpTransferStats { sent, received, cpu_ns: idle_cpu::benchmark_cpu_ns() - first_cpu_ns })
    })
}

fn send(
    session: Session,
    task: &TransferTask,
    path: &DatagramPath<'_>,
    shared: &Receiving,
) -> Result<SentStats> {
    let mut intervals = Intervals::new(task.interval_ns);
    let mut all = match &task.pace {
        Some(pace) if task.per_s == 0.0 => flood(session, task, pace, path, shared, &mut intervals),
        pace => {
            let per_s = task.per_s * pace.map_or(1.0, |pace| pace.intensity_ratio);
            paced(session, task, per_s, path, shared, &mut intervals)
        }
    }?;
    shared.all_sent.store(true, Ordering::Relaxed);
    all.elapsed_ns = intervals.elapsed_ns();
    all.intervals = intervals.rates;
    Ok(all)
}

fn paced(
    session: Session,
    task: &TransferTask,
    per_s: f64,
    path: &DatagramPath<'_>,
    shared: &Receiving,
    intervals: &mut Intervals,
) -> Result<SentStats> {
    let stream = DatagramStream {
        flow_id: path.flow_id,
        to: path.far,
        packet_bytes: task.packet_bytes,
        per_s,
        slots: task.slots(),
        spin_ns: 50_000,
    };
    let sent = sender::send(session, path.socket, &stream, |sent| {
        intervals.note(clock::monotonic_ns(), sent.packets);
        session.check().map(|()| shared.stop.load(Ordering::Relaxed))
    })?;
    let (packets, late_ratio, per_s) = (sent.packets, sent.late_ratio(), sent.per_s());
    Ok(SentStats { packets, late_ratio, per_s, ..SentStats::default() })
}

fn flood(
    session: Session,
    task: &TransferTask,
    pace: &SendingPace,
    path: &DatagramPath<'_>,
    shared: &Receiving,
    intervals: &mut Intervals,
) -> Result<SentStats> {
    scheduling::minimise_timer_slack();
    let (busy, mut shares) = (Busy::default(), Intervals::new(task.interval_ns));
    let fd = path.socket.as_raw_fd();
    let mut flood = Flood::new(session, path.flow_id, path.socket, path.far, task.packet_bytes)?;
    if task.segmentation_offload {
        flood.offload_segmentation(path.socket)?;
    }
    let mut sender =
        PacedSender::new(session, pace, fd, task.packet_bytes, 1, task.interval_ns, &busy);
    let over = || shared.stop.load(Ordering::Relaxed);
    while !over() {
        sender.send_or_wait(|| flood.send(path.socket), over)?;
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

/// Sends every hello back until `over`; where the first came from.
pub fn answer_hellos(
    session: Session,
    socket: &UdpSocket,
    flow_id: u64,
    from: IpAddr,
    mut over: impl FnMut() -> Result<bool>,
) -> Result<Option<SocketAddr>> {
    let mut batch = DatagramBatch::new(session, 64);
    let mut source = None;
    while !over()? {
        for slot in 0..batch.receive(socket)? {
            let is_own = Header::read(batch.received(slot)).is_some_and(|h| h.flow_id == flow_id);
            let known = batch.source(slot).filter(|address| address.ip() == from && is_own);
            if let Some(address) = known {
                source = Some(address);
                batch.answer(slot, 0);
                batch.send(socket, 1)?;
            }
        }
    }
    Ok(source)
}
