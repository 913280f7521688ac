//! Servers shared equally by all jobs: exact processor sharing.
//!
//! With n jobs on c servers each job is served at the rate min(1, c/n). All jobs receive the same
//! service at the same time, so one number, the service that a job would have received since the
//! start, determines every completion: a job that arrives at service V and needs S completes at V + S.
//! That number is kept in units of 2^-32 nanoseconds, and completions are processed at their true times
//! between the whole nanoseconds of the event queue, so that response times do not depend on its
//! resolution.
use crate::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const UNITS: f64 = 4_294_967_296.0;
const UNIT_BITS: u32 = 32;
const NEVER: u128 = u128::MAX;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SharedJob<J> {
    /// Service at completion, upper and lower half (two words are packed more closely than one of
    /// twice the size), and the number of the job, so that equal jobs complete in order of arrival.
    /// Reversed, because a heap has the maximum on top.
    key: Reverse<(u64, u64, u64)>,
    arrived: Nanos,
    job: J,
}

impl<J> SharedJob<J> {
    #[inline]
    fn new(completes: u128, number: u64, arrived: Nanos, job: J) -> Self {
        Self { key: Reverse(((completes >> 64) as u64, completes as u64, number)), arrived, job }
    }

    #[inline]
    fn completes(&self) -> u128 {
        u128::from(self.key.0 .0) << 64 | u128::from(self.key.0 .1)
    }
}

/// Jobs by completion, the earliest first. Jobs of equal size complete in order of arrival and need no
/// heap.
#[derive(Clone, Debug)]
struct Jobs<J> {
    ordered: VecDeque<SharedJob<J>>,
    heap: BinaryHeap<SharedJob<J>>,
}

impl<J: Ord> Jobs<J> {
    fn len(&self) -> usize {
        self.ordered.len() + self.heap.len()
    }

    #[inline]
    fn push(&mut self, job: SharedJob<J>) {
        if self.ordered.back().is_none_or(|last| job < *last) {
            self.ordered.push_back(job);
        } else {
            self.heap.push(job);
        }
    }

    #[inline]
    fn heap_is_next(&self) -> bool {
        match (self.ordered.front(), self.heap.peek()) {
            (Some(first), Some(top)) => top > first,
            (first, _) => first.is_none(),
        }
    }

    #[inline]
    fn peek(&self) -> Option<&SharedJob<J>> {
        if self.heap.is_empty() || !self.heap_is_next() {
            return self.ordered.front();
        }
        self.heap.peek()
    }

    #[inline]
    fn pop(&mut self) -> Option<SharedJob<J>> {
        if self.heap.is_empty() || !self.heap_is_next() {
            return self.ordered.pop_front();
        }
        self.heap.pop()
    }

    fn drain(&mut self) -> Vec<SharedJob<J>> {
        self.ordered.drain(..).chain(self.heap.drain()).collect()
    }
}

/// Returns a * b / c, rounded down.
#[inline]
fn multiply_divide(a: u128, b: u128, c: u128) -> u128 {
    let product = a * b;
    match (u64::try_from(product), u64::try_from(c)) {
        // A division of 64 bits takes a tenth of the time.
        (Ok(product), Ok(c)) => u128::from(product / c),
        _ => product / c,
    }
}

/// Rounds to the nearest whole number; negative numbers become 0.
#[inline]
fn round(number: f64) -> u128 {
    // From 2^52 on every number is whole.
    let half = if number < (1u64 << 52) as f64 { 0.5 } else { 0.0 };
    let number = number.max(0.0) + half;
    // A conversion to 64 bits takes a tenth of the time.
    if number < (1u64 << 63) as f64 {
        u128::from(number as u64)
    } else {
        number as u128
    }
}

#[inline]
fn to_float(number: u128) -> f64 {
    /// Separate, or the compiler would make both conversions and choose afterwards.
    #[cold]
    #[inline(never)]
    fn slow(number: u128) -> f64 {
        number as f64
    }
    match u64::try_from(number) {
        Ok(number) => number as f64,
        Err(_) => slow(number),
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Completed<J> {
    pub job: J,
    /// From its arrival to its true completion, with a fraction of a nanosecond.
    pub response_ns: f64,
}

/// Servers of speed 1 shared equally by all jobs; a job can use one server at most.
#[derive(Clone, Debug)]
pub struct ProcessorSharing<J> {
    servers: u128,
    /// Time up to which service is accounted for, in units.
    accounted_until: u128,
    /// Service that a job would have received since the start, in units.
    service: u128,
    /// Time of the next completion if no job arrives before, in units; asked for more often than it
    /// changes.
    next: u128,
    arrivals: u64,
    jobs: Jobs<J>,
}

impl<J: Ord> ProcessorSharing<J> {
    pub fn new(servers: u32) -> Self {
        let jobs = Jobs { ordered: VecDeque::new(), heap: BinaryHeap::new() };
        let servers = u128::from(servers);
        Self { servers, accounted_until: 0, service: 0, next: NEVER, arrivals: 0, jobs }
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.len() == 0
    }

    /// Adds a job that needs `service_ns` of a server (negative counts as 0). Everything that
    /// completes up to now has to be taken with [`ProcessorSharing::pop_completed`] before.
    pub fn arrive(&mut self, now: Nanos, service_ns: f64, job: J) {
        debug_assert!(self.next_completion().is_none_or(|time| time > now), "not all was taken");
        self.account_until(u128::from(now) << UNIT_BITS);
        self.arrivals += 1;
        let completes = self.service + round(service_ns * UNITS);
        self.jobs.push(SharedJob::new(completes, self.arrivals, now, job));
        self.update_next();
    }

    /// Removes the next job that completes at or before `now`.
    #[inline]
    pub fn pop_completed(&mut self, now: Nanos) -> Option<Completed<J>> {
        let time = self.next;
        if time > u128::from(now) << UNIT_BITS {
            return None;
        }
        let job = self.jobs.pop()?;
        // By definition the service at that time, free of the division's remainder.
        (self.accounted_until, self.service) = (time, job.completes());
        self.update_next();
        let response = time - (u128::from(job.arrived) << UNIT_BITS);
        Some(Completed { job: job.job, response_ns: to_float(response) / UNITS })
    }

    /// Returns the whole nanosecond at which the next job has completed, if no job arrives before.
    pub fn next_completion(&self) -> Option<Nanos> {
        let time = self.next;
        let whole = |time: u128| Nanos::try_from(time.div_ceil(1 << UNIT_BITS));
        (time != NEVER).then(|| whole(time).unwrap_or(Nanos::MAX))
    }

    /// Removes the next job, early, if it would complete less than `slack_ns` after `now`.
    #[inline]
    pub fn pop_almost_completed(&mut self, now: Nanos, slack_ns: f64) -> Option<J> {
        let now = u128::from(now) << UNIT_BITS;
        if to_float(self.next.saturating_sub(now)) >= slack_ns * UNITS {
            return None;
        }
        self.account_until(now);
        let job = self.jobs.pop()?;
        self.update_next();
        Some(job.job)
    }

    /// Multiplies the remaining service of every job by `ratio`.
    pub fn scale_remaining(&mut self, now: Nanos, ratio: f64) {
        self.account_until(u128::from(now) << UNIT_BITS);
        let mut jobs = self.jobs.drain();
        for job in &mut jobs {
            let remaining = job.completes().saturating_sub(self.service) as f64 * ratio;
            let completes = self.service + remaining.round() as u128;
            job.key.0 = ((completes >> 64) as u64, completes as u64, job.key.0 .2);
        }
        jobs.sort_unstable_by_key(|job| job.key.0);
        jobs.into_iter().for_each(|job| self.jobs.push(job));
        self.update_next();
    }

    /// Removes all jobs and returns them in order of arrival.
    pub fn clear(&mut self) -> Vec<J> {
        let mut jobs = self.jobs.drain();
        self.next = NEVER;
        jobs.sort_by_key(|job| job.key.0 .2);
        jobs.into_iter().map(|job| job.job).collect()
    }

    #[inline]
    fn update_next(&mut self) {
        let Some(first) = self.jobs.peek() else {
            self.next = NEVER;
            return;
        };
        let remaining = first.completes().saturating_sub(self.service);
        let jobs = self.jobs.len() as u128;
        let duration = if jobs <= self.servers {
            remaining
        } else if self.servers == 1 {
            remaining * jobs
        } else {
            (remaining * jobs).div_ceil(self.servers)
        };
        self.next = self.accounted_until + duration;
    }

    #[inline]
    fn account_until(&mut self, time: u128) {
        let jobs = self.jobs.len() as u128;
        if jobs == 0 {
            // No job to be served: start again, so that the numbers stay small.
            self.service = 0;
        } else if time > self.accounted_until {
            let elapsed = time - self.accounted_until;
            self.service += if jobs > self.servers {
                multiply_divide(elapsed, self.servers, jobs)
            } else {
                elapsed
            };
        }
        self.accounted_until = self.accounted_until.max(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Response times by walking from change to change in floating point, all jobs in a list.
    fn replay(servers: f64, jobs: &[(u64, f64)]) -> Vec<f64> {
        let mut left: Vec<(usize, f64)> = Vec::new();
        let mut out = vec![0.0; jobs.len()];
        let (mut now, mut next) = (0.0, 0);
        while next < jobs.len() || !left.is_empty() {
            let rate = (servers / left.len().max(1) as f64).min(1.0);
            let end = left.iter().map(|(_, needs)| needs / rate).fold(f64::INFINITY, f64::min);
            let comes = jobs.get(next).map_or(f64::INFINITY, |job| job.0 as f64 - now);
            let step = end.min(comes);
            left.iter_mut().for_each(|(_, needs)| *needs -= step * rate);
            now += step;
            if comes < end {
                left.push((next, jobs[next].1));
                next += 1;
            } else {
                let least = left.iter().map(|(_, needs)| *needs).fold(f64::INFINITY, f64::min);
                left.retain(|(job, needs)| {
                    let ends = *needs <= least;
                    if ends {
                        out[*job] = now - jobs[*job].0 as f64;
                    }
                    !ends
                });
            }
        }
        out
    }

    fn simulated(servers: u32, jobs: &[(u64, f64)]) -> Vec<f64> {
        let mut sharing = ProcessorSharing::new(servers);
        let mut out = vec![f64::NAN; jobs.len()];
        for (number, (at, needs)) in jobs.iter().enumerate() {
            while let Some(end) = sharing.pop_completed(*at) {
                out[end.job] = end.response_ns;
            }
            sharing.arrive(*at, *needs, number);
        }
        while let Some(end) = sharing.pop_completed(Nanos::MAX) {
            out[end.job] = end.response_ns;
        }
        out
    }

    #[test]
    fn two_jobs_share_one_server() {
        // 10 alone for 4; 6 left and 3 more: the second ends after 6, the first 3 later.
        assert_eq!(simulated(1, &[(0, 10.0), (4, 3.0)]), [13.0, 6.0]);
    }

    #[test]
    fn one_job_cannot_use_two_servers() {
        assert_eq!(simulated(2, &[(0, 10.0), (0, 10.0), (0, 10.0)]), [15.0, 15.0, 15.0]);
        assert_eq!(simulated(2, &[(0, 10.0)]), [10.0]);
    }

    #[test]
    fn a_job_that_needs_nothing_ends_at_once() {
        assert_eq!(simulated(1, &[(5, 0.0), (5, 1.0)]), [0.0, 1.0]);
    }

    proptest! {
        /// To a billionth of the longest response. The replay loses digits itself: its clock is a
        /// sum, so times are kept near 10^6 ns, where a double resolves 10^-10 ns.
        #[test]
        fn it_agrees_with_a_stepwise_calculation(
            servers in 1u32..5,
            jobs in prop::collection::vec((0u64..2000, 0.0f64..5000.0), 1..120),
        ) {
            let mut at = 0;
            let jobs: Vec<_> = jobs.iter().map(|(gap, needs)| { at += gap; (at, *needs) }).collect();
            let (sharing, replayed) = (simulated(servers, &jobs), replay(f64::from(servers), &jobs));
            let scale = replayed.iter().copied().fold(1.0, f64::max);
            for (a, b) in sharing.iter().zip(&replayed) {
                prop_assert!((a - b).abs() <= 1e-9 * scale, "{a} against {b}");
            }
        }

        /// Work is neither lost nor made: one server that is never idle ends when all work is done.
        #[test]
        fn work_is_conserved(needs in prop::collection::vec(0.0f64..1e6, 1..100)) {
            let jobs: Vec<_> = needs.iter().map(|needs| (0, *needs)).collect();
            let last = simulated(1, &jobs).iter().copied().fold(0.0, f64::max);
            let all: f64 = needs.iter().sum();
            prop_assert!((last - all).abs() <= 1e-9 * all.max(1.0), "{last} against {all}");
        }
    }
}
