//! TCP streams, each with a thread at either end; the same code on both sides.
use super::blocks::{BlockRates, Blocks};
use super::paced_sender::PacedSender;
use super::{Intervals, TransferTask};
use crate::error::{ProbeError, Result};
use crate::load::busy_time::Busy;
use crate::memory::buffer::{Buffer, Pages};
use crate::net::connection::End;
use crate::net::meter::ByteMeter;
use crate::net::tcp_info::TcpInfo;
use crate::threads::workers::{self, JoinedWorker};
use crate::trial::idle_cpu;
use nephoscope_linux::clock;
use nephoscope_linux::files;
use nephoscope_wire::random::Random;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
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
    /// What it received block by block.
    pub blocks: BlockRates,
    /// From the first to the last byte of the slowest stream that it received.
    pub transfer_ns: u64,
    /// What the kernel knows of the streams that it sent.
    pub info: Option<TcpInfo>,
    /// The same at the end of each interval.
    pub info_intervals: Vec<(u64, TcpInfo)>,
    pub cpu_ns: u64,
    pub elapsed_ns: u64,
}

pub struct Progress {
    received_bytes: AtomicU64,
    /// Receivers whose time is over.
    pub complete: AtomicUsize,
    /// Threads that have sent or received all.
    pub ended: AtomicUsize,
    stop: AtomicBool,
    failed: AtomicBool,
}

/// Sends on some connections and receives on others until `over` says so, then until the far side
/// ends too. `finish` is called once in between.
pub fn run(
    task: &TransferTask,
    senders: Vec<End>,
    receivers: Vec<End>,
    mut over: impl FnMut(&Progress, u64) -> Result<bool>,
    finish: impl FnOnce() -> Result<()>,
) -> Result<TcpTransferStats> {
    let progress = Progress {
        received_bytes: AtomicU64::new(0),
        complete: AtomicUsize::new(0),
        ended: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        failed: AtomicBool::new(false),
    };
    let progress = &progress;
    for end in &senders {
        task.congestion_control.set(end)?;
    }
    for end in &receivers {
        end.set_receive_buffer(task.receive_buffer_bytes)?;
    }
    let sockets: Vec<RawFd> = senders.iter().map(AsRawFd::as_raw_fd).collect();
    let mut info_intervals = Vec::new();
    let first_cpu_ns = idle_cpu::benchmark_cpu_ns();
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
            if let Some(end_ns) = intervals.note(now_ns, received) {
                info_intervals.extend(read_together(task, &sockets).map(|info| (end_ns, info)));
            }
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
            let (bytes, end) = thread.and_then(JoinedWorker::join)?;
            stats.sent_bytes += bytes;
            infos.extend(TcpInfo::settled(&end)?);
        }
        let mut blocks = Vec::new();
        for thread in receiving {
            let (meter, of_stream) = thread.and_then(JoinedWorker::join)?;
            blocks.push(of_stream);
            stats.transfer_ns = stats.transfer_ns.max(meter.elapsed_ns());
            stats.received_bytes += meter.total_bytes;
            // A load may have had nothing to carry.
            match task.pace {
                Some(_) => stats.rates.push(meter.total_bytes as f64 * 1e9 / elapsed_ns as f64),
                None => stats.rates.push(meter.bytes_per_s()?),
            }
        }
        finished?;
        stats.blocks = Blocks::joined(&blocks);
        stats.info = TcpInfo::together(&infos);
        stats.info_intervals = info_intervals;
        stats.cpu_ns = idle_cpu::benchmark_cpu_ns() - first_cpu_ns;
        stats.elapsed_ns = intervals.elapsed_ns();
        stats.intervals = intervals.rates;
        let a_sender_s = |(at_ns, per_s): &(u64, f64)| (*at_ns, per_s / 1e9 / times.len() as f64);
        if !times.is_empty() {
            stats.busy_intervals = shares.rates.iter().map(a_sender_s).collect();
        }
        Ok(stats)
    })
}

/// What the kernel knows of all `sockets` now; nothing of a load, which nobody asks about.
fn read_together(task: &TransferTask, sockets: &[RawFd]) -> Option<TcpInfo> {
    if task.pace.is_some() {
        return None;
    }
    let infos: Vec<_> = sockets.iter().filter_map(|socket| TcpInfo::read(*socket)).collect();
    TcpInfo::together(&infos)
}

/// A thread that failed ends the others.
fn noted<T>(progress: &Progress, result: Result<T>) -> Result<T> {
    progress.ended.fetch_add(1, Ordering::Relaxed);
    if result.is_err() {
        progress.failed.store(true, Ordering::Relaxed);
        progress.stop.store(true, Ordering::Relaxed);
    }
    result
}

fn buffer(bytes: usize) -> Result<Buffer> {
    let mut buffer = Buffer::map(bytes, Pages::Default)?;
    // Not zero: something on the way may compress.
    Random::new(0x5EED).fill(&mut buffer.as_mut_slice()[..bytes]);
    Ok(buffer)
}

/// A file of `data` that is on no disk.
fn memory_file(data: &[u8]) -> Result<File> {
    files::in_memory(c"nephoscope")
        .and_then(|mut file| file.write_all(data).map(|()| file))
        .map_err(|error| ProbeError::os("A file in memory", &error))
}

/// Sends until it is told to stop; the bytes sent.
fn send(mut end: End, task: &TransferTask, progress: &Progress, busy: &Busy) -> Result<(u64, End)> {
    let write_bytes =
        task.pace.map_or(task.send_bytes, |p| p.write_bytes(task.send_bytes, task.streams));
    let buffer = buffer(write_bytes)?;
    let data = &buffer.as_slice()[..write_bytes];
    let session = end.session();
    let over = || progress.stop.load(Ordering::Relaxed);
    let mut sent_bytes = 0;
    if let Some(pace) = &task.pace {
        let socket = end.as_raw_fd();
        let mut sender = PacedSender::new(
            session,
            pace,
            socket,
            write_bytes,
            task.streams,
            task.interval_ns,
            busy,
        );
        sender.limit_unsent_bytes();
        while !over() {
            sent_bytes +=
                sender.send_or_wait(|| end.write(data).map(|bytes| bytes as u64), over)?;
        }
    }
    let file = task.zero_copy.then(|| memory_file(data)).transpose()?;
    let wanted = if task.stream_bytes > 0 { task.stream_bytes } else { u64::MAX };
    while !over() && sent_bytes < wanted {
        session.check()?;
        let bytes = (wanted - sent_bytes).min(data.len() as u64) as usize;
        let sent = match &file {
            Some(file) => end.send_file(file, bytes)?,
            None => end.write(&data[..bytes])?,
        };
        sent_bytes += sent as u64;
    }
    end.end()?;
    Ok((sent_bytes, end))
}

/// Receives until the far side ends.
fn receive(mut end: End, task: &TransferTask, progress: &Progress) -> Result<(ByteMeter, Blocks)> {
    let mut buffer = buffer(task.send_bytes)?;
    let space = &mut buffer.as_mut_slice()[..task.send_bytes];
    let is_by_time = task.stream_bytes == 0;
    let mut meter = ByteMeter::open(u64::MAX, if is_by_time { task.duration_ns } else { 0 });
    let mut blocks = Blocks::new(task.block_bytes, task.streams, clock::monotonic_ns());
    let session = end.session();
    let (mut begun, mut complete) = (false, false);
    loop {
        session.check()?;
        let bytes = end.read(space)?;
        if bytes == 0 {
            return Ok((meter, blocks));
        }
        let now_ns = clock::monotonic_ns();
        if !begun {
            meter.warm_until(if is_by_time { now_ns + task.warmup_ns } else { now_ns });
            begun = true;
        }
        progress.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        blocks.received(now_ns, bytes as u64, meter.is_warm());
        if !meter.received(now_ns, bytes as u64) && !complete {
            complete = true;
            progress.complete.fetch_add(1, Ordering::Relaxed);
        }
    }
}
