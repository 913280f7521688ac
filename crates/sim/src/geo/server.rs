//! One instance: what it has to do, and when the next of it is done.
use super::scenario::Discipline;
use crate::resource::Sharing;
use crate::Nanos;
use std::collections::VecDeque;

/// Requests that an instance serves as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The message to which they belong.
    pub message: u32,
    /// How many requests.
    pub requests: u32,
}

/// What an instance has to do.
#[derive(Clone, Debug)]
pub enum Server {
    /// All at once, equally.
    Sharing(Sharing<Part>),
    /// One after another: when each will be done, in parts of nanoseconds too.
    Line(VecDeque<(f64, Part)>),
}

impl Server {
    /// An idle one.
    pub fn new(discipline: Discipline) -> Self {
        match discipline {
            Discipline::Sharing => Self::Sharing(Sharing::new(1)),
            Discipline::Fifo => Self::Line(VecDeque::new()),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Sharing(sharing) => sharing.is_empty(),
            Self::Line(line) => line.is_empty(),
        }
    }

    /// Work of that length comes; what is done up to now has to be taken before.
    #[inline]
    pub fn comes(&mut self, now: Nanos, length_ns: f64, part: Part) {
        match self {
            Self::Sharing(sharing) => sharing.comes(now, length_ns, part),
            Self::Line(line) => {
                let begins = line.back().map_or(now as f64, |last| last.0.max(now as f64));
                line.push_back((begins + length_ns, part));
            }
        }
    }

    /// The next that is done by now.
    #[inline]
    pub fn finished(&mut self, now: Nanos) -> Option<Part> {
        match self {
            Self::Sharing(sharing) => sharing.finished(now).map(|done| done.job),
            Self::Line(line) => {
                line.front().filter(|first| first.0 <= now as f64)?;
                line.pop_front().map(|first| first.1)
            }
        }
    }

    /// The next that is done by now or, shared, as good as done: that would be less than `slack_ns`
    /// later if nothing came.
    #[inline]
    pub fn nearly_finished(&mut self, now: Nanos, slack_ns: f64) -> Option<Part> {
        let finished = self.finished(now);
        match self {
            Self::Sharing(sharing) if finished.is_none() => sharing.cut(now, slack_ns),
            _ => finished,
        }
    }

    /// How many parts it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Sharing(sharing) => sharing.len(),
            Self::Line(line) => line.len(),
        }
    }

    /// The whole nanosecond at which the next is done, if nothing comes before.
    #[inline]
    pub fn next_end(&self) -> Option<Nanos> {
        match self {
            Self::Sharing(sharing) => sharing.next_end(),
            Self::Line(line) => line.front().map(|first| first.0.ceil() as Nanos),
        }
    }

    /// Drops everything, and tells what it was.
    pub fn clear(&mut self) -> Vec<Part> {
        match self {
            Self::Sharing(sharing) => sharing.clear(),
            Self::Line(line) => line.drain(..).map(|entry| entry.1).collect(),
        }
    }

    /// From now on everything takes `ratio` times as long.
    pub fn stretch(&mut self, now: Nanos, ratio: f64) {
        match self {
            Self::Sharing(sharing) => sharing.stretch(now, ratio),
            Self::Line(line) => {
                for (ends, _) in line {
                    *ends = now as f64 + (*ends - now as f64).max(0.0) * ratio;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(message: u32) -> Part {
        Part { message, requests: 1 }
    }

    fn ends(server: &mut Server) -> Vec<(u32, Nanos)> {
        let next = || {
            let at = server.next_end()?;
            Some((server.finished(at)?.message, at))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_line_serves_in_order() {
        let mut server = Server::new(Discipline::Fifo);
        server.comes(0, 10.0, part(1));
        server.comes(2, 1.0, part(2));
        assert_eq!(server.finished(9), None);
        assert_eq!(ends(&mut server), [(1, 10), (2, 11)]);
        server.comes(20, 5.0, part(3));
        assert_eq!(ends(&mut server), [(3, 25)]);
    }

    #[test]
    fn work_in_hand_can_be_slowed_down_and_lost() {
        for (discipline, wanted) in
            [(Discipline::Fifo, [(1, 24), (2, 32)]), (Discipline::Sharing, [(2, 20), (1, 32)])]
        {
            let mut server = Server::new(discipline);
            server.comes(0, 14.0, part(1));
            server.comes(4, 4.0, part(2));
            server.stretch(4, 2.0);
            assert_eq!(ends(&mut server), wanted, "{discipline:?}");
        }
        let mut server = Server::new(Discipline::Sharing);
        server.comes(0, 14.0, part(1));
        assert_eq!(server.clear(), [part(1)]);
        assert!(server.is_empty() && server.next_end().is_none());
    }
}
