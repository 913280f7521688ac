//! What selection saves by formula, and when it begins to.
//!
//! p: chance of a kept type; x: its speed; E: mean speed of what comes; n, h, f: size of the job,
//! hours, price; t: paid hours of a launch that is ended again.
use super::scenario::{Chance, Scenario};
use serde::Serialize;

/// One formula's figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Closed {
    /// US dollars saved against taking what comes.
    pub saving_usd: f64,
    /// The same over what taking what comes costs.
    pub saving_ratio: f64,
    /// Hours from which on it saves; None where it never does.
    pub break_even_h: Option<f64>,
}

/// Trial and failure as Zhuang (2012) prints it: n f (h/E - h/x - t/p).
///
/// E is not divided by the sum of the shares, so that what they lack is taken for speed zero; all
/// launches are charged, those that are kept too, and n instances are launched where n/x suffice.
pub fn as_printed(scenario: &Scenario) -> Closed {
    let (mut mean, mut kept_share, mut kept_sum) = (0.0, 0.0, 0.0);
    for (one, kind) in scenario.chances().zip(scenario.types.values()) {
        mean += kind.share * kind.speed;
        if one.kept {
            kept_share += kind.share;
            kept_sum += kind.share * kind.speed;
        }
    }
    let per_h = 1.0 / mean - kept_share / kept_sum;
    let extra = scenario.rejected_h() / kept_share;
    closed(scenario, per_h, extra, mean)
}

/// Trial and failure with shares that sum to 1, n/x instances, and only what is ended again charged:
/// n f (h/E - h/x - t (1/p - 1)/x). Where a freed slot gives its type again with probability c, the
/// launches that are ended again are 1/(1 - c) times as many.
pub fn corrected(scenario: &Scenario) -> Closed {
    let (mean, kept) = (mean_speed(scenario.chances()), kept_of(scenario));
    let per_h = 1.0 / mean - 1.0 / kept.speed;
    let again = 1.0 - scenario.correlation.after(scenario.trial_s / 3600.0);
    let extra = scenario.rejected_h() * (1.0 / kept.chance - 1.0) / again / kept.speed;
    closed(scenario, per_h, extra, mean)
}

fn closed(scenario: &Scenario, per_h: f64, extra_h: f64, mean: f64) -> Closed {
    let whole = scenario.instances as f64 * scenario.price_usd_per_h;
    let saving_usd = whole * (scenario.hours * per_h - extra_h);
    Closed {
        saving_usd,
        saving_ratio: saving_usd / (whole * scenario.hours / mean),
        break_even_h: (per_h > 0.0).then(|| extra_h / per_h),
    }
}

/// Mean speed of what comes.
pub fn mean_speed(chances: impl Iterator<Item = Chance>) -> f64 {
    chances.map(|one| one.chance * one.speed).sum()
}

/// The kept types together: their chance, and their mean speed.
fn kept_of(scenario: &Scenario) -> Chance {
    let chance = scenario.chances().filter(|one| one.kept).map(|one| one.chance).sum();
    let sum: f64 = scenario.chances().filter(|one| one.kept).map(|o| o.chance * o.speed).sum();
    Chance { chance, speed: sum / chance, kept: true }
}

/// Whether an instance of that speed is kept when `work_h` hours of speed 1 are left for it: another
/// launch saves work_h times the mean of what it shortens, and costs t. Speed 0 is never kept.
pub fn is_kept(chances: &[Chance], speed: f64, work_h: f64, rejected_h: f64) -> bool {
    if speed <= 0.0 {
        return false;
    }
    let gain: f64 = chances
        .iter()
        .filter(|one| one.speed > speed)
        .map(|one| one.chance * (1.0 / speed - 1.0 / one.speed))
        .sum();
    work_h * gain <= rejected_h
}

/// Work from which on an instance of that speed is launched again; None where it never is.
pub fn kept_until_h(chances: &[Chance], speed: f64, rejected_h: f64) -> Option<f64> {
    let gain: f64 = chances
        .iter()
        .filter(|one| one.speed > speed)
        .map(|one| one.chance * (1.0 / speed - 1.0 / one.speed))
        .sum();
    (gain > 0.0).then(|| rejected_h / gain)
}

/// Saving of trial and failure in a job without end, by the share of the fast one of two types and
/// by how much faster it is: 1 - E/x.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Surface {
    /// Shares of the fast type.
    pub share_of_fast: Vec<f64>,
    /// How many times faster it is.
    pub factor: Vec<f64>,
    /// Saving, a row for each share.
    pub saving_ratio: Vec<Vec<f64>>,
}

/// The surface over shares 0.05, 0.10, …, 0.95 and speeds 1, 1.25, …, 10.
pub fn surface() -> Surface {
    let share_of_fast: Vec<f64> = (1..20).map(|step| f64::from(step) / 20.0).collect();
    let factor: Vec<f64> = (0..37).map(|step| 1.0 + f64::from(step) / 4.0).collect();
    let row = |p: &f64| factor.iter().map(|x| saving_of_two(*p, *x)).collect();
    let saving_ratio = share_of_fast.iter().map(row).collect();
    Surface { share_of_fast, factor, saving_ratio }
}

/// Saving in a job without end where a share `p` is `x` times as fast as the rest.
pub fn saving_of_two(p: f64, x: f64) -> f64 {
    1.0 - (p * x + 1.0 - p) / x
}
