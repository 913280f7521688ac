//! When each request of an open loop is due: fixed before the first is sent, so that a slow response
//! delays nothing. Pure.
//!
//! A rate that changes is a change of time (Çinlar, Introduction to Stochastic Processes, 1975, 4.7):
//! arrivals of rate 1, evenly spaced or exponentially, are mapped through the inverse of the
//! cumulative rate.
use super::LoadShare;
use nephoscope_wire::random::Random;
use std::sync::Arc;

/// Requests per second as a function of time since the start: linear in each part. The last rate
/// stays.
#[derive(Clone, Debug)]
pub struct RateProfile(Vec<RatePart>);

#[derive(Clone, Copy, Debug)]
struct RatePart {
    from_per_s: f64,
    to_per_s: f64,
    start_s: f64,
    duration_s: f64,
    /// Requests due before it.
    start_count: f64,
}

/// A schedule of an open loop.
#[derive(Clone, Debug)]
pub enum SendSchedule {
    /// Evenly spaced at each rate, or a Poisson process.
    Drawn { rate: RateProfile, poisson: bool, seed: u64 },
    /// Nanoseconds since the start, in ascending order.
    Times(Arc<[u64]>),
}

impl RateProfile {
    pub fn constant(per_s: f64) -> Self {
        Self::linear([(per_s, per_s, u64::MAX)])
    }

    /// The rate at the begin and the end of each part, and its length in nanoseconds.
    pub fn linear(parts: impl IntoIterator<Item = (f64, f64, u64)>) -> Self {
        let (mut start_s, mut start_count) = (0.0, 0.0);
        let place = |(from_per_s, to_per_s, duration_ns): (f64, f64, u64)| {
            let duration_s = duration_ns as f64 / 1e9;
            let part = RatePart { from_per_s, to_per_s, start_s, duration_s, start_count };
            start_s += duration_s;
            start_count += part.count_at(duration_s);
            part
        };
        Self(parts.into_iter().map(place).collect())
    }

    /// Returns the time by which `count` requests are due on average: the inverse of the integral of
    /// the rate.
    fn inverse_s(&self, count: f64) -> f64 {
        let after = self.0.partition_point(|part| part.start_count <= count);
        let part = &self.0[after.saturating_sub(1)];
        part.start_s + part.inverse_s(count - part.start_count)
    }

    /// Returns the requests due in the first `ns`: the integral of the rate.
    #[cfg(test)]
    fn total(&self, ns: u64) -> f64 {
        let s = ns as f64 / 1e9;
        let after = self.0.partition_point(|part| part.start_s <= s);
        let part = &self.0[after.saturating_sub(1)];
        part.start_count + part.count_at(s - part.start_s)
    }
}

impl RatePart {
    fn slope(&self) -> f64 {
        (self.to_per_s - self.from_per_s) / self.duration_s
    }

    /// Requests due `s` after it began.
    fn count_at(&self, s: f64) -> f64 {
        let inside_s = s.min(self.duration_s);
        (self.from_per_s + self.slope() * inside_s / 2.0) * inside_s
            + self.to_per_s * (s - inside_s)
    }

    fn inverse_s(&self, count: f64) -> f64 {
        let whole = self.count_at(self.duration_s);
        if count > whole {
            return self.duration_s + (count - whole) / self.to_per_s;
        }
        let square = self.from_per_s * self.from_per_s + 2.0 * self.slope() * count;
        // Of the two forms of the root the one that subtracts nothing.
        2.0 * count / (self.from_per_s + square.max(0.0).sqrt())
    }
}

/// The arrivals of one of several threads, as nanoseconds since the start. All generators draw the
/// same schedule and take every n-th of it, and so do the threads of each, so that the whole does not
/// depend on their numbers.
#[derive(Debug)]
pub struct Schedule {
    arrivals: SendSchedule,
    random: Random,
    drawn: f64,
    index: usize,
    /// Of all generators.
    generator: LoadShare,
    /// Of the threads of this one.
    thread: LoadShare,
}

impl Schedule {
    pub fn new(arrivals: &SendSchedule, generator: LoadShare, thread: LoadShare) -> Self {
        let seed = if let SendSchedule::Drawn { seed, .. } = arrivals { *seed } else { 0 };
        let random = Random::stream(seed, 0);
        Self { arrivals: arrivals.clone(), random, drawn: 0.0, index: 0, generator, thread }
    }

    fn next_of_all(&mut self) -> Option<u64> {
        let index = self.index;
        self.index += 1;
        match &self.arrivals {
            SendSchedule::Times(times) => times.get(index).copied(),
            SendSchedule::Drawn { rate, poisson, .. } => {
                let count = if *poisson {
                    self.drawn -= (1.0 - self.random.uniform()).ln();
                    self.drawn
                } else {
                    index as f64
                };
                Some((rate.inverse_s(count) * 1e9) as u64)
            }
        }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let is_own = self.index % self.generator.of == self.generator.number
                && self.index / self.generator.of % self.thread.of == self.thread.number;
            let due_ns = self.next_of_all()?;
            if is_own {
                return Some(due_ns);
            }
        }
    }
}

/// Reads arrival times: seconds since the start, one a line, in ascending order. The error is the
/// end of a sentence.
pub fn parse_times(text: &str) -> Result<Arc<[u64]>, String> {
    let mut times = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let seconds = line.parse::<f64>().ok().filter(|s| (0.0..1e9).contains(s));
        let Some(seconds) = seconds else {
            let start: String = line.chars().take(20).collect();
            return Err(format!("line {} is '{start}', which is no time in seconds", index + 1));
        };
        let ns = (seconds * 1e9).round() as u64;
        if times.last().is_some_and(|last| *last > ns) {
            return Err(format!("line {} is earlier than the line before it", index + 1));
        }
        times.push(ns);
    }
    if times.is_empty() {
        return Err("it has no arrival time".to_owned());
    }
    Ok(times.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rate: RateProfile, poisson: bool) -> SendSchedule {
        SendSchedule::Drawn { rate, poisson, seed: 11 }
    }

    fn first(arrivals: &SendSchedule, count: usize) -> Vec<u64> {
        Schedule::new(arrivals, LoadShare::WHOLE, LoadShare::WHOLE).take(count).collect()
    }

    /// Kolmogorov and Smirnov's distance of values from the uniform distribution on 0..1.
    fn distance(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let gap = |(index, value): (usize, &f64)| {
            (value - index as f64 / n).abs().max((value - (index as f64 + 1.0) / n).abs())
        };
        values.iter().enumerate().map(gap).fold(0.0, f64::max)
    }

    /// Five in a million samples of a true distribution lie beyond it (Marsaglia, 2003).
    fn critical(n: usize) -> f64 {
        2.55 / (n as f64).sqrt()
    }

    fn rates() -> [RateProfile; 4] {
        let step_ns = 4_000_000_000;
        let steps = [100.0, 2000.0, 500.0].map(|per_s| (per_s, per_s, step_ns));
        [
            RateProfile::constant(1000.0),
            RateProfile::linear(steps),
            RateProfile::linear([(10.0, 10.0, step_ns), (10.0, 2000.0, step_ns)]),
            RateProfile::linear([(2000.0, 10.0, 3 * step_ns)]),
        ]
    }

    #[test]
    fn poisson_arrivals_are_exponential_after_the_change_of_time() {
        const COUNT: usize = 20_000;
        for rate in rates() {
            let times = first(&drawn(rate.clone(), true), COUNT);
            let totals = std::iter::once(0.0).chain(times.iter().map(|ns| rate.total(*ns)));
            let totals: Vec<f64> = totals.collect();
            let uniform = totals.windows(2).map(|pair| 1.0 - (pair[0] - pair[1]).exp()).collect();
            let distance = distance(uniform);
            assert!(distance < critical(COUNT), "{rate:?}: {distance}");
        }
    }

    #[test]
    fn even_arrivals_follow_the_integral_of_the_rate() {
        for rate in rates() {
            for (index, ns) in first(&drawn(rate.clone(), false), 20_000).into_iter().enumerate() {
                let error = rate.total(ns) - index as f64;
                assert!(error.abs() < 1e-3, "{rate:?}: arrival {index} at {ns}: {error}");
            }
        }
        assert_eq!(
            first(&drawn(RateProfile::constant(4.0), false), 3),
            [0, 250_000_000, 500_000_000]
        );
    }

    #[test]
    fn generators_and_their_threads_share_one_schedule() {
        let arrivals = drawn(RateProfile::constant(100.0), true);
        let whole = first(&arrivals, 60);
        for (generators, threads) in [(1, 3), (3, 1), (2, 3), (5, 4)] {
            let count = 60 / generators / threads;
            let mut parts: Vec<u64> = (0..generators * threads)
                .flat_map(|number| {
                    let generator = LoadShare { number: number % generators, of: generators };
                    let thread = LoadShare { number: number / generators, of: threads };
                    Schedule::new(&arrivals, generator, thread).take(count)
                })
                .collect();
            parts.sort_unstable();
            assert_eq!(parts, whole, "{generators} generators with {threads} threads");
        }
        let times = SendSchedule::Times([5, 6, 7, 8].into());
        let second = LoadShare { number: 1, of: 2 };
        assert_eq!(Schedule::new(&times, LoadShare::WHOLE, second).collect::<Vec<_>>(), [6, 8]);
        assert_eq!(Schedule::new(&times, second, second).collect::<Vec<_>>(), [8]);
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        for (count, of) in [(10, 3), (3, 3), (7, 1), (1000, 7)] {
            let parts = (0..of).map(|number| LoadShare { number, of }.part_of(count));
            assert_eq!(parts.sum::<usize>(), count, "{count} in {of} parts");
        }
    }

    #[test]
    fn times_are_read_or_refused_by_line() {
        assert_eq!(
            *parse_times("# s\n0\n0.5\n\n 1e1 \n").unwrap(),
            [0, 500_000_000, 10_000_000_000]
        );
        for (text, wanted) in [
            ("", "no arrival"),
            ("1\nx\n", "line 2 is 'x'"),
            ("2\n1\n", "line 2 is earlier"),
            ("-1", "line 1"),
            ("nan", "line 1"),
            ("inf", "line 1"),
        ] {
            assert!(parse_times(text).unwrap_err().contains(wanted), "{text}");
        }
    }
}
