//! Goodput block by block: the rate at which each block of a set size was received. Pure: times are
//! arguments.
use crate::timing::closed_loop::{latency_histogram, pairs};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Points of the series of all streams; with more blocks than this, neighbours are merged.
const POINTS: usize = 4096;

/// Some blocks that follow one another: their end, how long they took, what they carried.
#[derive(Clone, Copy, Debug)]
struct Point {
    end_ns: u64,
    ns: u64,
    bytes: u64,
}

/// Blocks of one stream, or of one direction of datagrams.
#[derive(Debug)]
pub struct Blocks {
    block_bytes: u64,
    /// Times of the series count from here.
    origin_ns: u64,
    block_start_ns: u64,
    bytes: u64,
    rates: Histogram<u64>,
    points: Vec<Point>,
    points_max: usize,
    blocks_per_point: u64,
    /// Blocks that the last point holds.
    blocks_in_last: u64,
}

/// The result of one direction; the rates of all streams together, the series of each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BlockRates {
    /// (bytes per second, blocks).
    pub rates: Vec<(f64, u64)>,
    /// (end, bytes per second) of each point of each stream.
    pub series: Vec<Vec<(u64, f64)>>,
}

impl BlockRates {
    /// Returns the coefficient of variation of the rates; `None` with fewer than two blocks.
    pub fn variation(&self) -> Option<f64> {
        let sum = |value: fn(f64) -> f64| -> f64 {
            self.rates.iter().map(|(rate, blocks)| value(*rate) * *blocks as f64).sum()
        };
        let blocks: u64 = self.rates.iter().map(|(_, blocks)| blocks).sum();
        if blocks < 2 {
            return None;
        }
        let mean = sum(|rate| rate) / blocks as f64;
        let squares = sum(|rate| rate * rate) - blocks as f64 * mean * mean;
        Some((squares.max(0.0) / (blocks - 1) as f64).sqrt() / mean)
    }
}

impl Blocks {
    /// Blocks of `block_bytes` of one of `streams`; 0 bytes record none.
    pub fn new(block_bytes: u64, streams: usize, origin_ns: u64) -> Self {
        // Even, so that neighbours are pairs.
        let points_max = (POINTS / streams.max(1) / 2).max(16) * 2;
        Self {
            block_bytes,
            origin_ns,
            block_start_ns: 0,
            bytes: 0,
            rates: latency_histogram(),
            points: Vec::with_capacity(if block_bytes > 0 { points_max } else { 0 }),
            points_max,
            blocks_per_point: 1,
            blocks_in_last: 1,
        }
    }

    /// Counts `bytes` that were there at `now_ns`. The first ones begin the first block and are no
    /// part of it. is_warm: whether the block counts among the rates.
    #[inline]
    pub fn received(&mut self, now_ns: u64, bytes: u64, is_warm: bool) {
        if self.block_bytes == 0 {
            return;
        }
        if self.block_start_ns == 0 {
            self.block_start_ns = now_ns;
            return;
        }
        self.bytes += bytes;
        if self.bytes >= self.block_bytes {
            self.close(now_ns, is_warm);
        }
    }

    fn close(&mut self, now_ns: u64, is_warm: bool) {
        let ns = (now_ns - self.block_start_ns).max(1);
        if is_warm {
            self.rates.saturating_record((self.bytes as f64 * 1e9 / ns as f64) as u64);
        }
        let point = Point { end_ns: now_ns - self.origin_ns, ns, bytes: self.bytes };
        match self.points.last_mut().filter(|_| self.blocks_in_last < self.blocks_per_point) {
            Some(last) => {
                *last = last.with(point);
                self.blocks_in_last += 1;
            }
            None => {
                if self.points.len() == self.points_max {
                    self.points =
                        self.points.chunks_exact(2).map(|two| two[0].with(two[1])).collect();
                    self.blocks_per_point *= 2;
                }
                self.points.push(point);
                self.blocks_in_last = 1;
            }
        }
        (self.block_start_ns, self.bytes) = (now_ns, 0);
    }

    /// Joins the blocks of the streams of one direction.
    pub fn joined(streams: &[Self]) -> BlockRates {
        let mut rates = latency_histogram();
        for stream in streams {
            rates.add(&stream.rates).expect("all streams have the same bounds");
        }
        let rate = |point: &Point| (point.end_ns, point.bytes as f64 * 1e9 / point.ns as f64);
        let series = |stream: &Self| stream.points.iter().map(rate).collect();
        BlockRates { rates: pairs(&rates), series: streams.iter().map(series).collect() }
    }
}

impl Point {
    fn with(self, next: Self) -> Self {
        Self { end_ns: next.end_ns, ns: self.ns + next.ns, bytes: self.bytes + next.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_its_own_rate() {
        let mut blocks = Blocks::new(1000, 1, 100);
        blocks.received(200, 5000, true);
        // Two reads of 500 bytes in 1000 ns each, then one of 2000 in 1000 ns.
        for (now_ns, bytes) in [(1200, 500), (2200, 500), (3200, 2000), (3300, 10)] {
            blocks.received(now_ns, bytes, true);
        }
        let joined = Blocks::joined(&[blocks]);
        assert_eq!(joined.series, [[(2100, 5e8), (3100, 2e9)]]);
        let counts: Vec<_> = joined.rates.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 1]);
        assert!((joined.rates[0].0 / 5e8 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn variation_is_that_of_all_blocks() {
        let of = |rates: &[(f64, u64)]| BlockRates { rates: rates.to_vec(), series: Vec::new() };
        // 1, 1, 1 and 5: mean 2, standard deviation 2.
        assert!((of(&[(1.0, 3), (5.0, 1)]).variation().unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(of(&[(7.0, 9)]).variation(), Some(0.0));
        assert_eq!(of(&[(7.0, 1)]).variation(), None);
    }

    #[test]
    fn a_long_series_is_merged_and_keeps_its_sum() {
        let mut blocks = Blocks::new(10, 1, 0);
        let count = 3 * POINTS as u64 + 5;
        for block in 0..=count {
            blocks.received(block * 10 + 1, 10, block > 100);
        }
        let points = &blocks.points;
        assert!(points.len() <= POINTS && points.len() > POINTS / 2, "{}", points.len());
        assert_eq!(points.iter().map(|point| point.bytes).sum::<u64>(), count * 10);
        assert_eq!(points.iter().map(|point| point.ns).sum::<u64>(), count * 10);
        let joined = Blocks::joined(&[blocks]);
        assert!(joined.series[0].iter().all(|(_, rate)| (*rate - 1e9).abs() < 1e-3));
        assert_eq!(joined.rates.iter().map(|(_, count)| count).sum::<u64>(), count - 100);
    }

    #[test]
    fn without_a_size_nothing_is_recorded() {
        let mut blocks = Blocks::new(0, 1, 0);
        blocks.received(1, 1, true);
        blocks.received(2, 1 << 30, true);
        assert!(Blocks::joined(&[blocks]).rates.is_empty());
    }
}
