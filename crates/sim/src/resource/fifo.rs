//! Equal servers that take jobs in order of arrival.
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub struct Fifo<J> {
    servers: usize,
    busy: usize,
    queue: VecDeque<J>,
}

impl<J> Fifo<J> {
    pub fn new(servers: usize) -> Self {
        Self { servers, busy: 0, queue: VecDeque::new() }
    }

    /// Returns the arriving job if a server starts it now; else it is queued.
    #[inline]
    pub fn arrive(&mut self, job: J) -> Option<J> {
        if self.busy < self.servers {
            self.busy += 1;
            Some(job)
        } else {
            self.queue.push_back(job);
            None
        }
    }

    /// Frees a server, and returns the job that it starts next, if one is queued.
    ///
    /// # Panics
    /// If no server was busy.
    #[inline]
    pub fn complete(&mut self) -> Option<J> {
        assert!(self.busy > 0, "a job completed, and no server was busy");
        let next = self.queue.pop_front();
        if next.is_none() {
            self.busy -= 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_served_in_order_of_arrival() {
        let mut fifo = Fifo::new(2);
        let taken: Vec<_> = (1..=5).filter_map(|job| fifo.arrive(job)).collect();
        assert_eq!(taken, [1, 2]);
        let later: Vec<_> = (0..5).map(|_| fifo.complete()).collect();
        assert_eq!(later, [Some(3), Some(4), Some(5), None, None]);
        assert_eq!(fifo.busy, 0);
    }

    #[test]
    #[should_panic(expected = "no server was busy")]
    fn completing_without_jobs_panics() {
        Fifo::<u8>::new(1).complete();
    }
}
