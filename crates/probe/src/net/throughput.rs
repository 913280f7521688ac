//! Bytes through TCP connections, counted at the receiver.
use super::ends::{check_nothing_lost, join, spawn, Pins};
use super::pair::{End, Pair};
use crate::buffer::{Buffer, Pages};
use crate::error::{Kind, ProbeError};
use crate::{cancel, clock, timed};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes received a second over `streams` connections; calls `gate` when they are there.
pub fn throughput(
    streams: usize,
    send_bytes: usize,
    duration_ns: u64,
    pins: Pins,
    gate: impl FnOnce() -> Result<(), ProbeError>,
) -> Result<f64, ProbeError> {
    let pairs: Result<Vec<_>, _> = (0..streams).map(|_| Pair::connect()).collect();
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
                let meter = Meter::open(now_ns, duration_ns);
                (
                    spawn(scope, pins.receiver, move || receive(far, send_bytes, meter, stop)),
                    spawn(scope, pins.sender, move || send(near, send_bytes, stop)),
                )
            })
            .collect();
        let mut rate = 0.0;
        for (receiver, sender) in threads {
            let (received, sent) = (join(receiver), join(sender));
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
        cancel::check()?;
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
        cancel::check()?;
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

/// Counts the bytes of one stream: all of them, and those between the read that ends the warm-up
/// and the first read after the time is over.
#[derive(Debug)]
struct Meter {
    warm_until_ns: u64,
    duration_ns: u64,
    first_ns: u64,
    last_ns: u64,
    counted_bytes: u64,
    total_bytes: u64,
}

impl Meter {
    fn open(now_ns: u64, duration_ns: u64) -> Self {
        let warm_until_ns = now_ns + duration_ns / 10;
        Self {
            warm_until_ns,
            duration_ns,
            first_ns: 0,
            last_ns: 0,
            counted_bytes: 0,
            total_bytes: 0,
        }
    }

    /// False when the time is over.
    #[inline]
    fn received(&mut self, now_ns: u64, bytes: u64) -> bool {
        self.total_bytes += bytes;
        if self.first_ns == 0 {
            if now_ns >= self.warm_until_ns {
                self.first_ns = now_ns;
            }
            return true;
        }
        if self.last_ns < self.first_ns + self.duration_ns {
            self.counted_bytes += bytes;
            self.last_ns = now_ns;
        }
        now_ns - self.first_ns < self.duration_ns
    }

    fn bytes_per_s(&self) -> Result<f64, ProbeError> {
        let elapsed_ns = self.last_ns.saturating_sub(self.first_ns);
        if self.first_ns == 0 || self.counted_bytes == 0 || elapsed_ns == 0 {
            return Err(ProbeError::new(
                Kind::Failed,
                "too_short",
                "A stream carried nothing while it was counted.",
                "Set a longer `duration_ns`, or fewer `streams`.",
            ));
        }
        Ok(self.counted_bytes as f64 * 1e9 / elapsed_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_counts_what_lies_between_its_ends() {
        let mut meter = Meter::open(0, 1000);
        // Reads of 10 bytes every 50 ns from time 50 on; warm until 100, counted until 1100.
        let mut now_ns = 50;
        while meter.received(now_ns, 10) {
            now_ns += 50;
        }
        assert!(!meter.received(now_ns + 50, 10));
        assert_eq!((meter.first_ns, meter.last_ns), (100, 1100));
        assert_eq!((meter.counted_bytes, meter.total_bytes), (200, 230));
        assert!((meter.bytes_per_s().unwrap() - 0.2e9).abs() < 1e-3);
    }

    #[test]
    fn nothing_received_is_an_error_and_not_a_zero() {
        assert_eq!(Meter::open(0, 1).bytes_per_s().unwrap_err().name, "too_short");
    }

    #[test]
    fn streams_carry_plausible_rates() {
        let free = Pins { sender: None, receiver: None };
        // A loopback slower than 1 MB/s is broken, one faster than 1 TB/s does not exist: this
        // checks the arithmetic of units.
        let rate = throughput(2, 64 << 10, 50_000_000, free, || Ok(())).unwrap();
        assert!((1e6..1e12).contains(&rate), "{rate}");
    }
}
