//! Which datagrams never arrived: runs of lost ones, and the estimates of loss episodes. Pure.
use serde::{Deserialize, Serialize};

/// Numbers from this one on are not followed: 8 MiB of bits.
const FOLLOWED: u64 = 1 << 26;
/// Runs that are listed.
pub const LISTED_RUNS: usize = 10_000;

/// The numbers that arrived.
#[derive(Debug, Default)]
pub struct Arrived {
    bits: Vec<u64>,
}

/// What is known of the datagrams that did not arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// (number of the first, how many follow one another), at most [`LISTED_RUNS`].
    pub runs: Vec<(u64, u64)>,
    pub all_runs: u64,
    /// Pairs of neighbouring datagrams.
    pub pairs: EpisodePairs,
}

/// Pairs of neighbouring datagrams by what was lost of each: the experiments of Badabing (Sommers,
/// Barford, Duffield, Ron, SIGCOMM 2005).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodePairs {
    pub all: u64,
    pub only_first: u64,
    pub only_second: u64,
    pub both: u64,
}

impl Arrived {
    #[inline]
    pub fn see(&mut self, sequence: u64) {
        if sequence < FOLLOWED {
            let word = (sequence / 64) as usize;
            if word >= self.bits.len() {
                self.bits.resize((word + 1).next_power_of_two(), 0);
            }
            self.bits[word] |= 1 << (sequence % 64);
        }
    }

    fn has(&self, sequence: u64) -> bool {
        let word = self.bits.get((sequence / 64) as usize).copied().unwrap_or(0);
        word >> (sequence % 64) & 1 == 1
    }

    /// Returns how many of some numbers are missing.
    pub fn missing(&self, sequences: std::ops::Range<u64>) -> u64 {
        sequences.filter(|sequence| *sequence < FOLLOWED && !self.has(*sequence)).count() as u64
    }

    /// Returns what is missing of the numbers below `sent`.
    pub fn losses(&self, sent: u64) -> Losses {
        let mut losses = Losses::default();
        let (mut run, mut before) = (0, true);
        let sent = sent.min(FOLLOWED);
        for sequence in 0..sent {
            let arrived = self.has(sequence);
            if !arrived {
                run += 1;
            }
            if run > 0 && (arrived || sequence + 1 == sent) {
                losses.all_runs += 1;
                if losses.runs.len() < LISTED_RUNS {
                    losses.runs.push((sequence + u64::from(!arrived) - run, run));
                }
                run = 0;
            }
            if sequence > 0 {
                losses.pairs.add(!before, !arrived);
            }
            before = arrived;
        }
        losses
    }
}

impl EpisodePairs {
    fn add(&mut self, first_lost: bool, second_lost: bool) {
        self.all += 1;
        match (first_lost, second_lost) {
            (true, true) => self.both += 1,
            (true, false) => self.only_first += 1,
            (false, true) => self.only_second += 1,
            (false, false) => {}
        }
    }

    /// Returns the share of the time that lies in loss episodes; `None` without a pair.
    pub fn episode_ratio(&self) -> Option<f64> {
        (self.all > 0).then(|| (self.only_first + self.both) as f64 / self.all as f64)
    }

    /// Returns the mean length of an episode, in distances between datagrams; `None` where no
    /// episode begins or ends.
    pub fn episode_slots(&self) -> Option<f64> {
        let edges = self.only_first + self.only_second;
        let touched = edges + self.both;
        (edges > 0).then(|| 2.0 * (touched as f64 / edges as f64 - 1.0) + 1.0)
    }
}

/// Returns the 95 % Wilson interval of `lost` of `sent`; `None` if none was sent.
pub fn wilson(lost: u64, sent: u64) -> Option<(f64, f64)> {
    const Z: f64 = 1.959_963_984_540_054;
    if sent == 0 {
        return None;
    }
    let (n, p) = (sent as f64, lost as f64 / sent as f64);
    let scale = 1.0 + Z * Z / n;
    let centre = (p + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    // Rounding must not exclude what is certain.
    let low = if lost == 0 { 0.0 } else { centre - half };
    let high = if lost == sent { 1.0 } else { centre + half };
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(lost: &[u64], sent: u64) -> Losses {
        let mut arrived = Arrived::default();
        (0..sent).filter(|sequence| !lost.contains(sequence)).for_each(|s| arrived.see(s));
        arrived.losses(sent)
    }

    #[test]
    fn runs_begin_and_end_anywhere() {
        assert_eq!(losses(&[], 5).runs, []);
        assert_eq!(losses(&[0, 1, 4, 6, 7], 8).runs, [(0, 2), (4, 1), (6, 2)]);
        assert_eq!(losses(&[0, 1, 2], 3).runs, [(0, 3)]);
        assert_eq!(Arrived::default().losses(200).runs, [(0, 200)]);
        assert_eq!(Arrived::default().losses(0), Losses::default());
    }

    #[test]
    fn the_estimates_of_a_worked_example() {
        let pairs = EpisodePairs { all: 1000, only_first: 5, only_second: 5, both: 10 };
        assert_eq!((pairs.episode_ratio(), pairs.episode_slots()), (Some(0.015), Some(3.0)));
        assert_eq!(EpisodePairs::default().episode_ratio(), None);
        assert_eq!(EpisodePairs { all: 9, ..EpisodePairs::default() }.episode_slots(), None);
    }

    #[test]
    fn with_every_slot_probed_the_estimates_are_the_counts() {
        let lost: Vec<u64> = (0..10).flat_map(|e| e * 100 + 20..e * 100 + 27).collect();
        let pairs = losses(&lost, 1000).pairs;
        assert_eq!(pairs.episode_slots(), Some(7.0));
        assert!((pairs.episode_ratio().unwrap() - 70.0 / 999.0).abs() < 1e-12);
    }

    #[test]
    fn the_interval_of_a_loss() {
        let (low, high) = wilson(0, 100).unwrap();
        assert!(low == 0.0 && (high - 0.036_995).abs() < 1e-5, "{high}");
        let (low, high) = wilson(5, 100).unwrap();
        assert!((low - 0.021_543).abs() < 1e-5 && (high - 0.111_750).abs() < 1e-5, "{low} {high}");
        assert_eq!(wilson(7, 7).unwrap().1, 1.0);
        assert_eq!(wilson(0, 0), None);
    }
}
