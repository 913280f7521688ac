//! Workloads of virtual CPUs.
use crate::arrivals::{ArrivalTimes, Arrivals};
use crate::random::{Distribution, RandomStream};
use crate::statistics::Durations;
use crate::Nanos;
use std::collections::VecDeque;

/// Cost of one clock read: no work takes less.
pub const CLOCK_READ: Nanos = 30;

/// What a virtual CPU does.
#[derive(Clone, Debug)]
pub enum Workload {
    /// It is always runnable.
    Spinning,
    /// It wakes at every multiple of a period and works for a while; what is not done by the next
    /// wake-up is added to the new work.
    Periodic { period_ns: Nanos, work_ns: Nanos },
    /// It works and sleeps in turn.
    Bursty { work: Distribution, sleep: Distribution },
    /// It serves requests in order of arrival.
    Web { arrivals: Arrivals, service: Distribution },
    /// From a time on it is busy for a while by the clock, however much of it it runs, and sleeps, in
    /// turn.
    Meter { start_ns: Nanos, busy_ns: Nanos, sleep_ns: Nanos },
    /// It is never runnable.
    Idle,
}

/// Requests of a server.
#[derive(Clone, Debug)]
struct Requests {
    arrivals: ArrivalTimes,
    /// Arrival time and remaining CPU time, in order of arrival.
    queue: VecDeque<(Nanos, Nanos)>,
    /// Requests that arrive earlier are not counted.
    warm_up_ns: Nanos,
    responses: Durations,
}

/// A workload in execution.
#[derive(Clone, Debug)]
pub struct WorkloadTask {
    workload: Workload,
    stream: RandomStream,
    /// CPU time until it blocks; None if that does not depend on CPU time.
    remaining_ns: Option<Nanos>,
    /// Number of wake-ups so far (periodic work).
    wake_ups: u64,
    /// End of the busy time; None before it has run since it woke (meter).
    busy_until: Option<Nanos>,
    requests: Option<Box<Requests>>,
}

impl Requests {
    fn new(arrivals: Arrivals, stream: &RandomStream, warm_up_ns: Nanos) -> Self {
        // Its own stream: a request's service time does not move the next arrival.
        let mut seeds = stream.clone();
        let stream = RandomStream::new(seeds.bits(), 0, seeds.bits());
        let (queue, responses) = (VecDeque::new(), Durations::default());
        Self { arrivals: arrivals.start(stream), queue, warm_up_ns, responses }
    }

    fn serve(&mut self, from: Nanos, to: Nanos) {
        let mut now = from;
        while let Some((arrived, remaining)) = self.queue.front_mut() {
            if *remaining > to - now {
                *remaining -= to - now;
                return;
            }
            now += *remaining;
            if *arrived >= self.warm_up_ns {
                self.responses.add((now - *arrived) as f64);
            }
            self.queue.pop_front();
        }
    }
}

impl WorkloadTask {
    /// Returns the task asleep, until [`Task::first_wake_up`].
    pub fn new(workload: &Workload, stream: RandomStream, warm_up_ns: Nanos) -> Self {
        let workload = workload.clone();
        let remaining_ns = match workload {
            Workload::Spinning | Workload::Meter { .. } => None,
            _ => Some(0),
        };
        let requests = match workload {
            Workload::Web { arrivals, .. } => {
                Some(Box::new(Requests::new(arrivals, &stream, warm_up_ns)))
            }
            _ => None,
        };
        Self { workload, stream, remaining_ns, wake_ups: 0, busy_until: None, requests }
    }

    /// Returns when it becomes runnable for the first time; None for never.
    pub fn first_wake_up(&mut self) -> Option<Nanos> {
        match self.workload {
            Workload::Web { .. } => Some(self.requests.as_mut()?.arrivals.next_time()),
            Workload::Meter { start_ns, .. } => Some(start_ns),
            Workload::Idle => None,
            _ => Some(0),
        }
    }

    /// Takes up new work. Returns the next wake-up if that does not depend on when this work is done.
    pub fn wake(&mut self, now: Nanos) -> Option<Nanos> {
        match &self.workload {
            Workload::Spinning | Workload::Idle => None,
            Workload::Periodic { period_ns, work_ns } => {
                self.remaining_ns = self.remaining_ns.map(|remaining| remaining + work_ns);
                self.wake_ups += 1;
                Some((self.wake_ups * period_ns).max(now))
            }
            Workload::Bursty { work, .. } => {
                self.remaining_ns = Some(draw_ns(work, &mut self.stream));
                None
            }
            Workload::Web { service, .. } => {
                let service_ns = draw_ns(service, &mut self.stream);
                self.remaining_ns = self.remaining_ns.map(|remaining| remaining + service_ns);
                let requests = self.requests.as_mut()?;
                requests.queue.push_back((now, service_ns));
                Some(requests.arrivals.next_time())
            }
            Workload::Meter { .. } => {
                self.busy_until = None;
                None
            }
        }
    }

    /// Returns when the work will be done if it runs from `now` on; None for never.
    #[inline]
    pub fn completion(&mut self, now: Nanos) -> Option<Nanos> {
        if let Workload::Meter { busy_ns, .. } = self.workload {
            let until = *self.busy_until.get_or_insert(now + busy_ns);
            return Some(until.max(now + CLOCK_READ));
        }
        self.remaining_ns.map(|remaining| now + remaining)
    }

    /// Accounts for a run.
    #[inline]
    pub fn run(&mut self, from: Nanos, to: Nanos) {
        self.remaining_ns = self.remaining_ns.map(|remaining| remaining.saturating_sub(to - from));
        if let Some(requests) = &mut self.requests {
            requests.serve(from, to);
        }
    }

    /// Returns whether its work is done.
    #[inline]
    pub fn is_done(&self, now: Nanos) -> bool {
        self.remaining_ns == Some(0) || self.busy_until.is_some_and(|until| until <= now)
    }

    /// Returns when it wakes after its work was done at `now`, unless [`Task::wake`] has told already.
    pub fn sleep_until(&mut self, now: Nanos) -> Option<Nanos> {
        match &self.workload {
            Workload::Bursty { sleep, .. } => Some(now + draw_ns(sleep, &mut self.stream)),
            Workload::Meter { sleep_ns, .. } => Some(now + sleep_ns),
            _ => None,
        }
    }

    /// Returns the response times of its requests; None if it serves none.
    pub fn into_responses(self) -> Option<Durations> {
        self.requests.map(|requests| requests.responses)
    }
}

/// Draws a duration of at least 1 ns.
fn draw_ns(distribution: &Distribution, stream: &mut RandomStream) -> Nanos {
    let duration_ns = distribution.draw(stream);
    stream.round(duration_ns).max(1)
}
