//! When work arrives: at random, evenly, in bursts, or as it was recorded.
use crate::error::{above_zero, Refused};
use crate::random::Stream;
use crate::{Nanos, SECOND};
use std::sync::Arc;

/// A stream of arrivals.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// Independent of each other, at a mean rate a second.
    Poisson { per_s: f64 },
    /// One after each interval.
    Constant { every_ns: f64 },
    /// So many at one moment; the moments are independent of each other.
    Bursts { size: u32, bursts_per_s: f64 },
    /// At these moments, ascending; afterwards nothing comes any more.
    Trace { at_ns: Arc<[Nanos]> },
}

impl Arrivals {
    /// Poisson arrivals of that rate. Refused: a rate that is not above zero.
    pub fn poisson(per_s: f64) -> Result<Self, Refused> {
        Ok(Self::Poisson { per_s: above_zero("the arrival rate", per_s)? })
    }

    /// Even arrivals of that rate. Refused: a rate that is not above zero.
    pub fn constant(per_s: f64) -> Result<Self, Refused> {
        Ok(Self::Constant { every_ns: SECOND as f64 / above_zero("the arrival rate", per_s)? })
    }

    /// Bursts of that size, of that rate of arrivals together. Refused: size 0, no rate.
    pub fn bursts(size: u32, per_s: f64) -> Result<Self, Refused> {
        let size_given = above_zero("the size of a burst", f64::from(size))?;
        let bursts_per_s = above_zero("the arrival rate", per_s)? / size_given;
        Ok(Self::Bursts { size, bursts_per_s })
    }

    /// Arrivals as recorded. Refused: moments that go back.
    pub fn trace(at_ns: impl Into<Arc<[Nanos]>>) -> Result<Self, Refused> {
        let at_ns = at_ns.into();
        if let Some(place) = at_ns.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(Refused::new(
                format!("Arrival {} of the trace lies before the one in front of it.", place + 2),
                "Sort the trace by time.",
            ));
        }
        Ok(Self::Trace { at_ns })
    }

    /// Mean arrivals a second; None for a trace of fewer than two moments.
    pub fn per_s(&self) -> Option<f64> {
        match self {
            Self::Poisson { per_s } => Some(*per_s),
            Self::Constant { every_ns } => Some(SECOND as f64 / every_ns),
            Self::Bursts { size, bursts_per_s } => Some(f64::from(*size) * bursts_per_s),
            Self::Trace { at_ns } => {
                let (first, last) = (at_ns.first()?, at_ns.last()?);
                let length = last.checked_sub(*first).filter(|length| *length > 0)?;
                Some((at_ns.len() - 1) as f64 * SECOND as f64 / length as f64)
            }
        }
    }

    /// The arrivals themselves, from moment 0 on, with chance from that stream.
    pub fn begin(&self, stream: Stream) -> Coming {
        Coming { arrivals: self.clone(), stream, exact_ns: 0.0, number: 0, of_burst: 0, at: 0 }
    }
}

/// Arrivals one by one.
#[derive(Clone, Debug)]
pub struct Coming {
    arrivals: Arrivals,
    stream: Stream,
    /// Where the next interval begins, with its part of a nanosecond since [`Coming::at`].
    exact_ns: f64,
    number: usize,
    of_burst: u32,
    at: Nanos,
}

impl Coming {
    /// Moment of the next arrival; None when nothing comes any more.
    #[inline]
    pub fn next_at(&mut self) -> Option<Nanos> {
        match &self.arrivals {
            Arrivals::Poisson { per_s } => {
                let gap = self.stream.exponential() * (SECOND as f64 / per_s);
                Some(self.step(gap))
            }
            Arrivals::Constant { every_ns } => {
                let gap = *every_ns;
                Some(self.step(gap))
            }
            Arrivals::Bursts { size, bursts_per_s } => {
                if self.of_burst > 0 {
                    self.of_burst -= 1;
                    return Some(self.at);
                }
                self.of_burst = size - 1;
                let gap = self.stream.exponential() * (SECOND as f64 / bursts_per_s);
                Some(self.step(gap))
            }
            Arrivals::Trace { at_ns } => {
                let at = at_ns.get(self.number).copied();
                self.number += 1;
                at
            }
        }
    }

    /// Goes on by a length; what is less than a nanosecond is kept for the next step.
    #[inline]
    fn step(&mut self, gap_ns: f64) -> Nanos {
        self.exact_ns += gap_ns;
        let whole = self.exact_ns.floor();
        self.exact_ns -= whole;
        self.at = self.at.saturating_add(whole as Nanos);
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(arrivals: &Arrivals, n: usize) -> Vec<Nanos> {
        let mut coming = arrivals.begin(Stream::of(1, 0, 0));
        std::iter::from_fn(|| coming.next_at()).take(n).collect()
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        // A third of a nanosecond too early would be 3,333 ns after 10,000 arrivals.
        let at = first(&Arrivals::constant(3e6).unwrap(), 30_000);
        assert!(at[29_999].abs_diff(10_000_000) <= 1, "{}", at[29_999]);
    }

    #[test]
    fn a_burst_is_one_moment() {
        let at = first(&Arrivals::bursts(3, 30.0).unwrap(), 9);
        assert!(at.chunks(3).all(|burst| burst[0] == burst[1] && burst[1] == burst[2]));
        assert!(at[0] < at[3] && at[3] < at[6]);
    }

    #[test]
    fn rates_are_what_they_say() {
        let n = 100_000;
        for arrivals in [Arrivals::poisson(1e6).unwrap(), Arrivals::bursts(4, 1e6).unwrap()] {
            let seconds = *first(&arrivals, n).last().unwrap() as f64 / SECOND as f64;
            // Of bursts of four there are 25,000: five standard errors are 3.2 %.
            assert!((n as f64 / seconds / 1e6 - 1.0).abs() < 0.032, "{arrivals:?}");
            assert_eq!(arrivals.per_s(), Some(1e6));
        }
    }

    #[test]
    fn a_trace_is_kept_and_ends() {
        let trace = Arrivals::trace([1, 1, 5]).unwrap();
        assert_eq!(first(&trace, 9), [1, 1, 5]);
        assert_eq!(trace.per_s(), Some(2.0 * SECOND as f64 / 4.0));
        assert!(Arrivals::trace([2, 1]).unwrap_err().what.contains("Arrival 2"));
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Arrivals::poisson(rate).is_err() && Arrivals::constant(rate).is_err());
            assert!(Arrivals::bursts(2, rate).is_err());
        }
        assert!(Arrivals::bursts(0, 1.0).is_err());
    }
}
