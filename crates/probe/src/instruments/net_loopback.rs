//! # What it measures
//! What this machine's own network stack costs: bytes a second through TCP connections on 127.0.0.1,
//! and the time of a small message there and back. No wire takes part, so this is the most that any
//! network can give between programs here, and the least that a request can take.
//!
//! # How
//! Both ends are threads of this process, on a port that the kernel chooses; the accepting end takes
//! only the peer that has our own address and presents 16 random bytes. Throughput: each of `streams`
//! connections has one sender that writes `send_bytes` at a time and one receiver that reads up to as
//! many; bytes are counted at the receiver, from the first read after a warm-up of a tenth of
//! `duration_ns` to the first read at least `duration_ns` later, and the streams' rates add up. Round trip:
//! one message of `message_bytes` at a time goes there and back (`TCP_NODELAY`), each timed on the
//! sending side. Socket buffers are the system's own.
//!
//! # Known truth
//! All bytes that were sent arrive: a difference between both ends fails the trial. Messages go one at
//! a time, so their rate times their mean time is 1. The kernel's own counters of the loopback
//! interface agree with the bytes received.
//!
//! # Cross-check
//! `benchmarks/net_loopback_vs_iperf3.py` runs iperf3 beside it, interleaved, one stream.
//!
//! # Overhead
//! Two threads for each stream at 100 % for 1.1 times `duration_ns`, for each part. Nothing listens
//! beyond loopback.
//!
//! # Caveats
//! Copies between the two ends use the same caches and CPUs: with fewer than two free CPUs a stream,
//! sender and receiver take turns. Where the scheduler puts them decides much; `pin` takes that
//! decision. The load is a closed loop, labelled as such.
use crate::buffer::{Buffer, Pages};
use crate::error::{Kind, ProbeError};
use crate::net::pair::{End, Pair};
use crate::trial::Trial;
use crate::window::{Outcome, Window};
use crate::{affinity, cancel, clock, factors, timed};
use nephoscope_wire::spec::{Better, Kind as ParamKind, Metric, Param, Shape, Spec, Unit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "net.loopback",
    summary: "TCP throughput and small-message round trip inside this machine",
    params: &[
        Param {
            id: "part",
            unit: Unit::None,
            kind: ParamKind::ChoiceList { default: &[], choices: &["throughput", "round_trip"] },
            doc: "What to measure, one after the other; empty means both.",
        },
        Param {
            id: "duration_ns",
            unit: Unit::Ns,
            kind: ParamKind::Int { default: 300_000_000, min: 1_000_000, max: 3_600_000_000_000 },
            doc: "How long each part is counted, after a warm-up of a tenth of it.",
        },
        Param {
            id: "streams",
            unit: Unit::Count,
            kind: ParamKind::Int { default: 1, min: 1, max: 64 },
            doc: "Connections that carry the throughput.",
        },
        Param {
            id: "send_bytes",
            unit: Unit::Bytes,
            kind: ParamKind::Int { default: 128 << 10, min: 1, max: 16 << 20 },
            doc: "Bytes of one write, and at most of one read, of the throughput.",
        },
        Param {
            id: "message_bytes",
            unit: Unit::Bytes,
            kind: ParamKind::Int { default: 64, min: 1, max: 1 << 20 },
            doc: "Bytes of one message of the round trip.",
        },
        Param {
            id: "pin",
            unit: Unit::None,
            kind: ParamKind::Choice { default: "none", choices: &["none", "same", "apart"] },
            doc: "Leave both ends to the scheduler, or pin them to the same or to different CPUs.",
        },
    ],
    metrics: &[
        Metric {
            id: "loopback_bytes_per_s",
            unit: Unit::BytesPerS,
            better: Better::Higher,
            shape: Shape::Scalar,
            headline: true,
            doc: "Bytes received a second, over all streams.",
        },
        Metric {
            id: "loopback_round_trip_ns",
            unit: Unit::Ns,
            better: Better::Lower,
            shape: Shape::Histogram,
            headline: true,
            doc: "Time of one message there and back.",
        },
        Metric {
            id: "loopback_round_trips_per_s",
            unit: Unit::PerS,
            better: Better::Higher,
            shape: Shape::Scalar,
            headline: false,
            doc: "Messages there and back a second, one at a time.",
        },
    ],
    overhead: "two threads a stream at 100 % for 1.1 times duration_ns, twice",
    source: "iperf3 (throughput) and netperf's TCP_RR (round trip)",
    two_sided: false,
};

/// One trial.
pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let duration_ns = trial.params.int("duration_ns").cast_unsigned();
    let pins = pins(trial);
    for part in trial.params.words(&SPEC, "part") {
        if part == "throughput" {
            let send_bytes = trial.params.size("send_bytes");
            let rate = throughput(trial.params.size("streams"), send_bytes, duration_ns, pins)?;
            trial.emit("loopback_bytes_per_s", rate, factors! {})?;
        } else {
            let outcome = round_trips(trial.params.size("message_bytes"), duration_ns, pins)?;
            let rate = outcome.operations_per_s;
            trial.emit("loopback_round_trips_per_s", rate, factors! {})?;
            trial.emit_histogram("loopback_round_trip_ns", &outcome.latency, &factors! {})?;
        }
    }
    Ok(())
}

/// The CPUs of the sending and of the receiving ends; `None` leaves them to the scheduler.
#[derive(Clone, Copy, Debug)]
struct Pins {
    sender: Option<usize>,
    receiver: Option<usize>,
}

fn pins(trial: &mut Trial) -> Pins {
    let cpus = affinity::spread(2);
    let (first, second) = (cpus[0], cpus[1]);
    match trial.params.text("pin") {
        "same" => Pins { sender: Some(first), receiver: Some(first) },
        "apart" => {
            if first == second {
                trial.note("Only one CPU may be used, so both ends are pinned to it.");
            }
            Pins { sender: Some(first), receiver: Some(second) }
        }
        _ => Pins { sender: None, receiver: None },
    }
}

/// A thread that ends in a result.
type Thread<'scope, T> = ScopedJoinHandle<'scope, Result<T, ProbeError>>;

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpu: Option<usize>,
    work: impl FnOnce() -> Result<T, ProbeError> + Send + 'scope,
) -> Result<Thread<'scope, T>, ProbeError> {
    let pinned = move || {
        cpu.map_or(Ok(()), affinity::pin)?;
        work()
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, pinned).map_err(|error| {
        ProbeError::new(
            Kind::Lacks,
            "no_threads",
            format!("A thread for one end of a connection cannot be had: {error}."),
            "Set fewer `streams`, or raise the limit on processes.",
        )
    })
}

fn join<T>(thread: Result<Thread<'_, T>, ProbeError>) -> Result<T, ProbeError> {
    thread?.join().expect("an end of a connection does not panic")
}

/// Bytes received a second over `streams` connections.
fn throughput(
    streams: usize,
    send_bytes: usize,
    duration_ns: u64,
    pins: Pins,
) -> Result<f64, ProbeError> {
    let pairs: Result<Vec<_>, _> = (0..streams).map(|_| Pair::connect()).collect();
    let pairs = pairs?;
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

fn check_nothing_lost(what: &str, sent: u64, received: u64) -> Result<(), ProbeError> {
    if sent == received {
        return Ok(());
    }
    Err(ProbeError::new(
        Kind::Failed,
        "bytes_lost",
        format!("{sent} {what} were sent on 127.0.0.1 and {received} arrived."),
        "Run it again; if it happens again, look at the kernel's log (dmesg).",
    ))
}

/// Messages there and back, one at a time.
fn round_trips(bytes: usize, duration_ns: u64, pins: Pins) -> Result<Outcome, ProbeError> {
    let Pair { near, far } = Pair::connect()?;
    std::thread::scope(|scope| {
        let echo = spawn(scope, pins.receiver, move || echo(far, bytes));
        let asker = spawn(scope, pins.sender, move || ask(near, bytes, duration_ns));
        let (asked, echoed) = (join(asker), join(echo));
        let (window, messages) = asked?;
        check_nothing_lost("messages", messages, echoed?)?;
        Window::outcome([window])
    })
}

/// Sends a message and waits until it is back, again and again; gives how many there were.
fn ask(mut end: End, bytes: usize, duration_ns: u64) -> Result<(Window, u64), ProbeError> {
    let mut message = vec![0x5A; bytes];
    let mut window = Window::open(clock::monotonic_ns(), duration_ns);
    let mut messages = 0;
    let section = timed::start();
    let mut started_ns = clock::monotonic_ns();
    loop {
        cancel::check()?;
        end.write_all(&message)?;
        let whole = end.read_exact(&mut message)?;
        messages += u64::from(whole);
        let now_ns = clock::monotonic_ns();
        if !whole || !window.completed(now_ns, now_ns - started_ns) {
            break;
        }
        started_ns = now_ns;
    }
    section.stop_with_kernel_io();
    end.end()?;
    Ok((window, messages))
}

/// Sends every message back; gives how many there were.
fn echo(mut end: End, bytes: usize) -> Result<u64, ProbeError> {
    let mut message = vec![0; bytes];
    let mut messages = 0;
    let section = timed::start();
    while end.read_exact(&mut message)? {
        cancel::check()?;
        end.write_all(&message)?;
        messages += 1;
    }
    section.stop_with_kernel_io();
    Ok(messages)
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
    fn a_lost_byte_is_noticed() {
        assert_eq!(check_nothing_lost("bytes", 2, 1).unwrap_err().name, "bytes_lost");
        assert!(check_nothing_lost("bytes", 2, 2).is_ok());
    }

    #[test]
    fn both_parts_end_with_plausible_figures() {
        let free = Pins { sender: None, receiver: None };
        // A loopback slower than 1 MB/s or 10 messages a second is broken, one faster than 1 TB/s
        // or than 100 ns a message does not exist: this checks the arithmetic of units.
        let rate = throughput(2, 64 << 10, 50_000_000, free).unwrap();
        assert!((1e6..1e12).contains(&rate), "{rate}");
        let outcome = round_trips(64, 50_000_000, free).unwrap();
        assert!((10.0..1e7).contains(&outcome.operations_per_s), "{outcome:?}");
        let in_flight = outcome.operations_per_s * outcome.latency.mean() / 1e9;
        assert!((0.9..1.1).contains(&in_flight), "{in_flight}");
    }
}
