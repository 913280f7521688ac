//! Closed forms of the saving by selection, and of the break-even point.
//!
//! p: probability of a kept type; x: its speed; E: mean speed of all launches; n, h, f: size of the job,
//! hours, price; t: paid hours of a launch that is ended again.
use super::scenario::{LaunchResult, SelectionScenario};
use serde::Serialize;

/// Results of one formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saving {
    /// US dollars saved compared with no selection.
    pub usd: f64,
    /// The same over the cost without selection.
    pub ratio: f64,
    /// Hours of a job from which on selection saves; None if it never does.
    pub break_even_h: Option<f64>,
}

/// Returns the saving of trial and failure as Zhuang (2012) prints it: n f (h/E - h/x - t/p).
///
/// E is not divided by the sum of the shares, so that the missing share counts as speed zero; all
/// launches are charged, including those that are kept, and n instances are launched where n/x suffice.
pub fn as_printed(scenario: &SelectionScenario) -> Saving {
    let (mut mean, mut kept_share, mut kept_sum) = (0.0, 0.0, 0.0);
    for (result, kind) in scenario.launch_results().zip(scenario.types.values()) {
        mean += kind.share * kind.speed;
        if result.is_kept {
            kept_share += kind.share;
            kept_sum += kind.share * kind.speed;
        }
    }
    let per_h = 1.0 / mean - kept_share / kept_sum;
    let extra_h = scenario.rejected_h() / kept_share;
    saving(scenario, per_h, extra_h, mean)
}

/// Returns the saving of trial and failure with shares that sum to 1, n/x instances, and only launches
/// that are ended again charged: n f (h/E - h/x - t (1/p - 1)/x). If a freed slot gives the same type
/// again with probability c, 1/(1 - c) times as many launches are ended again.
pub fn corrected(scenario: &SelectionScenario) -> Saving {
    let results: Vec<LaunchResult> = scenario.launch_results().collect();
    let mean = results.iter().map(|result| result.probability * result.speed).sum();
    let (probability, speed) = kept_share(&results);
    let per_h = 1.0 / mean - 1.0 / speed;
    let again = 1.0 - scenario.correlation.after(scenario.trial_s / 3600.0);
    let extra_h = scenario.rejected_h() * (1.0 / probability - 1.0) / again / speed;
    saving(scenario, per_h, extra_h, mean)
}

fn saving(scenario: &SelectionScenario, per_h: f64, extra_h: f64, mean: f64) -> Saving {
    let per_hour_usd = scenario.instances as f64 * scenario.price_usd_per_h;
    let usd = per_hour_usd * (scenario.hours * per_h - extra_h);
    Saving {
        usd,
        ratio: usd / (per_hour_usd * scenario.hours / mean),
        break_even_h: (per_h > 0.0).then(|| extra_h / per_h),
    }
}

/// Returns the probability of the kept types together, and their mean speed.
pub fn kept_share(results: &[LaunchResult]) -> (f64, f64) {
    let kept_results = || results.iter().filter(|result| result.is_kept);
    let probability = kept_results().map(|result| result.probability).sum();
    let sum: f64 = kept_results().map(|result| result.probability * result.speed).sum();
    (probability, sum / probability)
}

/// Returns by how many hours another launch shortens an hour of work of speed 1 on average.
pub fn gain(results: &[LaunchResult], speed: f64) -> f64 {
    let faster = results.iter().filter(|result| result.speed > speed);
    faster.map(|result| result.probability * (1.0 / speed - 1.0 / result.speed)).sum()
}

/// Returns whether an instance with `work_h` hours of speed 1 left is kept: whether another launch costs
/// at least what it saves. Speed 0 is never kept.
pub fn is_kept(results: &[LaunchResult], speed: f64, work_h: f64, rejected_h: f64) -> bool {
    speed > 0.0 && work_h * gain(results, speed) <= rejected_h
}

/// Saving of trial and failure in an endless job with two types, by the share and the relative speed of
/// the faster one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Surface {
    pub share_of_fast: Vec<f64>,
    pub factor: Vec<f64>,
    /// A row for each share.
    pub saving_ratio: Vec<Vec<f64>>,
}

/// Returns the surface over shares 0.05, 0.10, …, 0.95 and speeds 1, 1.25, …, 10.
pub fn surface() -> Surface {
    let share_of_fast: Vec<f64> = (1..20).map(|step| f64::from(step) / 20.0).collect();
    let factor: Vec<f64> = (0..37).map(|step| 1.0 + f64::from(step) / 4.0).collect();
    let row = |p: &f64| factor.iter().map(|x| saving_of_two(*p, *x)).collect();
    let saving_ratio = share_of_fast.iter().map(row).collect();
    Surface { share_of_fast, factor, saving_ratio }
}

/// Returns the saving in an endless job if a share `p` is `x` times as fast as the rest: 1 - E/x.
pub fn saving_of_two(p: f64, x: f64) -> f64 {
    1.0 - (p * x + 1.0 - p) / x
}
