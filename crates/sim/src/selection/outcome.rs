//! One replication: many fleets, and how the saving is spread over them.
use super::closed::{self, Closed, Surface};
use super::fleets::Fleets;
use super::scenario::{Scenario, Strategy};
use crate::error::Refused;
use crate::random::Stream;
use crate::tally::{Emit, Moments};
use std::collections::BTreeMap;

/// Savings are counted to a thousandth.
const STEP: f64 = 1e-3;

/// What a replication of a scenario shows.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Saving of each fleet.
    pub saving: Moments,
    /// How often each saving was seen, in thousandths.
    pub spread: BTreeMap<i64, u64>,
    /// Cost of the fleets that take what comes.
    pub random_usd: Moments,
    /// Cost of the fleets that choose.
    pub selected_usd: Moments,
    /// Launches of the latter.
    pub launches: Moments,
    /// Fleets that lose by choosing.
    pub lost: u64,
    /// By formula, where the strategy is trial and failure: as printed, and corrected.
    pub closed: [Option<Closed>; 2],
}

/// Simulates the fleets of one replication. Refused: whatever [`Scenario::check`] refuses.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Outcome, Refused> {
    scenario.check()?;
    let fleets = Fleets::new(scenario);
    let mut stream = Stream::of(seed, 0, 0);
    let formulas = scenario.strategy == Strategy::TrialAndFailure;
    let mut seen = Outcome {
        saving: Moments::default(),
        spread: BTreeMap::new(),
        random_usd: Moments::default(),
        selected_usd: Moments::default(),
        launches: Moments::default(),
        lost: 0,
        closed: [
            formulas.then(|| closed::as_printed(scenario)),
            formulas.then(|| closed::corrected(scenario)),
        ],
    };
    for _ in 0..scenario.fleets {
        let fleet = fleets.draw(&mut stream);
        let saving = fleet.saving_ratio();
        seen.saving.add(saving);
        *seen.spread.entry((saving / STEP).round() as i64).or_default() += 1;
        seen.random_usd.add(fleet.random_usd);
        seen.selected_usd.add(fleet.selected_usd);
        seen.launches.add(fleet.launches as f64);
        seen.lost += u64::from(saving < 0.0);
    }
    Ok(seen)
}

impl Outcome {
    /// Every figure as (metric, factors, value, count).
    pub fn samples(&self, emit: &mut Emit) {
        let scalars = [
            ("saving_ratio", self.saving.mean()),
            ("cost_usd", self.selected_usd.mean()),
            ("random_cost_usd", self.random_usd.mean()),
            ("launches", self.launches.mean()),
            ("lost_ratio", Some(self.lost as f64 / self.saving.count() as f64)),
        ];
        let [printed, corrected] = &self.closed;
        let printed = printed.as_ref().map(|closed| {
            [
                ("printed_saving_usd", Some(closed.saving_usd)),
                ("printed_saving_ratio", Some(closed.saving_ratio)),
                ("printed_break_even_h", closed.break_even_h),
            ]
        });
        let corrected = corrected.as_ref().map(|closed| {
            [
                ("closed_saving_usd", Some(closed.saving_usd)),
                ("closed_saving_ratio", Some(closed.saving_ratio)),
                ("break_even_h", closed.break_even_h),
            ]
        });
        let formulas = printed.into_iter().chain(corrected).flatten();
        for (metric, value) in scalars.into_iter().chain(formulas) {
            if let Some(value) = value {
                emit(metric, &[], value, 1);
            }
        }
        for (thousandths, count) in &self.spread {
            emit("saving_of_fleets_ratio", &[], *thousandths as f64 * STEP, *count);
        }
    }

    /// The saving by the share and the speed of the faster of two types (a job without end).
    pub fn surface(&self) -> Surface {
        closed::surface()
    }
}
