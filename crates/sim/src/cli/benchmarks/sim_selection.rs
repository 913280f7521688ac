//! # What it measures
//! What it saves to launch instances of one name again until they are of a fast type, where types
//! come by chance, and how that saving is spread over fleets.
//!
//! # How
//! A job of so many instances of speed 1 for so many hours is done by two fleets: one takes what
//! comes, one chooses. A launch gives each type with its share. The rules of choosing are trial and
//! failure (what is not of the kept types is ended and launched again), optimal stopping (an instance
//! is kept when another launch does not pay for the work that is left) and replacement (what comes is
//! kept, and looked at again every `review_h` hours). Paid are whole steps of `billing.step_s`, at
//! least `billing.least_s`, and `launch_usd` a launch. A slot that was just freed gives the same type
//! again with probability `correlation.same_ratio`; `launches_at_most` bounds the launches of a fleet.
//! Each replication draws `fleets` pairs of fleets.
//!
//! # Known truth
//! Trial and failure has a closed form: as Zhuang (2012) prints it (`printed_saving_usd`), and
//! corrected (`closed_saving_usd`). The tests hold both to the cent, and the fleets to the latter.
//!
//! # Cross-check
//! The document `surface` is the saving of two types in a job without end, the figure of that study.
//!
//! # Overhead
//! One CPU; a million fleets take about a second, with a quota or replacement a hundred times that.
//!
//! # Caveats
//! Shares are taken as known. Those of a small sample are uncertain: vary them with `--set`.
use super::{leading, metric, scenario, SimError, SCENARIO, SEED};
use crate::cli::trial::Trial;
use nephoscope_sim::selection::{self, Scenario};
use nephoscope_wire::spec::{Better, Shape, Spec, Unit};
use serde_json::json;

/// The built-in scenarios.
pub const SCENARIOS: &[(&str, &str)] = &[
    ("zhuang-2012", include_str!("../../../scenarios/selection/zhuang-2012.json")),
    ("two-types", include_str!("../../../scenarios/selection/two-types.json")),
];

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "sim.selection",
    summary: "What choosing among unequal instances saves, fleet by fleet",
    params: &[SCENARIO, SEED],
    metrics: &[
        leading(metric(
            "saving_ratio",
            Unit::Ratio,
            Better::Higher,
            Shape::Scalar,
            "Mean part of the cost that choosing saves; below zero where it loses.",
        )),
        metric(
            "saving_of_fleets_ratio",
            Unit::Ratio,
            Better::Higher,
            Shape::Histogram,
            "The saving of each fleet.",
        ),
        metric(
            "lost_ratio",
            Unit::Ratio,
            Better::Lower,
            Shape::Scalar,
            "Fleets that lose by choosing, of all.",
        ),
        metric(
            "cost_usd",
            Unit::None,
            Better::Lower,
            Shape::Scalar,
            "Mean cost of a fleet that chooses, in US dollars.",
        ),
        metric(
            "random_cost_usd",
            Unit::None,
            Better::Lower,
            Shape::Scalar,
            "Mean cost of a fleet that takes what comes, in US dollars.",
        ),
        metric(
            "launches",
            Unit::Count,
            Better::Lower,
            Shape::Scalar,
            "Mean launches of a fleet that chooses.",
        ),
        metric(
            "closed_saving_usd",
            Unit::None,
            Better::Higher,
            Shape::Scalar,
            "Saving by the corrected formula, in US dollars.",
        ),
        metric(
            "closed_saving_ratio",
            Unit::Ratio,
            Better::Higher,
            Shape::Scalar,
            "The same, as part of the cost.",
        ),
        metric(
            "break_even_h",
            Unit::None,
            Better::Lower,
            Shape::Scalar,
            "Hours of a job from which on choosing saves, by the corrected formula.",
        ),
        metric(
            "printed_saving_usd",
            Unit::None,
            Better::Higher,
            Shape::Scalar,
            "Saving by the formula as printed in 2012, in US dollars.",
        ),
        metric(
            "printed_saving_ratio",
            Unit::Ratio,
            Better::Higher,
            Shape::Scalar,
            "The same, as part of the cost.",
        ),
        metric(
            "printed_break_even_h",
            Unit::None,
            Better::Lower,
            Shape::Scalar,
            "Hours of a job from which on choosing saves, by the printed formula.",
        ),
        metric(
            "surface",
            Unit::None,
            Better::None,
            Shape::Document,
            "Saving by share and speed of the faster of two types, in a job without end.",
        ),
    ],
    overhead: "one CPU for about a second a million fleets",
    source: "Zhuang (2012), section 5.2; Farley et al., SoCC 2012; DeGroot (1970), chapter 13",
    two_sided: false,
    load: false,
};

/// One replication.
pub fn run(trial: &mut Trial) -> Result<(), SimError> {
    let scenario: Scenario = scenario(trial, SCENARIOS)?;
    scenario.check()?;
    trial.prepared()?;
    let outcome = selection::run(&scenario, trial.seed())?;
    trial.emit_all(|emit| outcome.samples(emit))?;
    if scenario.normalise && scenario.share_sum() < 1.0 - 1e-9 {
        trial.note(format!(
            "The shares sum to {:.4}; they were divided by that, except in the printed formula.",
            scenario.share_sum()
        ));
    }
    trial.emit_document("surface", json!(outcome.surface()))?;
    Ok(())
}
