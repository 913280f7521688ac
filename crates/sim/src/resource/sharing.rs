//! Servers that all jobs share equally: processor sharing, exactly.
//!
//! With n jobs on c servers each job is served at the rate min(1, c/n). All jobs get the same service
//! at the same time, so one number, the service that a job would have got since the beginning, places
//! every job's end: a job that comes when it is V and needs S ends when it is V + S. That number is
//! kept in whole 2^-32 nanoseconds, and ends are handled at their true moments between the whole
//! nanoseconds of the agenda, so that a job's response time does not depend on how fine the agenda is.
use crate::Nanos;
use std::collections::{BinaryHeap, VecDeque};

/// Parts of a nanosecond.
const PARTS: f64 = 4_294_967_296.0;
const PART_BITS: u32 = 32;
/// No moment.
const NEVER: u128 = u128::MAX;

#[derive(Clone, Debug)]
struct Share<J> {
    /// Service at which the job ends, upper and lower half: two words lie closer than one of double
    /// length.
    ends: (u64, u64),
    /// Its number, so that equals end in the order they came.
    number: u64,
    came: Nanos,
    job: J,
}

impl<J> Share<J> {
    #[inline]
    fn new(ends: u128, number: u64, came: Nanos, job: J) -> Self {
        Self { ends: ((ends >> 64) as u64, ends as u64), number, came, job }
    }

    #[inline]
    fn ends(&self) -> u128 {
        u128::from(self.ends.0) << 64 | u128::from(self.ends.1)
    }
}

impl<J> PartialEq for Share<J> {
    fn eq(&self, other: &Self) -> bool {
        (self.ends, self.number) == (other.ends, other.number)
    }
}

impl<J> Eq for Share<J> {}

impl<J> PartialOrd for Share<J> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<J> Ord for Share<J> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // A heap has the greatest on top: what ends first.
        (other.ends, other.number).cmp(&(self.ends, self.number))
    }
}

/// Jobs by their ends, the first first. Jobs of one size end in the order they came: such a run needs
/// no heap.
#[derive(Clone, Debug)]
struct Ends<J> {
    run: VecDeque<Share<J>>,
    rest: BinaryHeap<Share<J>>,
}

impl<J> Default for Ends<J> {
    fn default() -> Self {
        Self { run: VecDeque::new(), rest: BinaryHeap::new() }
    }
}

impl<J> Ends<J> {
    fn len(&self) -> usize {
        self.run.len() + self.rest.len()
    }

    #[inline]
    fn push(&mut self, share: Share<J>) {
        // Shares order as a heap wants it: what ends later is less.
        if self.run.back().is_none_or(|last| share < *last) {
            self.run.push_back(share);
        } else {
            self.rest.push(share);
        }
    }

    #[inline]
    fn peek(&self) -> Option<&Share<J>> {
        if self.rest.is_empty() {
            return self.run.front();
        }
        match (self.run.front(), self.rest.peek()) {
            (Some(one), Some(other)) => Some(if other > one { other } else { one }),
            (one, other) => one.or(other),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<Share<J>> {
        if self.rest.is_empty() {
            return self.run.pop_front();
        }
        match (self.run.front(), self.rest.peek()) {
            (Some(one), Some(other)) if other > one => self.rest.pop(),
            (Some(_), _) => self.run.pop_front(),
            (None, _) => self.rest.pop(),
        }
    }

    fn take(&mut self) -> Vec<Share<J>> {
        self.run.drain(..).chain(self.rest.drain()).collect()
    }
}

/// a * b / c, rounded down; c is not 0.
#[inline]
fn share_of(a: u128, b: u128, c: u128) -> u128 {
    let product = a * b;
    match (u64::try_from(product), u64::try_from(c)) {
        // A division of 64 bits takes a tenth of the time.
        (Ok(product), Ok(c)) => u128::from(product / c),
        _ => product / c,
    }
}

/// The nearest whole number, 0 below 0. What fits into 64 bits takes a tenth of the time.
#[inline]
fn whole(length: f64) -> u128 {
    // From 2^52 on every number is whole.
    let half = if length < (1u64 << 52) as f64 { 0.5 } else { 0.0 };
    let up = length.max(0.0) + half;
    if up < (1u64 << 63) as f64 {
        u128::from(up as u64)
    } else {
        up as u128
    }
}

/// As a floating-point number. What fits into 64 bits takes a tenth of the time.
#[inline]
fn float(number: u128) -> f64 {
    /// Apart, or the compiler would make both conversions and choose afterwards.
    #[cold]
    #[inline(never)]
    fn wide(number: u128) -> f64 {
        number as f64
    }
    match u64::try_from(number) {
        Ok(number) => number as f64,
        Err(_) => wide(number),
    }
}

/// A job that has had its service.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished<J> {
    /// The job.
    pub job: J,
    /// From its arrival to its true end, in nanoseconds and parts of them.
    pub response_ns: f64,
}

/// Servers shared equally by all jobs; a job can use one server at most.
#[derive(Clone, Debug)]
pub struct Sharing<J> {
    servers: u128,
    /// Moment up to which service is counted, in parts of a nanosecond.
    counted: u128,
    /// What a job would have been served since the beginning, in parts of a nanosecond.
    served: u128,
    /// The moment at which the next job ends if nothing comes before, in parts of a nanosecond; the
    /// end of time without a job. It is asked for more often than it changes.
    next: u128,
    came: u64,
    jobs: Ends<J>,
}

impl<J> Sharing<J> {
    /// So many servers of speed 1, and no job.
    pub fn new(servers: u32) -> Self {
        let jobs = Ends::default();
        Self { servers: u128::from(servers), counted: 0, served: 0, next: NEVER, came: 0, jobs }
    }

    /// Jobs in service.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is no job.
    pub fn is_empty(&self) -> bool {
        self.jobs.len() == 0
    }

    /// A job comes now and needs `service_ns` of a server (below 0 counts as 0). Everything that ends
    /// up to now has to be taken with [`Sharing::finished`] before.
    pub fn comes(&mut self, now: Nanos, service_ns: f64, job: J) {
        debug_assert!(self.next_end().is_none_or(|end| end > now), "an end was not taken");
        self.count_to(u128::from(now) << PART_BITS);
        self.came += 1;
        let needs = whole(service_ns * PARTS);
        self.jobs.push(Share::new(self.served + needs, self.came, now, job));
        self.looks();
    }

    /// The next job that ends at or before `now`.
    #[inline]
    pub fn finished(&mut self, now: Nanos) -> Option<Finished<J>> {
        let end = self.next;
        if end > u128::from(now) << PART_BITS {
            return None;
        }
        let share = self.jobs.pop()?;
        // By definition the service at that moment, free of the division's remainder.
        (self.counted, self.served) = (end, share.ends());
        self.looks();
        let lasted = end - (u128::from(share.came) << PART_BITS);
        Some(Finished { job: share.job, response_ns: float(lasted) / PARTS })
    }

    /// The whole nanosecond at which the next job has ended, if nothing comes before.
    pub fn next_end(&self) -> Option<Nanos> {
        let end = self.next;
        (end != NEVER).then(|| Nanos::try_from(end.div_ceil(1 << PART_BITS)).unwrap_or(Nanos::MAX))
    }

    /// The next job that would end less than `slack_ns` after `now` if nothing came before: it ends
    /// now, early.
    #[inline]
    pub fn cut(&mut self, now: Nanos, slack_ns: f64) -> Option<J> {
        let now = u128::from(now) << PART_BITS;
        if float(self.next.saturating_sub(now)) >= slack_ns * PARTS {
            return None;
        }
        self.count_to(now);
        let share = self.jobs.pop()?;
        self.looks();
        Some(share.job)
    }

    /// From now on every job's rest takes `ratio` times as much service.
    pub fn stretch(&mut self, now: Nanos, ratio: f64) {
        self.count_to(u128::from(now) << PART_BITS);
        let served = self.served;
        let longer = |share: Share<J>| {
            let rest = (share.ends().saturating_sub(served) as f64 * ratio).round() as u128;
            Share::new(served + rest, share.number, share.came, share.job)
        };
        let mut shares: Vec<_> = self.jobs.take().into_iter().map(longer).collect();
        shares.sort_unstable_by(|a, b| b.cmp(a));
        shares.into_iter().for_each(|share| self.jobs.push(share));
        self.looks();
    }

    /// Drops all jobs, and tells which they were, in the order they came.
    pub fn clear(&mut self) -> Vec<J> {
        let mut shares = self.jobs.take();
        self.next = NEVER;
        shares.sort_by_key(|share| share.number);
        shares.into_iter().map(|share| share.job).collect()
    }

    /// Looks when the next job ends.
    #[inline]
    fn looks(&mut self) {
        let Some(first) = self.jobs.peek() else {
            self.next = NEVER;
            return;
        };
        let needs = first.ends().saturating_sub(self.served);
        let jobs = self.jobs.len() as u128;
        let lasts = if jobs <= self.servers {
            needs
        } else if self.servers == 1 {
            needs * jobs
        } else {
            (needs * jobs).div_ceil(self.servers)
        };
        self.next = self.counted + lasts;
    }

    #[inline]
    fn count_to(&mut self, to: u128) {
        let jobs = self.jobs.len() as u128;
        if jobs == 0 {
            // Nobody to be served: begin again, so that the numbers stay small.
            self.served = 0;
        } else if to > self.counted {
            let passed = to - self.counted;
            self.served +=
                if jobs > self.servers { share_of(passed, self.servers, jobs) } else { passed };
        }
        self.counted = self.counted.max(to);
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
        let mut sharing = Sharing::new(servers);
        let mut out = vec![f64::NAN; jobs.len()];
        for (number, (at, needs)) in jobs.iter().enumerate() {
            while let Some(end) = sharing.finished(*at) {
                out[end.job] = end.response_ns;
            }
            sharing.comes(*at, *needs, number);
        }
        while let Some(end) = sharing.finished(Nanos::MAX) {
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
        fn it_agrees_with_a_replay(
            servers in 1u32..5,
            jobs in prop::collection::vec((0u64..2000, 0.0f64..5000.0), 1..120),
        ) {
            let mut at = 0;
            let jobs: Vec<_> = jobs.iter().map(|(gap, needs)| { at += gap; (at, *needs) }).collect();
            let (ours, theirs) = (simulated(servers, &jobs), replay(f64::from(servers), &jobs));
            let scale = theirs.iter().copied().fold(1.0, f64::max);
            for (a, b) in ours.iter().zip(&theirs) {
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
