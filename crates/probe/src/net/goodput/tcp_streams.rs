//! TCP streams, each with a thread at either end; the same code on both sides.
use super::paced_sender::PacedSender;
use super::{Intervals, Task};
use crate::buffer::{Buffer, Pages};
use crate::clock;
use crate::error::ProbeError;
use crate::load::busy_time::Busy;
use crate::net::connection::End;
use crate::net::meter::Meter;
use crate::net::tcp_info::TcpInfo;
use crate::workers::{self, Worker};
use nephoscope_wire::random::Random;
use serde::{Deserialize, Serialize};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// What one side sent and received.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TcpTransferStats {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Bytes a second of each stream that it received.
    pub rates: Vec<f64>,
    /// What it received, interval by interval: (end since its start, bytes a second).
    pub intervals: Vec<(u64, f64)>,
    /// What it received a second over its whole time.
    pub bytes_per_s: f64,
    /// Share of the time in which its senders had something under way, mean of them.
    pub busy_ratio: Option<f64>,
    pub busy_intervals: Vec<(u64, f64)>,
    /// What the kernel knows of the streams that it sent.
    pub info: Option<TcpInfo>,
    pub cpu_ns: u64,
    pub elapsed_ns: u64,
}

pub struct Progress {
    received_bytes: AtomicU64,
    /// Receivers whose time is over.
    pub complete: AtomicUsize,
    stop: AtomicBool,
    failed: AtomicBool,
}

/// Sends on some connections and receives on others until `over` says so, then until the far side
/// ends too. `finish` is called once in between.
pub fn run(
    task: &Task,
    senders: Vec<End>,
    receivers: Vec<End>,
    mut over: impl FnMut(&Progress, u64) -> Result<bool, ProbeError>,
    finish: impl FnOnce() -> Result<(), ProbeError>,
) -> Result<TcpTransferStats, ProbeError> {
    let progress = Progress {
        received_bytes: AtomicU64::new(0),
        complete: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        failed: AtomicBool::new(false),
    };
    let progress = &progress;
    let first_cpu_ns = clock::process_cpu_ns();
    let mut intervals = Intervals::new(task.interval_ns);
    let mut shares = Intervals::new(task.interval_ns);
    let times: Vec<_> = senders.iter().map(|_| Busy::default()).collect();
    std::thread::scope(|scope| {
        let sending: Vec<_> = senders
            .into_iter()
            .zip(&times)
            .map(|(end, busy)| {
                workers::start(scope, None, move || {
                    noted(progress, send(end, task, progress, busy))
                })
            })
            .collect();
        let receiving: Vec<_> = receivers
            .into_iter()
            .map(|end| {
                workers::start(scope, None, move || noted(progress, receive(end, task, progress)))
            })
            .collect();
        let busy_ns = |now_ns| times.iter().map(|busy| busy.ns(now_ns)).sum::<u64>();
        let ended = loop {
            if progress.failed.load(Ordering::Relaxed) {
                break Ok(());
            }
            let received = progress.received_bytes.load(Ordering::Relaxed);
            let now_ns = clock::monotonic_ns();
            intervals.note(now_ns, received);
            shares.note(now_ns, busy_ns(now_ns));
            match over(progress, intervals.elapsed_ns()) {
                Ok(false) => std::thread::sleep(Duration::from_millis(5)),
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let (received, elapsed_ns) =
            (progress.received_bytes.load(Ordering::Relaxed), intervals.elapsed_ns());
        let mut stats = TcpTransferStats {
            bytes_per_s: received as f64 * 1e9 / elapsed_ns.max(1) as f64,
            busy_ratio: (!times.is_empty()).then(|| {
                let busy_ns = busy_ns(clock::monotonic_ns()) as f64;
                busy_ns / elapsed_ns.max(1) as f64 / times.len() as f64
            }),
            ..TcpTransferStats::default()
        };
        progress.stop.store(true, Ordering::Relaxed);
        let finished = ended.and_then(|()| finish());
        let mut infos = Vec::new();
        for thread in sending {
            let (bytes, end) = thread.and_then(Worker::join)?;
            stats.sent_bytes += bytes;
            infos.extend(TcpInfo::settled(&end)?);
        }
        for thread in receiving {
            let meter = thread.and_then(Worker::join)?;
            stats.received_bytes += meter.total_bytes;
            // A load may have had nothing to carry.
            match task.press {
                Some(_) => stats.rates.push(meter.total_bytes as f64 * 1e9 / elapsed_ns as f64),
                None => stats.rates.push(meter.bytes_per_s()?),
            }
        }
        finished?;
        stats.info = TcpInfo::together(&infos);
        stats.cpu_ns = clock::process_cpu_ns() - first_cpu_ns;
        stats.elapsed_ns = intervals.elapsed_ns();
        stats.intervals = intervals.rates;
        let a_sender_s = |(at_ns, per_s): &(u64, f64)| (*at_ns, per_s / 1e9 / times.len() as f64);
        if !times.is_empty() {
            stats.busy_intervals = shares.rates.iter().map(a_sender_s).collect();
        }
        Ok(stats)
    })
}

/// A thread that failed ends the others.
fn noted<T>(progress: &Progress, result: Result<T, ProbeError>) -> Result<T, ProbeError> {
    if result.is_err() {
        progress.failed.store(true, Ordering::Relaxed);
        progress.stop.store(true, Ordering::Relaxed);
    }
    result
}

fn buffer(bytes: usize) -> Result<Buffer, ProbeError> {
    let mut buffer = Buffer::map(bytes, Pages::Default)?;
    // Not zero: something on the way may compress.
    Random::new(0x5EED).fill(&mut buffer.as_mut_slice()[..bytes]);
    Ok(buffer)
}

/// Sends until it is told to stop; the bytes sent.
fn send(
    mut end: End,
    task: &Task,
    progress: &Progress,
    busy: &Busy,
) -> Result<(u64, End), ProbeError> {
    let write_bytes =
        task.press.map_or(task.send_bytes, |p| p.write_bytes(task.send_bytes, task.streams));
    let buffer = buffer(write_bytes)?;
    let data = &buffer.as_slice()[..write_bytes];
    let session = end.session();
    let over = || progress.stop.load(Ordering::Relaxed);
    let mut sent_bytes = 0;
    if let Some(press) = &task.press {
        let socket = end.as_raw_fd();
        let mut presser = PacedSender::new(
            session,
            press,
            socket,
            write_bytes,
            task.streams,
            task.interval_ns,
            busy,
        );
        presser.limit_unsent_bytes();
        while !over() {
            sent_bytes += presser.turn(|| end.write(data).map(|bytes| bytes as u64), over)?;
        }
    }
    while !over() {
        session.check()?;
        sent_bytes += end.write(data)? as u64;
    }
    end.end()?;
    Ok((sent_bytes, end))
}

/// Receives until the far side ends.
fn receive(mut end: End, task: &Task, progress: &Progress) -> Result<Meter, ProbeError> {
    let mut buffer = buffer(task.send_bytes)?;
    let space = &mut buffer.as_mut_slice()[..task.send_bytes];
    let mut meter = Meter::open(u64::MAX, task.duration_ns);
    let session = end.session();
    let (mut begun, mut complete) = (false, false);
    loop {
        session.check()?;
        let bytes = end.read(space)?;
        if bytes == 0 {
            return Ok(meter);
        }
        let now_ns = clock::monotonic_ns();
        if !begun {
            meter.warm_until(now_ns + task.warmup_ns);
            begun = true;
        }
        progress.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if !meter.received(now_ns, bytes as u64) && !complete {
            complete = true;
            progress.complete.fetch_add(1, Ordering::Relaxed);
        }
    }
}
