//! Workers with one queue: requests of all connections are served in the order in which they came.
//! With one worker the start times obey Lindley's recursion exactly: a service that only lasts is
//! kept by its times, so that a late timer delays an answer but never the next service.
use super::stalls::Stalls;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What a worker does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// Lasts so long.
    Time(u64),
    /// Uses so much CPU time.
    Cpu(u64),
}

/// A request and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuedRequest {
    /// The connection that waits for the answer.
    pub connection: u64,
    pub service: WorkKind,
    pub arrival_ns: u64,
    pub start_ns: u64,
    pub end_ns: u64,
}

#[derive(Debug)]
pub struct RequestQueue {
    /// Workers without work: since when.
    idle: VecDeque<u64>,
    waiting: VecDeque<QueuedRequest>,
    /// Services that only last, by their end and the order of their start.
    timed: BinaryHeap<Reverse<(u64, u64, QueuedRequest)>>,
    started: u64,
}

impl RequestQueue {
    pub fn new(workers: usize) -> Self {
        Self {
            idle: vec![0; workers].into(),
            waiting: VecDeque::new(),
            timed: BinaryHeap::new(),
            started: 0,
        }
    }

    pub fn push(&mut self, connection: u64, service: WorkKind, arrival_ns: u64) {
        let job = QueuedRequest { connection, service, arrival_ns, start_ns: 0, end_ns: 0 };
        self.waiting.push_back(job);
    }

    /// Starts what can be started; returns a job that needs a thread, until there is none.
    pub fn start(&mut self, stalls: &Stalls) -> Option<QueuedRequest> {
        while !self.waiting.is_empty() {
            let free_ns = self.idle.pop_front()?;
            let mut job = self.waiting.pop_front()?;
            job.start_ns = stalls.resume_at(job.arrival_ns.max(free_ns));
            match job.service {
                WorkKind::Cpu(_) => return Some(job),
                WorkKind::Time(ns) => {
                    job.end_ns = stalls.finish_at(job.start_ns, ns);
                    self.started += 1;
                    self.timed.push(Reverse((job.end_ns, self.started, job)));
                }
            }
        }
        None
    }

    /// When the next service that only lasts ends.
    #[inline]
    pub fn next_end_ns(&self) -> Option<u64> {
        self.timed.peek().map(|Reverse((end_ns, ..))| *end_ns)
    }

    /// Ends the next service that is over by `now_ns`; its worker is free.
    pub fn take_ended(&mut self, now_ns: u64) -> Option<QueuedRequest> {
        self.next_end_ns().filter(|end_ns| *end_ns <= now_ns)?;
        let Reverse((end_ns, _, job)) = self.timed.pop()?;
        self.idle.push_back(end_ns);
        Some(job)
    }

    /// A thread has ended its job.
    pub fn free(&mut self, end_ns: u64) {
        self.idle.push_back(end_ns);
    }

    /// Delays all services that are under way.
    pub fn delay(&mut self, by_ns: u64) {
        let delayed = self.timed.drain().map(|Reverse((_, number, job))| {
            let end_ns = job.end_ns + by_ns;
            Reverse((end_ns, number, QueuedRequest { end_ns, ..job }))
        });
        self.timed = delayed.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_wire::random::Random;

    fn served(queue: &mut RequestQueue, stalls: &Stalls, until_ns: u64) -> Vec<QueuedRequest> {
        let mut ended = Vec::new();
        assert_eq!(queue.start(stalls), None);
        while let Some(job) = queue.take_ended(until_ns) {
            ended.push(job);
            assert_eq!(queue.start(stalls), None);
        }
        ended
    }

    #[test]
    fn one_worker_obeys_the_recursion_of_lindley() {
        let (mut random, stalls) = (Random::new(1), Stalls::new(0, 0, 0));
        let mut queue = RequestQueue::new(1);
        let (mut at_ns, mut free_ns) = (0, 0);
        let mut expected = Vec::new();
        let mut jobs = Vec::new();
        for connection in 0..1000 {
            at_ns += random.below(100);
            let service_ns = random.below(80);
            // Timers fire late: at the next arrival.
            jobs.extend(served(&mut queue, &stalls, at_ns));
            queue.push(connection, WorkKind::Time(service_ns), at_ns);
            assert_eq!(queue.start(&stalls), None);
            let start_ns = at_ns.max(free_ns);
            free_ns = start_ns + service_ns;
            expected.push((connection, at_ns, start_ns, free_ns));
        }
        jobs.extend(served(&mut queue, &stalls, u64::MAX));
        let times: Vec<_> = jobs
            .iter()
            .map(|job| (job.connection, job.arrival_ns, job.start_ns, job.end_ns))
            .collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn a_job_takes_the_worker_that_is_free_first() {
        let (mut queue, stalls) = (RequestQueue::new(2), Stalls::new(0, 0, 0));
        for (connection, ns) in [(1, 100), (2, 10), (3, 5)] {
            queue.push(connection, WorkKind::Time(ns), 0);
        }
        let ends: Vec<_> = served(&mut queue, &stalls, 1000)
            .iter()
            .map(|job| (job.connection, job.end_ns))
            .collect();
        assert_eq!(ends, [(2, 10), (3, 15), (1, 100)]);
    }

    #[test]
    fn a_thread_occupies_its_worker_until_it_reports() {
        let (mut queue, stalls) = (RequestQueue::new(1), Stalls::new(0, 0, 0));
        queue.push(1, WorkKind::Cpu(5), 10);
        queue.push(2, WorkKind::Time(5), 11);
        let job = queue.start(&stalls).unwrap();
        assert_eq!((job.connection, job.start_ns, queue.waiting.len()), (1, 10, 1));
        assert_eq!(queue.start(&stalls), None);
        queue.free(40);
        assert_eq!(queue.start(&stalls), None);
        assert_eq!(queue.next_end_ns(), Some(45));
    }

    #[test]
    fn a_delay_moves_services_that_are_under_way() {
        let (mut queue, stalls) = (RequestQueue::new(1), Stalls::new(0, 0, 0));
        queue.push(1, WorkKind::Time(5), 10);
        assert_eq!(queue.start(&stalls), None);
        queue.delay(100);
        assert_eq!(queue.take_ended(114), None);
        assert_eq!(queue.take_ended(115).map(|job| job.end_ns), Some(115));
    }
}
