//! The work of one instance.
use super::scenario::Discipline;
use crate::processor_sharing::ProcessorSharing;
use crate::Nanos;
use std::collections::VecDeque;

/// Requests that an instance serves as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestBatch {
    /// The message to which they belong.
    pub message: u32,
    pub requests: u32,
}

/// The work of an instance.
#[derive(Clone, Debug)]
pub enum InstanceServer {
    Sharing(ProcessorSharing<RequestBatch>),
    /// In order of arrival, with the completion of each, including a fraction of a nanosecond.
    Fifo(VecDeque<(f64, RequestBatch)>),
}

impl InstanceServer {
    /// Returns an idle server.
    pub fn new(discipline: Discipline) -> Self {
        match discipline {
            Discipline::Sharing => Self::Sharing(ProcessorSharing::new(1)),
            Discipline::Fifo => Self::Fifo(VecDeque::new()),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Sharing(sharing) => sharing.is_empty(),
            Self::Fifo(queue) => queue.is_empty(),
        }
    }

    /// Adds a batch; completed ones have to be removed before.
    #[inline]
    pub fn arrive(&mut self, now: Nanos, service_ns: f64, batch: RequestBatch) {
        match self {
            Self::Sharing(sharing) => sharing.arrive(now, service_ns, batch),
            Self::Fifo(queue) => {
                let start = queue.back().map_or(now as f64, |last| last.0.max(now as f64));
                queue.push_back((start + service_ns, batch));
            }
        }
    }

    /// Removes the next batch that is complete by now.
    #[inline]
    pub fn pop_completed(&mut self, now: Nanos) -> Option<RequestBatch> {
        match self {
            Self::Sharing(sharing) => sharing.pop_completed(now).map(|completed| completed.job),
            Self::Fifo(queue) => {
                queue.front().filter(|first| first.0 <= now as f64)?;
                queue.pop_front().map(|first| first.1)
            }
        }
    }

    /// Removes the next batch that is complete by now or, if shared, would be less than `slack_ns` later.
    #[inline]
    pub fn pop_almost_completed(&mut self, now: Nanos, slack_ns: f64) -> Option<RequestBatch> {
        let completed = self.pop_completed(now);
        match self {
            Self::Sharing(sharing) if completed.is_none() => {
                sharing.pop_almost_completed(now, slack_ns)
            }
            _ => completed,
        }
    }

    /// Returns the whole nanosecond at which the next batch is complete, if none arrives before.
    #[inline]
    pub fn next_completion(&self) -> Option<Nanos> {
        match self {
            Self::Sharing(sharing) => sharing.next_completion(),
            Self::Fifo(queue) => queue.front().map(|first| first.0.ceil() as Nanos),
        }
    }

    /// Removes and returns everything.
    pub fn clear(&mut self) -> Vec<RequestBatch> {
        match self {
            Self::Sharing(sharing) => sharing.clear(),
            Self::Fifo(queue) => queue.drain(..).map(|entry| entry.1).collect(),
        }
    }

    /// Multiplies all remaining service by `ratio`.
    pub fn scale_remaining(&mut self, now: Nanos, ratio: f64) {
        match self {
            Self::Sharing(sharing) => sharing.scale_remaining(now, ratio),
            Self::Fifo(queue) => {
                for (completion, _) in queue {
                    *completion = now as f64 + (*completion - now as f64).max(0.0) * ratio;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(message: u32) -> RequestBatch {
        RequestBatch { message, requests: 1 }
    }

    fn completions(server: &mut InstanceServer) -> Vec<(u32, Nanos)> {
        let next = || {
            let at = server.next_completion()?;
            Some((server.pop_completed(at)?.message, at))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_line_serves_in_order() {
        let mut server = InstanceServer::new(Discipline::Fifo);
        server.arrive(0, 10.0, batch(1));
        server.arrive(2, 1.0, batch(2));
        assert_eq!(server.pop_completed(9), None);
        assert_eq!(completions(&mut server), [(1, 10), (2, 11)]);
        server.arrive(20, 5.0, batch(3));
        assert_eq!(completions(&mut server), [(3, 25)]);
    }

    #[test]
    fn work_in_hand_can_be_slowed_down_and_lost() {
        for (discipline, wanted) in
            [(Discipline::Fifo, [(1, 24), (2, 32)]), (Discipline::Sharing, [(2, 20), (1, 32)])]
        {
            let mut server = InstanceServer::new(discipline);
            server.arrive(0, 14.0, batch(1));
            server.arrive(4, 4.0, batch(2));
            server.scale_remaining(4, 2.0);
            assert_eq!(completions(&mut server), wanted, "{discipline:?}");
        }
        let mut server = InstanceServer::new(Discipline::Sharing);
        server.arrive(0, 14.0, batch(1));
        assert_eq!(server.clear(), [batch(1)]);
        assert!(server.is_empty() && server.next_completion().is_none());
    }
}
