//! Bytes through TCP connections, counted at the receiver.
use super::connection::{End, Pair};
use super::loopback_ends::{check_nothing_lost, Pins};
use super::meter::Meter;
use crate::buffer::{Buffer, Pages};
use crate::error::ProbeError;
use crate::session::Session;
use crate::workers::{self, Worker};
use crate::{clock, timed};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes received a second over `streams` connections; calls `gate` when they are there.
pub fn throughput(
    session: Session,
    streams: usize,
    send_bytes: usize,
    duration_ns: u64,
    pins: Pins,
    gate: impl FnOnce() -> Result<(), ProbeError>,
) -> Result<f64, ProbeError> {
    let pairs: Result<Vec<_>, _> = (0..streams).map(|_| Pair::connect(session)).collect();
    let pairs = pairs?;
    gate()?;
    let stops: Vec<_> = pairs.iter().map(|_| AtomicBool::new(false)).collect();
    let now_ns = clock::monotonic_ns();
    std::thread::scope(|scope| {
        let threads: Vec<_> = pairs
            .into_iter()
            .zip(&stops)
            .map(|(pair, stop)| {
                let Pair { near, far } = pair;
                let meter = Meter::open(now_ns + duration_ns / 10, duration_ns);
                (
                    workers::start(scope, pins.receiver, move || {
                        receive(far, send_bytes, meter, stop)
                    }),
                    workers::start(scope, pins.sender, move || send(near, send_bytes, stop)),
                )
            })
            .collect();
        let mut rate = 0.0;
        for (receiver, sender) in threads {
            let (received, sent) = (receiver.and_then(Worker::join), sender.and_then(Worker::join));
            let received = received?;
            check_nothing_lost("bytes", sent?, received.total_bytes)?;
            rate += received.bytes_per_s()?;
        }
        Ok(rate)
    })
}

/// Sends until the receiver has seen enough; gives the bytes sent.
fn send(mut end: End, send_bytes: usize, stop: &AtomicBool) -> Result<u64, ProbeError> {
    let buffer = Buffer::map(send_bytes, Pages::Default)?;
    buffer.touch(0..buffer.bytes());
    // SAFETY: the mapping is at least `send_bytes` long and nobody writes to it.
    let data = unsafe { std::slice::from_raw_parts(buffer.as_ptr(), send_bytes) };
    let mut sent_bytes = 0;
    let section = timed::start();
    while !stop.load(Ordering::Relaxed) {
        end.session().check()?;
        sent_bytes += end.write(data)? as u64;
    }
    section.stop_with_kernel_io();
    end.end()?;
    Ok(sent_bytes)
}

/// Receives until the sender ends, and tells it when the time is over.
fn receive(
    mut end: End,
    read_bytes: usize,
    mut meter: Meter,
    stop: &AtomicBool,
) -> Result<Meter, ProbeError> {
    let buffer = Buffer::map(read_bytes, Pages::Default)?;
    buffer.touch(0..buffer.bytes());
    // SAFETY: the mapping is at least `read_bytes` long and belongs to this thread alone.
    let space = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr(), read_bytes) };
    let section = timed::start();
    loop {
        end.session().check()?;
        let bytes = end.read(space)?;
        if bytes == 0 {
            break;
        }
        if !meter.received(clock::monotonic_ns(), bytes as u64) {
            stop.store(true, Ordering::Relaxed);
        }
    }
    section.stop_with_kernel_io();
    Ok(meter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_carry_plausible_rates() {
        let free = Pins { sender: None, receiver: None };
        // A loopback slower than 1 MB/s is broken, one faster than 1 TB/s does not exist: this
        // checks the arithmetic of units.
        let rate =
            throughput(Session::detached(), 2, 64 << 10, 50_000_000, free, || Ok(())).unwrap();
        assert!((1e6..1e12).contains(&rate), "{rate}");
    }
}
