//! Random fleets: one without selection, and one with.
use super::formulas::{is_kept, kept_share};
use super::launches::{replace, within_limit};
use super::scenario::{LaunchResult, SelectionScenario, Sharing, Strategy};
use crate::random::RandomStream;
use rand_distr::{Binomial, Gamma, Poisson};

/// Costs of two fleets for one job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetCosts {
    /// Without selection, in US dollars.
    pub baseline_usd: f64,
    /// With selection, including launches that were ended again.
    pub selected_usd: f64,
    /// Launches of the latter.
    pub launches: u64,
}

impl FleetCosts {
    /// Returns the saving over the cost without selection.
    pub fn saving_ratio(&self) -> f64 {
        1.0 - self.selected_usd / self.baseline_usd
    }
}

/// A checked scenario, prepared for many fleets.
pub struct Fleets<'a> {
    pub(super) scenario: &'a SelectionScenario,
    pub(super) results: Vec<LaunchResult>,
    /// Probability of the kept types.
    kept_ratio: f64,
    /// Instances of the fleet without selection.
    pub(super) baseline: u64,
    /// Instances of the fleet with selection.
    pub(super) selected: u64,
    /// Work of the job in hours of speed 1.
    pub(super) work_h: f64,
    pub(super) rejected_h: f64,
}

impl<'a> Fleets<'a> {
    /// scenario: accepted by [`Scenario::check`].
    pub fn new(scenario: &'a SelectionScenario) -> Self {
        let mut results: Vec<LaunchResult> = scenario.launch_results().collect();
        let rejected_h = scenario.rejected_h();
        if scenario.strategy == Strategy::Stopping {
            mark_kept(&mut results, scenario.hours, rejected_h);
        }
        let size = scenario.instances as f64;
        let instances = |speed: f64| (size / speed - 1e-9).ceil().max(1.0) as u64;
        let (kept_ratio, kept_speed) = kept_share(&results);
        let baseline =
            instances(results.iter().map(|result| result.probability * result.speed).sum());
        let selected = match scenario.strategy {
            Strategy::Replacement => baseline,
            _ => instances(kept_speed),
        };
        let work_h = size * scenario.hours;
        Self { scenario, results, kept_ratio, baseline, selected, work_h, rejected_h }
    }

    /// Draws two fleets for one job.
    pub fn draw(&self, stream: &mut RandomStream) -> FleetCosts {
        let baseline_usd = until_some(|| {
            let counts = self.draw_counts(self.baseline, |_| true, stream);
            self.cost(self.baseline, &counts)
        });
        let (selected_usd, launches) = match (self.scenario.strategy, self.scenario.max_launches) {
            (Strategy::Replacement, _) => until_some(|| replace(self, stream)),
            (_, Some(limit)) => until_some(|| within_limit(self, limit, stream)),
            _ => self.select(stream),
        };
        FleetCosts { baseline_usd, selected_usd, launches }
    }

    /// Returns the probability that a launch in a slot that was just freed gives the same type again.
    pub(super) fn same_again(&self) -> f64 {
        self.scenario.correlation.after(self.scenario.trial_s / 3600.0)
    }

    /// Draws a fleet with selection. A launch in a slot gives a kept type at once, or after some further
    /// ones: the launches that are ended again are a negative binomial of the slots whose first launch
    /// gave no kept type.
    fn select(&self, stream: &mut RandomStream) -> (f64, u64) {
        let first = binomial(stream, self.selected, 1.0 - self.kept_ratio);
        let again = (1.0 - self.same_again()) * self.kept_ratio;
        let rejected = first + negative_binomial(stream, first, again);
        let counts = self.draw_counts(self.selected, |result| result.is_kept, stream);
        let running = self.cost(self.selected, &counts).expect("a kept type does something");
        let wasted = rejected as f64 * self.rejected_h * self.scenario.price_usd_per_h;
        let fees = self.selected as f64 * self.scenario.launch_usd;
        (running + wasted + fees, self.selected + rejected)
    }

    /// Draws the number of instances of each type among those of the types that `filter` accepts.
    fn draw_counts(
        &self,
        instances: u64,
        filter: impl Fn(&LaunchResult) -> bool,
        stream: &mut RandomStream,
    ) -> Vec<u64> {
        let probability =
            |launched: &LaunchResult| if filter(launched) { launched.probability } else { 0.0 };
        let probabilities: Vec<f64> = self.results.iter().map(probability).collect();
        let (mut left, mut rest) = (instances, probabilities.iter().sum::<f64>());
        let mut counts = vec![0; probabilities.len()];
        for (count, probability) in counts.iter_mut().zip(probabilities) {
            if probability > 0.0 && left > 0 {
                *count = binomial(stream, left, (probability / rest).min(1.0));
                left -= *count;
                rest -= probability;
            }
        }
        counts
    }

    /// Returns the cost of so many instances until the job is done; None if it is never done.
    pub(super) fn cost(&self, instances: u64, counts: &[u64]) -> Option<f64> {
        let (billing, price) = (&self.scenario.billing, self.scenario.price_usd_per_h);
        let types = self.results.iter().zip(counts).filter(|(_, count)| **count > 0);
        match self.scenario.sharing {
            Sharing::Dynamic => {
                let speed: f64 = types.map(|(result, count)| result.speed * *count as f64).sum();
                let hours = billing.billed_h(self.work_h / speed);
                (speed > 0.0).then_some(instances as f64 * price * hours)
            }
            Sharing::Equal => {
                let own_h = self.work_h / instances as f64;
                let hours = types
                    .map(|(result, count)| *count as f64 * billing.billed_h(own_h / result.speed))
                    .sum::<f64>();
                hours.is_finite().then_some(price * hours)
            }
        }
    }
}

/// Marks what optimal stopping keeps. The remaining work of an instance depends on the number of
/// instances, and that on what is kept: the rule is applied until nothing changes.
fn mark_kept(results: &mut [LaunchResult], hours: f64, rejected_h: f64) {
    results.iter_mut().for_each(|result| result.is_kept = result.speed > 0.0);
    for _ in 0..=results.len() {
        let work_h = hours * kept_share(results).1;
        let last = results.to_vec();
        for result in results.iter_mut() {
            result.is_kept = is_kept(&last, result.speed, work_h, rejected_h);
        }
        if results == last {
            return;
        }
    }
}

/// Draws until a fleet does something.
fn until_some<T>(mut draw: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(drawn) = draw() {
            return drawn;
        }
    }
}

fn binomial(stream: &mut RandomStream, n: u64, p: f64) -> u64 {
    if n == 0 || p <= 0.0 {
        return 0;
    }
    Binomial::new(n, p.min(1.0)).map_or(n, |distribution| stream.draw(&distribution))
}

/// Draws the failures before the `n`th success of probability `p`: Poisson of a gamma.
fn negative_binomial(stream: &mut RandomStream, n: u64, p: f64) -> u64 {
    if n == 0 || p >= 1.0 {
        return 0;
    }
    let Ok(gamma) = Gamma::new(n as f64, (1.0 - p) / p) else { return 0 };
    let mean: f64 = stream.draw(&gamma);
    Poisson::new(mean).map_or(0.0, |distribution| stream.draw(&distribution)) as u64
}
