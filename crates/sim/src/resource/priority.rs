//! Servers that take the most urgent work first; among equals, what came first.
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Debug)]
struct Waiting<J> {
    key: Reverse<(i64, u64)>,
    job: J,
}

impl<J> PartialEq for Waiting<J> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<J> Eq for Waiting<J> {}

impl<J> PartialOrd for Waiting<J> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<J> Ord for Waiting<J> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A number of equal servers; work in service is never interrupted.
#[derive(Clone, Debug)]
pub struct Priority<J> {
    servers: usize,
    busy: usize,
    came: u64,
    line: BinaryHeap<Waiting<J>>,
}

impl<J> Priority<J> {
    /// So many servers, all free.
    pub fn new(servers: usize) -> Self {
        Self { servers, busy: 0, came: 0, line: BinaryHeap::new() }
    }

    /// A job of a class comes (the lowest class is the most urgent): it is given back if a server
    /// takes it now.
    pub fn comes(&mut self, class: i64, job: J) -> Option<J> {
        if self.busy < self.servers {
            self.busy += 1;
            return Some(job);
        }
        self.came += 1;
        self.line.push(Waiting { key: Reverse((class, self.came)), job });
        None
    }

    /// A server has finished: the job that it takes next, if one waits.
    ///
    /// # Panics
    /// If no server was busy.
    pub fn done(&mut self) -> Option<J> {
        assert!(self.busy > 0, "a server finished, and none was busy");
        let next = self.line.pop().map(|waiting| waiting.job);
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
    fn the_urgent_go_first_and_equals_in_order() {
        let mut line = Priority::new(1);
        assert_eq!(line.comes(5, 'a'), Some('a'));
        for (class, job) in [(2, 'b'), (1, 'c'), (2, 'd'), (1, 'e'), (-1, 'f')] {
            assert_eq!(line.comes(class, job), None);
        }
        let order: String = std::iter::from_fn(|| line.done()).collect();
        assert_eq!((order.as_str(), line.busy()), ("fcebd", 0));
    }
}
