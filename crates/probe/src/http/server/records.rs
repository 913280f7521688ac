//! What the server counts, and the times of single requests.
use super::request::Refusal;
use super::routes::{KINDS, KIND_NAMES};
use crate::timing::closed_loop::latency_histogram;
use hdrhistogram::Histogram;
use serde_json::{json, Map, Value};

/// Times of a request on the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTimes {
    /// When the server saw the end of the request.
    pub arrival_ns: u64,
    pub start_ns: u64,
    /// When the service was over and the answer due.
    pub end_ns: u64,
}

#[derive(Debug, Default)]
pub struct ServerCounters {
    pub accepted: u64,
    /// Connections beyond the limit, which were told so and closed.
    pub refused: u64,
    pub open: u64,
    pub open_max: u64,
    pub requests: [u64; KINDS],
    /// Requests whose whole answer was handed to the kernel.
    pub answered: [u64; KINDS],
    pub refusals: [u64; Refusal::ALL.len()],
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// CPU time of the workers.
    pub cpu_work_ns: u64,
    /// Connections closed because nothing came between two requests.
    pub idle_timeouts: u64,
    /// Because a request did not come to its end.
    pub request_timeouts: u64,
    /// Because the client did not take its answer.
    pub send_timeouts: u64,
    /// Requests whose client was gone before the answer was sent.
    pub aborted: u64,
    /// Connections that the client closed within a request.
    pub broken: u64,
    /// Connections closed because all unfinished requests together took too much memory.
    pub out_of_memory: u64,
    pub accept_errors: u64,
}

impl ServerCounters {
    pub fn answered_in_all(&self) -> u64 {
        self.answered.iter().sum()
    }

    pub fn refusal(&mut self, refusal: Refusal) {
        self.refusals[refusal as usize] += 1;
    }

    /// Returns what went wrong, by kind.
    pub fn errors(&self) -> Vec<(&'static str, u64)> {
        let refusals = Refusal::ALL.iter().zip(self.refusals);
        let mut errors: Vec<_> =
            refusals.map(|(refusal, count)| (refusal.status().1, count)).collect();
        errors.extend([
            ("idle_timeout", self.idle_timeouts),
            ("request_timeout", self.request_timeouts),
            ("send_timeout", self.send_timeouts),
            ("aborted", self.aborted),
            ("broken", self.broken),
            ("out_of_memory", self.out_of_memory),
            ("accept", self.accept_errors),
        ]);
        errors
    }

    pub fn as_json(&self) -> Value {
        let by_kind = |counts: &[u64; KINDS]| -> Map<String, Value> {
            KIND_NAMES
                .iter()
                .zip(counts)
                .map(|(name, n)| ((*name).to_owned(), (*n).into()))
                .collect()
        };
        let errors: Map<_, _> =
            self.errors().into_iter().map(|(name, n)| (name.to_owned(), Value::from(n))).collect();
        json!({
            "accepted": self.accepted,
            "refused": self.refused,
            "open": self.open,
            "open_max": self.open_max,
            "requests": by_kind(&self.requests),
            "answered": by_kind(&self.answered),
            "received_bytes": self.received_bytes,
            "sent_bytes": self.sent_bytes,
            "cpu_work_ns": self.cpu_work_ns,
            "errors": errors,
        })
    }
}

/// Times of single requests, in the order in which their answers were sent.
#[derive(Debug)]
pub struct Records {
    rows: Vec<(usize, RequestTimes, u64)>,
    max: usize,
    /// Time that requests waited for a worker.
    pub wait: Histogram<u64>,
    /// Time from the moment when an answer was due to the moment when it was sent.
    pub late: Histogram<u64>,
}

impl Records {
    /// Keeps at most `max` single requests.
    pub fn new(max: usize) -> Self {
        let (wait, late) = (latency_histogram(), latency_histogram());
        Self { rows: Vec::with_capacity(max.min(1 << 16)), max, wait, late }
    }

    pub fn keeps_times(&self) -> bool {
        self.rows.len() < self.max
    }

    pub fn add(&mut self, kind: usize, times: RequestTimes, sent_ns: u64) {
        if self.keeps_times() {
            self.rows.push((kind, times, sent_ns));
        }
    }

    /// Returns a table of nanoseconds since `started_ns`.
    pub fn as_json(&self, started_ns: u64) -> Value {
        let since = |ns: u64| ns.saturating_sub(started_ns);
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|(kind, times, sent_ns)| {
                let RequestTimes { arrival_ns, start_ns, end_ns } = *times;
                json!([
                    KIND_NAMES[*kind],
                    since(arrival_ns),
                    since(start_ns),
                    since(end_ns),
                    since(*sent_ns)
                ])
            })
            .collect();
        json!({"columns": ["kind", "arrival_ns", "start_ns", "end_ns", "sent_ns"], "rows": rows})
    }
}
