//! Which datagrams never arrived: runs of lost ones, the estimates of loss episodes, their samples.
use crate::error::Result;
use crate::trial::{Factors, Trial};
use serde::{Deserialize, Serialize};

/// Numbers from this one on are not followed: 8 MiB of bits.
const FOLLOWED: u64 = 1 << 26;
/// Runs that are listed.
const LISTED_RUNS: usize = 10_000;

/// The numbers that arrived.
#[derive(Debug, Default)]
pub struct Arrived {
    bits: Vec<u64>,
}

/// What is known of the datagrams that did not arrive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// (slot of the first, how many follow one another), at most [`LISTED_RUNS`].
    pub runs: Vec<(u64, u64)>,
    pub all_runs: u64,
    /// Pairs of datagrams in neighbouring slots.
    pub pairs: EpisodePairs,
}

impl Losses {
    /// Emits the runs that are listed, and the episodes; between two slots are `slot_ns`.
    pub fn emit(&self, trial: &mut Trial, slot_ns: f64, factors: &Factors) -> Result<()> {
        for (first, length) in &self.runs {
            let at_ns = (*first as f64 * slot_ns) as u64;
            trial.out.emit_at("lost_run_count", *length as f64, 1, at_ns, factors.clone())?;
        }
        if self.all_runs > LISTED_RUNS as u64 {
            let all = self.all_runs;
            trial.out.note(format!("lost_run_count has the first {LISTED_RUNS} of {all} runs."));
        }
        let episodes = [
            ("loss_episode_ratio", self.pairs.episode_ratio()),
            ("loss_episode_ns", self.pairs.episode_slots().map(|slots| slots * slot_ns)),
        ];
        trial.out.emit_known(&episodes, factors)
    }
}

/// Pairs of datagrams in neighbouring slots by what was lost of each: the experiments of Badabing
/// (Sommers, Barford, Duffield, Ron, SIGCOMM 2005). Two pairs at random slots that touch make a third
/// one, because the choice of the slots does not depend on what is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodePairs {
    pub all: u64,
    pub only_first: u64,
    pub only_second: u64,
    #[serde(rename = "both")]
    pub both_lost: u64,
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

    /// Returns what is missing of the numbers 0, 1, 2, … that were sent in `slots`, one in each.
    pub fn losses(&self, slots: impl Iterator<Item = u64>) -> Losses {
        let mut losses = Losses::default();
        let mut run: Option<(u64, u64)> = None;
        let mut before: Option<(u64, bool)> = None;
        for (sequence, slot) in (0..FOLLOWED).zip(slots) {
            let arrived = self.has(sequence);
            if arrived {
                losses.end_run(run.take());
            } else {
                let (first, length) = run.unwrap_or((slot, 0));
                run = Some((first, length + 1));
            }
            if let Some((last, had_arrived)) = before.replace((slot, arrived)) {
                if slot == last + 1 {
                    losses.pairs.add(!had_arrived, !arrived);
                }
            }
        }
        losses.end_run(run);
        losses
    }
}

impl Losses {
    fn end_run(&mut self, run: Option<(u64, u64)>) {
        self.all_runs += u64::from(run.is_some());
        if self.runs.len() < LISTED_RUNS {
            self.runs.extend(run);
        }
    }
}

impl EpisodePairs {
    fn add(&mut self, first_lost: bool, second_lost: bool) {
        self.all += 1;
        match (first_lost, second_lost) {
            (true, true) => self.both_lost += 1,
            (true, false) => self.only_first += 1,
            (false, true) => self.only_second += 1,
            (false, false) => {}
        }
    }

    /// Returns the share of the time that lies in loss episodes; `None` without a pair.
    pub fn episode_ratio(&self) -> Option<f64> {
        (self.all > 0).then(|| (self.only_first + self.both_lost) as f64 / self.all as f64)
    }

    /// Returns the mean length of an episode, in distances between datagrams; `None` where no
    /// episode begins or ends.
    pub fn episode_slots(&self) -> Option<f64> {
        let edges = self.only_first + self.only_second;
        let touched = edges + self.both_lost;
        (edges > 0).then(|| 2.0 * (touched as f64 / edges as f64 - 1.0) + 1.0)
    }

    /// Returns whether starts and ends of episodes are about equally frequent, as they are where the
    /// datagrams themselves cause no loss: within the 99 % of a binomial distribution.
    pub fn is_symmetric(&self) -> bool {
        const Z: f64 = 2.575_829_303_548_901;
        let edges = (self.only_first + self.only_second) as f64;
        self.only_first.abs_diff(self.only_second) as f64 <= Z * edges.sqrt()
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
    use crate::net::udp::slots::{PairSelection, SendSlots};
    use nephoscope_wire::random::Random;
    use std::collections::HashSet;

    fn losses(lost: &[u64], sent: u64) -> Losses {
        let mut arrived = Arrived::default();
        (0..sent).filter(|sequence| !lost.contains(sequence)).for_each(|s| arrived.see(s));
        arrived.losses(0..sent)
    }

    #[test]
    fn runs_begin_and_end_anywhere() {
        assert_eq!(losses(&[], 5).runs, []);
        assert_eq!(losses(&[0, 1, 4, 6, 7], 8).runs, [(0, 2), (4, 1), (6, 2)]);
        assert_eq!(losses(&[0, 1, 2], 3).runs, [(0, 3)]);
        assert_eq!(Arrived::default().losses(0..200).runs, [(0, 200)]);
        assert_eq!(Arrived::default().losses(0..0), Losses::default());
    }

    #[test]
    fn the_estimates_of_a_worked_example() {
        let pairs = EpisodePairs { all: 1000, only_first: 5, only_second: 5, both_lost: 10 };
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

    /// Episodes of random length and distance, 20 and 400 slots on average, and the estimates from
    /// pairs that begin in a share of the slots; each with its truth.
    fn estimates(start_ratio: f64, seed: u64) -> [(f64, f64); 2] {
        let mut random = Random::new(seed);
        let (mut starts, mut slot) = (Vec::new(), 0);
        while slot < 1_000_000 {
            slot += 1 + random.below(799);
            let length = 1 + random.below(39);
            starts.push((slot, length));
            slot += length;
        }
        let lossy: HashSet<u64> = starts.iter().flat_map(|(at, len)| *at..at + len).collect();
        let slots = SendSlots::new(Some(slot), Some(PairSelection { start_ratio, seed: seed + 1 }));
        let mut arrived = Arrived::default();
        for (sequence, at) in (0..).zip(slots.clone()) {
            if !lossy.contains(&at) {
                arrived.see(sequence);
            }
        }
        let pairs = arrived.losses(slots).pairs;
        assert!(pairs.is_symmetric(), "{pairs:?}");
        let share = lossy.len() as f64 / slot as f64;
        let length = lossy.len() as f64 / starts.len() as f64;
        [(pairs.episode_ratio().unwrap(), share), (pairs.episode_slots().unwrap(), length)]
    }

    #[test]
    fn pairs_at_random_slots_estimate_frequency_and_duration() {
        for start_ratio in [0.1, 0.3, 0.9] {
            for (estimate, truth) in estimates(start_ratio, 42) {
                let text = format!("{estimate} of {truth} with {start_ratio}");
                assert!((estimate / truth - 1.0).abs() < 0.15, "{text}");
            }
        }
    }

    #[test]
    fn only_neighbouring_slots_are_pairs_and_runs_begin_in_a_slot() {
        let mut arrived = Arrived::default();
        [0, 4].into_iter().for_each(|sequence| arrived.see(sequence));
        let losses = arrived.losses([3, 4, 9, 10, 11].into_iter());
        assert_eq!((losses.runs.as_slice(), losses.all_runs), ([(4, 3)].as_slice(), 1));
        let pairs = EpisodePairs { all: 3, only_first: 1, only_second: 1, both_lost: 1 };
        assert_eq!(losses.pairs, pairs);
        assert!(pairs.is_symmetric());
        assert!(!EpisodePairs { only_first: 30, only_second: 10, ..pairs }.is_symmetric());
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
