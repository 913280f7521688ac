//! One replication: many fleets, and the distribution of their savings.
use super::fleets::Fleets;
use super::formulas::{self, Saving};
use super::scenario::{SelectionScenario, Strategy};
use crate::error::Result;
use crate::random::RandomStream;
use crate::samples::Sink;
use crate::statistics::Moments;
use std::collections::BTreeMap;

/// Resolution of the histogram of savings.
const STEP: f64 = 1e-3;

/// Results of a replication.
#[derive(Clone, Debug, Default)]
pub struct SelectionOutcome {
    pub saving: Moments,
    /// Histogram of the savings, in steps.
    pub saving_steps: BTreeMap<i64, u64>,
    pub baseline_usd: Moments,
    pub selected_usd: Moments,
    /// Launches of the fleets with selection.
    pub launches: Moments,
    /// Fleets that lose by selection.
    pub losing: u64,
    /// Saving by the printed and by the corrected formula, if the strategy is trial and failure.
    pub formulas: Option<[Saving; 2]>,
}

/// Simulates the fleets of one replication.
pub fn run(scenario: &SelectionScenario, seed: u64) -> Result<SelectionOutcome> {
    scenario.check()?;
    let fleets = Fleets::new(scenario);
    let mut stream = RandomStream::new(seed, 0, 0);
    let mut outcome = SelectionOutcome::default();
    if scenario.strategy == Strategy::TrialAndFailure {
        outcome.formulas = Some([formulas::as_printed(scenario), formulas::corrected(scenario)]);
    }
    for _ in 0..scenario.fleets {
        let fleet = fleets.draw(&mut stream);
        let saving = fleet.saving_ratio();
        outcome.saving.add(saving);
        *outcome.saving_steps.entry((saving / STEP).round() as i64).or_default() += 1;
        outcome.baseline_usd.add(fleet.baseline_usd);
        outcome.selected_usd.add(fleet.selected_usd);
        outcome.launches.add(fleet.launches as f64);
        outcome.losing += u64::from(saving < 0.0);
    }
    Ok(outcome)
}

impl SelectionOutcome {
    pub fn emit(&self, sink: &mut Sink<'_>) {
        let losing = self.losing as f64 / self.saving.count() as f64;
        sink.scalar("saving_ratio", &[], self.saving.mean());
        sink.scalar("cost_usd", &[], self.selected_usd.mean());
        sink.scalar("baseline_cost_usd", &[], self.baseline_usd.mean());
        sink.scalar("launches", &[], self.launches.mean());
        sink.scalar("losing_fleets_ratio", &[], losing);
        if let Some([printed, corrected]) = &self.formulas {
            sink.scalar("printed_saving_usd", &[], printed.usd);
            sink.scalar("printed_saving_ratio", &[], printed.ratio);
            sink.scalar("printed_break_even_h", &[], printed.break_even_h);
            sink.scalar("corrected_saving_usd", &[], corrected.usd);
            sink.scalar("corrected_saving_ratio", &[], corrected.ratio);
            sink.scalar("break_even_h", &[], corrected.break_even_h);
        }
        let steps = self.saving_steps.iter();
        let pairs = steps.map(|(step, count)| (*step as f64 * STEP, *count));
        sink.histogram("fleet_saving_ratio", &[], pairs);
    }
}
