//! Whole fleets by chance: the one that takes what comes, and the one that chooses.
use super::closed::{is_kept, mean_speed};
use super::launches::{replaced, within_quota};
use super::scenario::{Chance, Scenario, Sharing, Strategy};
use crate::random::Stream;
use rand_distr::{Binomial, Gamma, Poisson};

/// What two fleets for one job cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    /// The one that takes what comes, US dollars.
    pub random_usd: f64,
    /// The one that chooses, launches that were ended again among it.
    pub selected_usd: f64,
    /// Launches of the latter.
    pub launches: u64,
}

impl Fleet {
    /// Part of the cost that choosing saves; below zero where it loses.
    pub fn saving_ratio(&self) -> f64 {
        1.0 - self.selected_usd / self.random_usd
    }
}

/// A checked scenario, made ready for many fleets.
pub struct Fleets<'a> {
    pub(super) scenario: &'a Scenario,
    /// What a launch gives.
    pub(super) chances: Vec<Chance>,
    /// The same, of which only the kept types are kept; their chances sum to `kept`.
    kept: f64,
    /// Instances of the fleet that takes what comes.
    pub(super) random: u64,
    /// Instances of the fleet that chooses.
    pub(super) selected: u64,
    /// Work of the job in hours of speed 1.
    pub(super) work_h: f64,
    pub(super) rejected_h: f64,
}

impl<'a> Fleets<'a> {
    /// Of a scenario that [`Scenario::check`] accepts.
    pub fn new(scenario: &'a Scenario) -> Self {
        let mut chances: Vec<Chance> = scenario.chances().collect();
        let rejected_h = scenario.rejected_h();
        if scenario.strategy == Strategy::Stopping {
            stop_by_rule(&mut chances, scenario.hours, rejected_h);
        }
        let size = scenario.instances as f64;
        let whole = |speed: f64| (size / speed - 1e-9).ceil().max(1.0) as u64;
        let kept: f64 = chances.iter().filter(|one| one.kept).map(|one| one.chance).sum();
        let random = whole(mean_speed(chances.iter().copied()));
        let selected = match scenario.strategy {
            Strategy::Replacement => random,
            _ => whole(mean_of_kept(&chances)),
        };
        let work_h = size * scenario.hours;
        Self { scenario, chances, kept, random, selected, work_h, rejected_h }
    }

    /// Two fleets for one job.
    pub fn draw(&self, stream: &mut Stream) -> Fleet {
        let random_usd = loop {
            let counts = self.drawn(self.random, |_| true, stream);
            if let Some(usd) = self.cost(self.random, &counts) {
                break usd;
            }
        };
        let (selected_usd, launches) = match self.scenario.strategy {
            Strategy::Replacement => replaced(self, stream),
            _ if self.scenario.launches_at_most.is_some() => within_quota(self, stream),
            _ => self.chosen(stream),
        };
        Fleet { random_usd, selected_usd, launches }
    }

    /// Probability that a launch in a slot that was just freed gives the same type again.
    pub(super) fn same_again(&self) -> f64 {
        self.scenario.correlation.after(self.scenario.trial_s / 3600.0)
    }

    /// A launch in a slot gives a kept type at once, or after so many further ones: the number of
    /// launches that end again is a negative binomial of those slots whose first gave none.
    fn chosen(&self, stream: &mut Stream) -> (f64, u64) {
        let first = binomial(stream, self.selected, 1.0 - self.kept);
        let again = (1.0 - self.same_again()) * self.kept;
        let rejected = first + negative_binomial(stream, first, again);
        let counts = self.drawn(self.selected, |one| one.kept, stream);
        let running = self.cost(self.selected, &counts).expect("what is kept does something");
        let wasted = rejected as f64 * self.rejected_h * self.scenario.price_usd_per_h;
        let fees = self.selected as f64 * self.scenario.launch_usd;
        (running + wasted + fees, self.selected + rejected)
    }

    /// How many of each type there are among so many instances of the types that `of` takes.
    fn drawn(&self, instances: u64, of: impl Fn(&Chance) -> bool, stream: &mut Stream) -> Vec<u64> {
        let (mut left, mut rest) = (instances, 0.0);
        let taken: Vec<f64> =
            self.chances.iter().map(|one| if of(one) { one.chance } else { 0.0 }).collect();
        rest += taken.iter().sum::<f64>();
        let mut counts = vec![0; taken.len()];
        for (count, chance) in counts.iter_mut().zip(taken) {
            if chance > 0.0 && left > 0 {
                *count = binomial(stream, left, (chance / rest).min(1.0));
                left -= *count;
                rest -= chance;
            }
        }
        counts
    }

    /// What so many instances cost until the job is done; None where it is never done.
    pub(super) fn cost(&self, instances: u64, counts: &[u64]) -> Option<f64> {
        let (billing, price) = (&self.scenario.billing, self.scenario.price_usd_per_h);
        let each = self.chances.iter().zip(counts).filter(|(_, count)| **count > 0);
        match self.scenario.sharing {
            Sharing::Dynamic => {
                let speed: f64 = each.map(|(one, count)| one.speed * *count as f64).sum();
                let hours = billing.billed_h(self.work_h / speed);
                (speed > 0.0).then_some(instances as f64 * price * hours)
            }
            Sharing::Equal => {
                let own_h = self.work_h / instances as f64;
                let hours = each
                    .map(|(one, count)| *count as f64 * billing.billed_h(own_h / one.speed))
                    .sum::<f64>();
                hours.is_finite().then_some(price * hours)
            }
        }
    }
}

/// Marks what optimal stopping keeps. The work left for an instance depends on how many there are,
/// and that on what is kept: the rule is applied until nothing changes.
fn stop_by_rule(chances: &mut [Chance], hours: f64, rejected_h: f64) {
    chances.iter_mut().for_each(|one| one.kept = one.speed > 0.0);
    for _ in 0..=chances.len() {
        let work_h = hours * mean_of_kept(chances);
        let known = chances.to_vec();
        let mut changed = false;
        for one in chances.iter_mut() {
            let kept = is_kept(&known, one.speed, work_h, rejected_h);
            changed |= kept != one.kept;
            one.kept = kept;
        }
        if !changed {
            return;
        }
    }
}

fn mean_of_kept(chances: &[Chance]) -> f64 {
    let (chance, sum) = chances
        .iter()
        .filter(|one| one.kept)
        .fold((0.0, 0.0), |(chance, sum), one| (chance + one.chance, sum + one.chance * one.speed));
    sum / chance
}

fn binomial(stream: &mut Stream, n: u64, p: f64) -> u64 {
    if n == 0 || p <= 0.0 {
        return 0;
    }
    Binomial::new(n, p.min(1.0)).map_or(n, |of| stream.draw(&of))
}

/// Failures before the `n`th success of probability `p`: Poisson of a gamma.
fn negative_binomial(stream: &mut Stream, n: u64, p: f64) -> u64 {
    if n == 0 || p >= 1.0 {
        return 0;
    }
    let Ok(gamma) = Gamma::new(n as f64, (1.0 - p) / p) else { return 0 };
    let mean: f64 = stream.draw(&gamma);
    let drawn: f64 = Poisson::new(mean).map_or(0.0, |of| stream.draw(&of));
    drawn as u64
}
