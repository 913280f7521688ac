//! What a thread of the engine measured. A request belongs to the measured part if it was due in it;
//! a completion counts toward the rate if it came in it. Counts are those of the whole trial, so that
//! they can be compared with a server's own.
use super::connection::InFlight;
use super::failures::{Failure, TIMEOUT, UNSENT, WRONG_LENGTH};
use crate::closed_loop::latency_histogram;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::mem::replace;

/// A request that leaves later than this after it could have left is late.
const LATE_NS: u64 = 1_000_000;

/// When the trial starts, when it begins to measure, and when no further request is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    pub start_ns: u64,
    pub warm_ns: u64,
    pub end_ns: u64,
}

impl Window {
    #[inline]
    pub fn holds(&self, at_ns: u64) -> bool {
        (self.warm_ns..self.end_ns).contains(&at_ns)
    }
}

/// Latencies of one class of requests.
#[derive(Clone, Debug)]
pub struct Times {
    /// From the intended sending time.
    pub latency: Histogram<u64>,
    /// From the actual sending time.
    pub service: Histogram<u64>,
}

/// One reporting interval of one thread.
#[derive(Debug)]
pub struct Interval {
    pub index: u64,
    pub completed: u64,
    pub failed: u64,
    pub latency: Histogram<u64>,
}

impl Interval {
    pub fn new(index: u64) -> Self {
        let latency = Histogram::new_with_bounds(1, 3_600_000_000_000, 2).expect("valid bounds");
        Self { index, completed: 0, failed: 0, latency }
    }

    pub fn add(&mut self, more: &Self) {
        self.completed += more.completed;
        self.failed += more.failed;
        self.latency.add(&more.latency).expect("the same bounds");
    }
}

#[derive(Debug)]
pub struct Recorder {
    pub window: Window,
    timeout_ns: u64,
    pub classes: Vec<Times>,
    pub connect: Histogram<u64>,
    pub handshake: Histogram<u64>,
    /// From the sending of a request to the first byte of its response.
    pub first_byte: Histogram<u64>,
    /// By how much requests left later than they could have; only where they have a set time.
    pub send_delay: Histogram<u64>,
    pub late: u64,
    /// Of the whole trial.
    pub sent: u64,
    pub completed: u64,
    pub failures: BTreeMap<Failure, u64>,
    pub connections: u64,
    /// Of the measured part.
    pub due: u64,
    pub completed_in_window: u64,
    pub received_bytes: u64,
    pub cpu_ns: u64,
    /// Share of a CPU that the busiest thread used.
    pub busiest_ratio: f64,
    /// Time that the threads waited for a CPU while they could have run; `None` where it is hidden.
    pub cpu_wait_ns: Option<u64>,
    interval: Interval,
}

impl Recorder {
    pub fn new(classes: usize, timeout_ns: u64) -> Self {
        let times = Times { latency: latency_histogram(), service: latency_histogram() };
        Self {
            window: Window::default(),
            timeout_ns,
            classes: vec![times; classes],
            connect: latency_histogram(),
            handshake: latency_histogram(),
            first_byte: latency_histogram(),
            send_delay: latency_histogram(),
            late: 0,
            sent: 0,
            completed: 0,
            failures: BTreeMap::new(),
            connections: 0,
            due: 0,
            completed_in_window: 0,
            received_bytes: 0,
            cpu_ns: 0,
            busiest_ratio: 0.0,
            cpu_wait_ns: None,
            interval: Interval::new(0),
        }
    }

    /// Notes that a request of a set time was given to a connection. ready_ns: from when on it could
    /// have been sent, which is when it was due or when the connection became free.
    #[inline]
    pub fn dispatched(&mut self, ready_ns: u64, now_ns: u64) {
        if self.window.holds(ready_ns) {
            let delay_ns = now_ns.saturating_sub(ready_ns);
            self.send_delay.saturating_record(delay_ns.max(1));
            self.late += u64::from(delay_ns > LATE_NS);
        }
    }

    #[inline]
    pub fn received(&mut self, bytes: usize, now_ns: u64) {
        if self.window.holds(now_ns) {
            self.received_bytes += bytes as u64;
        }
    }

    #[inline]
    pub fn completed(&mut self, request: &InFlight, failure: Option<Failure>, now_ns: u64) {
        if let Some(failure) = failure {
            return self.failed(request, failure, now_ns);
        }
        self.completed += 1;
        self.interval.completed += 1;
        let latency_ns = (now_ns - request.intended_ns.min(now_ns)).max(1);
        self.interval.latency.saturating_record(latency_ns);
        self.completed_in_window += u64::from(self.window.holds(now_ns));
        if self.window.holds(request.intended_ns) {
            self.due += 1;
            let times = &mut self.classes[usize::from(request.class)];
            times.latency.saturating_record(latency_ns);
            times.service.saturating_record((now_ns - request.sent_ns).max(1));
            self.first_byte.saturating_record((request.first_byte_ns - request.sent_ns).max(1));
        }
    }

    /// Notes a request that failed. One that timed out counts with at least the time limit.
    pub fn failed(&mut self, request: &InFlight, failure: Failure, now_ns: u64) {
        let class = usize::from(request.class);
        let latency_ns = now_ns.saturating_sub(request.intended_ns).max(self.timeout_ns);
        self.count_failure(request.intended_ns, failure);
        if failure == TIMEOUT && self.window.holds(request.intended_ns) {
            self.classes[class].latency.saturating_record(latency_ns);
        }
    }

    /// Notes a request that was due and found no free connection until now, the end. How long it
    /// would have taken is not known; it counts with the time that has passed.
    pub fn unsent(&mut self, intended_ns: u64, now_ns: u64) {
        self.count_failure(intended_ns, UNSENT);
        if self.window.holds(intended_ns) {
            let latency_ns = now_ns.saturating_sub(intended_ns).max(1);
            self.classes[0].latency.saturating_record(latency_ns);
        }
    }

    /// Notes bytes that no request asked for.
    pub fn unasked(&mut self) {
        *self.failures.entry(WRONG_LENGTH).or_default() += 1;
        self.interval.failed += 1;
    }

    fn count_failure(&mut self, intended_ns: u64, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
        self.interval.failed += 1;
        self.due += u64::from(self.window.holds(intended_ns));
    }

    pub fn failed_in_all(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Closes the current interval and returns it.
    pub fn next_interval(&mut self) -> Interval {
        let next = Interval::new(self.interval.index + 1);
        replace(&mut self.interval, next)
    }

    /// Adds what another thread measured.
    pub fn add(&mut self, more: &Self) {
        let same = "all recorders have the same bounds";
        for (times, more) in self.classes.iter_mut().zip(&more.classes) {
            times.latency.add(&more.latency).expect(same);
            times.service.add(&more.service).expect(same);
        }
        self.connect.add(&more.connect).expect(same);
        self.handshake.add(&more.handshake).expect(same);
        self.first_byte.add(&more.first_byte).expect(same);
        self.send_delay.add(&more.send_delay).expect(same);
        for (failure, count) in &more.failures {
            *self.failures.entry(failure).or_default() += count;
        }
        self.late += more.late;
        self.sent += more.sent;
        self.completed += more.completed;
        self.connections += more.connections;
        self.due += more.due;
        self.completed_in_window += more.completed_in_window;
        self.received_bytes += more.received_bytes;
        self.cpu_ns += more.cpu_ns;
        self.busiest_ratio = self.busiest_ratio.max(more.busiest_ratio);
        self.cpu_wait_ns = self.cpu_wait_ns.zip(more.cpu_wait_ns).map(|(a, b)| a + b);
    }
}
