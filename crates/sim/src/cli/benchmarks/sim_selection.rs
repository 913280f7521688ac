//! # What it measures
//! The saving by launching instances of one name again until they are of a fast type, if types are random,
//! and the distribution of that saving over fleets.
//!
//! # How
//! A job of so many instances of speed 1 for so many hours is done by two fleets, one without selection and
//! one with. A launch gives each type with its share. The strategies are trial and failure (an instance
//! that is not of the kept types is ended and launched again), optimal stopping (an instance is kept when
//! another launch does not pay for the remaining work) and replacement (every instance is kept, and
//! reviewed every `review_h` hours). Instances are billed in steps of `billing.step_s`, at least
//! `billing.minimum_s`; a launch costs `launch_usd`. A slot that was just freed gives the same type again
//! with probability `correlation.same_ratio`; `max_launches` limits the launches of a fleet. Each
//! replication simulates `fleets` pairs of fleets.
//!
//! # Known truth
//! Trial and failure has a closed form: as Zhuang (2012) prints it (`printed_saving_usd`), and corrected
//! (`corrected_saving_usd`). The tests compare both to the cent, and the fleets with the latter.
//!
//! # Cross-check
//! The document `surface` is the saving of two types in an endless job, the figure of that study.
//!
//! # Overhead
//! One CPU; a million fleets take about a second, with limited launches or replacement a hundred times
//! that.
//!
//! # Caveats
//! Shares are taken as known. Those of a small sample are uncertain: vary them with `--set`.
use super::{scenario, SCENARIO, SEED};
use crate::cli::trial::SimulationTrial;
use nephoscope_sim::scenarios::SELECTION;
use nephoscope_sim::selection::{self, formulas, SelectionScenario};
use nephoscope_wire::error::Error;
use nephoscope_wire::meaning::{Headline, SummarySettings};
use nephoscope_wire::spec::{Metric, Resource, Spec, Unit};
use serde_json::json;

pub const SPEC: Spec = Spec {
    id: "sim.selection",
    summary: "Saving by selection among unequal instances",
    params: &[SCENARIO, SEED],
    metrics: &[
        Metric::higher("saving_ratio")
            .headline()
            .in_summary(Headline::of("Saving").settings(SummarySettings::Whole))
            .doc("Mean saving relative to the cost without selection."),
        Metric::higher("fleet_saving_ratio").histogram().doc("Savings of the fleets."),
        Metric::lower("losing_fleets_ratio")
            .share()
            .doc("Share of the fleets that selection makes dearer."),
        Metric::lower("cost_usd").doc("Mean cost of a fleet with selection, in US dollars."),
        Metric::lower("baseline_cost_usd")
            .doc("Mean cost of a fleet without selection, in US dollars."),
        Metric::lower("launches")
            .in_unit(Unit::Count)
            .doc("Mean number of launches of a fleet with selection."),
        Metric::higher("corrected_saving_usd")
            .doc("Saving by the corrected formula, in US dollars."),
        Metric::higher("corrected_saving_ratio")
            .doc("The same relative to the cost without selection."),
        Metric::lower("break_even_h")
            .doc("Hours of a job from which on selection saves, by the corrected formula."),
        Metric::higher("printed_saving_usd")
            .doc("Saving by the formula as printed, in US dollars."),
        Metric::higher("printed_saving_ratio")
            .doc("The same relative to the cost without selection."),
        Metric::lower("printed_break_even_h")
            .doc("Hours of a job from which on selection saves, by the formula as printed."),
        Metric::document("surface")
            .doc("Saving in an endless job by share and speed of the faster of two types."),
    ],
    overhead: "one CPU for about a second a million fleets",
    source: "Zhuang (2012), section 5.2; Farley et al., SoCC 2012; DeGroot (1970), chapter 13",
    ..Spec::about(Resource::None)
};

pub fn run(trial: &mut SimulationTrial) -> Result<(), Error> {
    let scenario: SelectionScenario = scenario(trial, SELECTION)?;
    scenario.check()?;
    trial.start()?;
    let outcome = selection::run(&scenario, trial.seed())?;
    trial.emit_all(|sink| outcome.emit(sink))?;
    if scenario.normalise && scenario.share_sum() < 1.0 - 1e-9 {
        trial.writer.note(format!(
            "The shares sum to {:.4}; all but the printed formula divide them by that.",
            scenario.share_sum()
        ));
    }
    trial.writer.emit_document("surface", json!(formulas::surface()))
}
