//! What a virtual CPU wants to do.
use crate::arrivals::{Arrivals, Coming};
use crate::random::{Lengths, Stream};
use crate::tally::Times;
use crate::Nanos;
use std::collections::VecDeque;

/// What one look at a clock costs: nothing that wants time ends in none.
pub const LOOK: Nanos = 30;

/// A virtual CPU's wish for time.
#[derive(Clone, Debug)]
pub enum Workload {
    /// It never waits.
    Spinning,
    /// It wakes at every multiple of a period and works for a while; what is not done by the next
    /// wake-up goes on, and that wake-up is added to it.
    Periodic { every_ns: Nanos, work_ns: Nanos },
    /// It works, sleeps, works, …, each for a length drawn anew.
    Bursty { work: Lengths, sleep: Lengths },
    /// It serves requests in the order in which they come.
    Web { arrivals: Arrivals, service: Lengths },
    /// From a moment on it is busy for a length of time by the clock, whatever of it it is given,
    /// sleeps, is busy, …
    Meter { begins_ns: Nanos, busy_ns: Nanos, sleep_ns: Nanos },
    /// It wants nothing.
    Idle,
}

/// Requests of a server.
#[derive(Clone, Debug)]
struct Requests {
    coming: Coming,
    service: Lengths,
    /// (came at, CPU time that it still needs), in order.
    queue: VecDeque<(Nanos, Nanos)>,
    /// Those that came earlier are not counted.
    counted_from: Nanos,
    responses: Times,
}

/// A workload under way.
#[derive(Clone, Debug)]
pub struct Doing {
    what: What,
    stream: Stream,
    /// CPU time until it blocks; None when that is not measured in CPU time.
    left_ns: Option<Nanos>,
}

#[derive(Clone, Debug)]
enum What {
    Spinning,
    Periodic {
        every_ns: Nanos,
        work_ns: Nanos,
        wakes: u64,
    },
    Bursty {
        work: Lengths,
        sleep: Lengths,
    },
    Web(Box<Requests>),
    /// Busy until then; None before it has run since it woke.
    Meter {
        begins_ns: Nanos,
        busy_ns: Nanos,
        sleep_ns: Nanos,
        until: Option<Nanos>,
    },
    Idle,
}

impl Requests {
    /// The server ran.
    fn served(&mut self, from: Nanos, to: Nanos) {
        let mut at = from;
        while let Some((came, left)) = self.queue.front_mut() {
            if *left > to - at {
                *left -= to - at;
                return;
            }
            at += *left;
            if *came >= self.counted_from {
                self.responses.add((at - *came) as f64);
            }
            self.queue.pop_front();
        }
    }
}

impl Doing {
    /// Asleep, with its first wake-up at the moment given by [`Doing::first_wake`].
    pub fn new(workload: &Workload, stream: Stream, counted_from: Nanos) -> Self {
        let what = match workload.clone() {
            Workload::Spinning => What::Spinning,
            Workload::Periodic { every_ns, work_ns } => {
                What::Periodic { every_ns, work_ns, wakes: 0 }
            }
            Workload::Bursty { work, sleep } => What::Bursty { work, sleep },
            Workload::Web { arrivals, service } => What::Web(Box::new(Requests {
                // Its own stream: what a request needs does not move the next arrival.
                coming: arrivals.begin({
                    let mut seeds = stream.clone();
                    Stream::of(seeds.bits(), 0, seeds.bits())
                }),
                service,
                queue: VecDeque::new(),
                counted_from,
                responses: Times::default(),
            })),
            Workload::Meter { begins_ns, busy_ns, sleep_ns } => {
                What::Meter { begins_ns, busy_ns, sleep_ns, until: None }
            }
            Workload::Idle => What::Idle,
        };
        let left_ns = match what {
            What::Spinning | What::Meter { .. } => None,
            _ => Some(0),
        };
        Self { what, stream, left_ns }
    }

    /// When it wants time for the first time; None for never.
    pub fn first_wake(&mut self) -> Option<Nanos> {
        match &mut self.what {
            What::Web(requests) => requests.coming.next_at(),
            What::Meter { begins_ns, .. } => Some(*begins_ns),
            What::Idle => None,
            _ => Some(0),
        }
    }

    /// It wakes: takes up new work. Returns when it wakes again whatever happens (periodic work,
    /// requests).
    pub fn wake(&mut self, now: Nanos) -> Option<Nanos> {
        match &mut self.what {
            What::Spinning | What::Idle => None,
            What::Periodic { every_ns, work_ns, wakes } => {
                self.left_ns = self.left_ns.map(|left| left + *work_ns);
                *wakes += 1;
                Some((*wakes * *every_ns).max(now))
            }
            What::Bursty { work, .. } => {
                let length = work.draw(&mut self.stream);
                self.left_ns = Some(self.stream.rounded(length).max(1));
                None
            }
            What::Web(requests) => {
                let length = requests.service.draw(&mut self.stream);
                let length = self.stream.rounded(length).max(1);
                requests.queue.push_back((now, length));
                self.left_ns = self.left_ns.map(|left| left + length);
                requests.coming.next_at()
            }
            What::Meter { until, .. } => {
                *until = None;
                None
            }
        }
    }

    /// It begins to run. When it will be done if nothing stops it; None for never.
    #[inline]
    pub fn done_at(&mut self, now: Nanos) -> Option<Nanos> {
        if let What::Meter { busy_ns, until, .. } = &mut self.what {
            return Some((*until.get_or_insert(now + *busy_ns)).max(now + LOOK));
        }
        self.left_ns.map(|left| now + left)
    }

    /// It ran.
    #[inline]
    pub fn works(&mut self, from: Nanos, to: Nanos) {
        self.left_ns = self.left_ns.map(|left| left.saturating_sub(to - from));
        if let What::Web(requests) = &mut self.what {
            requests.served(from, to);
        }
    }

    /// Whether it has done what it wanted to, while it runs.
    #[inline]
    pub fn finished(&self, now: Nanos) -> bool {
        match self.what {
            What::Meter { until, .. } => until.is_some_and(|until| until <= now),
            _ => self.left_ns == Some(0),
        }
    }

    /// Its work is done at `now`: when it wakes again, if that is not told already.
    pub fn sleeps_until(&mut self, now: Nanos) -> Option<Nanos> {
        match &self.what {
            What::Bursty { sleep, .. } => {
                let length = sleep.draw(&mut self.stream);
                Some(now + self.stream.rounded(length).max(1))
            }
            What::Meter { sleep_ns, .. } => Some(now + sleep_ns),
            _ => None,
        }
    }

    /// Response times of the requests that it served; None of one that serves none.
    pub fn into_responses(self) -> Option<Times> {
        match self.what {
            What::Web(requests) => Some(requests.responses),
            _ => None,
        }
    }
}
