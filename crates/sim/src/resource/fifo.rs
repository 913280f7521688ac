//! Servers that take work in the order in which it came.
use std::collections::VecDeque;

/// A number of equal servers and one line in front of them.
#[derive(Clone, Debug)]
pub struct Fifo<J> {
    servers: usize,
    busy: usize,
    line: VecDeque<J>,
}

impl<J> Fifo<J> {
    /// So many servers, all free.
    pub fn new(servers: usize) -> Self {
        Self { servers, busy: 0, line: VecDeque::new() }
    }

    /// A job comes: it is given back if a server takes it now, else it waits.
    #[inline]
    pub fn comes(&mut self, job: J) -> Option<J> {
        if self.busy < self.servers {
            self.busy += 1;
            Some(job)
        } else {
            self.line.push_back(job);
            None
        }
    }

    /// A server has finished: the job that it takes next, if one waits.
    ///
    /// # Panics
    /// If no server was busy.
    #[inline]
    pub fn done(&mut self) -> Option<J> {
        assert!(self.busy > 0, "a server finished, and none was busy");
        let next = self.line.pop_front();
        if next.is_none() {
            self.busy -= 1;
        }
        next
    }

    /// Servers at work.
    pub fn busy(&self) -> usize {
        self.busy
    }

    /// Jobs that wait.
    pub fn waiting(&self) -> usize {
        self.line.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_arrival_is_kept() {
        let mut fifo = Fifo::new(2);
        let taken: Vec<_> = (1..=5).filter_map(|job| fifo.comes(job)).collect();
        assert_eq!((taken.as_slice(), fifo.busy(), fifo.waiting()), ([1, 2].as_slice(), 2, 3));
        let later: Vec<_> = (0..5).map(|_| fifo.done()).collect();
        assert_eq!(later, [Some(3), Some(4), Some(5), None, None]);
        assert_eq!((fifo.busy(), fifo.waiting()), (0, 0));
    }

    #[test]
    #[should_panic(expected = "none was busy")]
    fn nobody_finishes_nothing() {
        Fifo::<u8>::new(1).done();
    }
}
