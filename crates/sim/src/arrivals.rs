//! Arrival processes: Poisson, deterministic, or in bursts.
use crate::error::{positive, Result};
use crate::random::RandomStream;
use crate::{Nanos, SECOND};

#[derive(Clone, Copy, Debug)]
pub enum Arrivals {
    Poisson {
        per_s: f64,
    },
    Constant {
        interval_ns: f64,
    },
    /// `size` simultaneous arrivals; the bursts are a Poisson process.
    Bursts {
        size: u32,
        bursts_per_s: f64,
    },
}

impl Arrivals {
    pub fn poisson(per_s: f64) -> Result<Self> {
        Ok(Self::Poisson { per_s: positive("The arrival rate", per_s)? })
    }

    pub fn constant(per_s: f64) -> Result<Self> {
        Ok(Self::Constant { interval_ns: SECOND as f64 / positive("The arrival rate", per_s)? })
    }

    /// Returns bursts of `size` arrivals. per_s: rate of single arrivals.
    pub fn bursts(size: u32, per_s: f64) -> Result<Self> {
        let arrivals = positive("The burst size", f64::from(size))?;
        Ok(Self::Bursts { size, bursts_per_s: positive("The arrival rate", per_s)? / arrivals })
    }

    pub fn per_s(&self) -> f64 {
        match *self {
            Self::Poisson { per_s } => per_s,
            Self::Constant { interval_ns } => SECOND as f64 / interval_ns,
            Self::Bursts { size, bursts_per_s } => f64::from(size) * bursts_per_s,
        }
    }

    /// Returns the arrival times from 0 on.
    pub fn start(&self, stream: RandomStream) -> ArrivalTimes {
        ArrivalTimes { arrivals: *self, stream, fraction_ns: 0.0, left_in_burst: 0, last: 0 }
    }
}

/// The arrival times of a process, one by one.
#[derive(Clone, Debug)]
pub struct ArrivalTimes {
    arrivals: Arrivals,
    stream: RandomStream,
    /// What the last arrival is later than `last`, below one nanosecond.
    fraction_ns: f64,
    left_in_burst: u32,
    last: Nanos,
}

impl ArrivalTimes {
    #[inline]
    pub fn next_time(&mut self) -> Nanos {
        let interval_ns = match self.arrivals {
            Arrivals::Poisson { per_s } => self.stream.exponential() * (SECOND as f64 / per_s),
            Arrivals::Constant { interval_ns } => interval_ns,
            Arrivals::Bursts { size, bursts_per_s } => {
                if self.left_in_burst > 0 {
                    self.left_in_burst -= 1;
                    return self.last;
                }
                self.left_in_burst = size - 1;
                self.stream.exponential() * (SECOND as f64 / bursts_per_s)
            }
        };
        self.fraction_ns += interval_ns;
        let whole = self.fraction_ns.floor();
        self.fraction_ns -= whole;
        self.last = self.last.saturating_add(whole as Nanos);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(arrivals: &Arrivals, n: usize) -> Vec<Nanos> {
        let mut times = arrivals.start(RandomStream::new(1, 0, 0));
        (0..n).map(|_| times.next_time()).collect()
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
            assert_eq!(arrivals.per_s(), 1e6);
        }
    }

    #[test]
    fn invalid_rates_are_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Arrivals::poisson(rate).is_err() && Arrivals::constant(rate).is_err());
            assert!(Arrivals::bursts(2, rate).is_err());
        }
        assert!(Arrivals::bursts(0, 1.0).is_err());
    }
}
