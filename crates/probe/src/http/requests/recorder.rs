//! What a thread of the engine measured. A request belongs to the measured part if it was due in it;
//! a completion counts toward the rate if it came in it. Counts are those of the whole trial, so that
//! they can be compared with a server's own.
use super::failures::{Failure, TIMEOUT, UNREQUESTED, UNSENT};
use super::in_flight::InFlight;
use crate::timing::closed_loop::latency_histogram;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::mem::replace;

/// Requests below which the rates at which they came and ended say little.
const LEAST_PACED: u64 = 20;

/// A request that leaves later than this after it could have left is late.
const LATE_NS: u64 = 1_000_000;

/// When the trial starts, when it begins to measure, and when no further request is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeasuredWindow {
    pub start_ns: u64,
    pub warm_ns: u64,
    pub end_ns: u64,
}

impl MeasuredWindow {
    #[inline]
    pub fn holds(&self, at_ns: u64) -> bool {
        (self.warm_ns..self.end_ns).contains(&at_ns)
    }
}

/// Latencies of one class of requests.
#[derive(Clone, Debug)]
pub struct ClassLatencies {
    /// From the intended sending time; of requests without a response the time that they waited.
    pub latency: Histogram<u64>,
    /// Those of `latency` that had no response: their latency is at least that.
    pub unanswered: Histogram<u64>,
    /// From the actual sending time.
    pub service: Histogram<u64>,
}

/// One reporting interval of one thread.
#[derive(Debug)]
pub struct RequestInterval {
    pub index: u64,
    pub completed: u64,
    pub failed: u64,
    pub latency: Histogram<u64>,
}

impl RequestInterval {
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

/// When the first and the last of some events happened, and how many there were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    first_ns: u64,
    last_ns: u64,
    count: u64,
}

impl Span {
    #[inline]
    fn note(&mut self, at_ns: u64) {
        self.add(&Self { first_ns: at_ns, last_ns: at_ns, count: 1 });
    }

    fn add(&mut self, more: &Self) {
        if more.count > 0 {
            let is_first = self.count == 0 || more.first_ns < self.first_ns;
            self.first_ns = if is_first { more.first_ns } else { self.first_ns };
            self.last_ns = self.last_ns.max(more.last_ns);
            self.count += more.count;
        }
    }

    /// Returns the events per nanosecond from the first to the last.
    fn rate(&self) -> Option<f64> {
        let length_ns = self.last_ns - self.first_ns;
        (self.count > 1 && length_ns > 0).then(|| (self.count - 1) as f64 / length_ns as f64)
    }
}

#[derive(Debug)]
pub struct Recorder {
    pub window: MeasuredWindow,
    timeout_ns: u64,
    pub classes: Vec<ClassLatencies>,
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
    /// When requests were due, and when they ended with an answer or a failure of the server.
    dues: Span,
    ends: Span,
    /// Of the measured part.
    pub due: u64,
    pub completed_in_window: u64,
    pub received_bytes: u64,
    pub cpu_ns: u64,
    /// Share of a CPU that the busiest thread used.
    pub busiest_ratio: f64,
    /// Time that the threads waited for a CPU while they could have run; `None` where it is hidden.
    pub cpu_wait_ns: Option<u64>,
    interval: RequestInterval,
}

impl Recorder {
    pub fn new(classes: usize, timeout_ns: u64) -> Self {
        let times = ClassLatencies {
            latency: latency_histogram(),
            unanswered: latency_histogram(),
            service: latency_histogram(),
        };
        Self {
            window: MeasuredWindow::default(),
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
            dues: Span::default(),
            ends: Span::default(),
            due: 0,
            completed_in_window: 0,
            received_bytes: 0,
            cpu_ns: 0,
            busiest_ratio: 0.0,
            cpu_wait_ns: None,
            interval: RequestInterval::new(0),
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
        self.dues.note(request.intended_ns);
        self.ends.note(now_ns);
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
        self.count_failure(request.intended_ns, failure);
        if failure == TIMEOUT {
            let waited_ns = now_ns.saturating_sub(request.intended_ns).max(self.timeout_ns);
            self.unanswered(request.intended_ns, request.class, waited_ns);
        } else {
            self.ends.note(now_ns);
        }
    }

    /// Notes a request that was due and found no free connection until now, the end.
    pub fn unsent(&mut self, intended_ns: u64, class: u8, now_ns: u64) {
        self.count_failure(intended_ns, UNSENT);
        self.unanswered(intended_ns, class, now_ns.saturating_sub(intended_ns).max(1));
    }

    /// How long it would have taken is not known: it counts with the time that has passed.
    fn unanswered(&mut self, intended_ns: u64, class: u8, waited_ns: u64) {
        if self.window.holds(intended_ns) {
            let times = &mut self.classes[usize::from(class)];
            times.latency.saturating_record(waited_ns);
            times.unanswered.saturating_record(waited_ns);
        }
    }

    /// Notes bytes that no request asked for.
    pub fn count_unrequested(&mut self) {
        *self.failures.entry(UNREQUESTED).or_default() += 1;
        self.interval.failed += 1;
    }

    fn count_failure(&mut self, intended_ns: u64, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
        self.interval.failed += 1;
        self.dues.note(intended_ns);
        self.due += u64::from(self.window.holds(intended_ns));
    }

    pub fn failed_in_all(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Returns the number of requests that were due in the whole trial: every one of them had a valid
    /// response or is among the failures.
    pub fn due_in_all(&self) -> u64 {
        self.dues.count
    }

    /// Returns the rate at which requests ended relative to the rate at which they were due; `None`
    /// for few. A constant latency does not lower it, a queue that grows does.
    pub fn pace_ratio(&self) -> Option<f64> {
        let rates = self.ends.rate().zip(self.dues.rate());
        rates.filter(|_| self.dues.count >= LEAST_PACED).map(|(ends, dues)| ends / dues)
    }

    /// Closes the current interval and returns it.
    pub fn next_interval(&mut self) -> RequestInterval {
        let next = RequestInterval::new(self.interval.index + 1);
        replace(&mut self.interval, next)
    }

    /// Adds what another thread measured.
    pub fn add(&mut self, more: &Self) {
        let same = "all recorders have the same bounds";
        for (times, more) in self.classes.iter_mut().zip(&more.classes) {
            times.latency.add(&more.latency).expect(same);
            times.unanswered.add(&more.unanswered).expect(same);
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
        self.dues.add(&more.dues);
        self.ends.add(&more.ends);
        self.due += more.due;
        self.completed_in_window += more.completed_in_window;
        self.received_bytes += more.received_bytes;
        self.cpu_ns += more.cpu_ns;
        self.busiest_ratio = self.busiest_ratio.max(more.busiest_ratio);
        self.cpu_wait_ns = self.cpu_wait_ns.zip(more.cpu_wait_ns).map(|(a, b)| a + b);
    }
}
