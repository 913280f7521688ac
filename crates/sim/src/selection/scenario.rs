//! Keys of a selection scenario.
use crate::error::{check_version, positive, refuse, within, Result};
use crate::scenarios::{default, default_count};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A job, the types of instances that launches give, and the rule by which instances are kept.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectionScenario {
    /// Version of this format: 1.
    pub version: u32,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Purpose, and sources of the values.
    #[serde(default)]
    pub note: String,
    /// Types of instances by name.
    pub types: BTreeMap<String, InstanceType>,
    /// Whether shares that sum to less than 1 are divided by their sum; else the rest of the launches
    /// gives instances that do nothing.
    #[serde(default = "yes")]
    pub normalise: bool,
    /// Size of the job: number of instances of speed 1 that would do it in `hours`.
    pub instances: u64,
    /// Hours of the job.
    pub hours: f64,
    /// Price of an instance of any type, in US dollars per hour.
    pub price_usd_per_h: f64,
    /// Billing rules.
    #[serde(default)]
    pub billing: Billing,
    /// Seconds until the type of a launch is known and it can be ended.
    #[serde(default = "default::<60>")]
    pub trial_s: f64,
    /// Additional cost of a launch, in US dollars.
    #[serde(default)]
    pub launch_usd: f64,
    /// Rule by which instances are kept.
    #[serde(default)]
    pub strategy: Strategy,
    /// Types that `trial_and_failure` keeps; empty: the fastest.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Hours between two reviews of `replacement`.
    #[serde(default = "default::<24>")]
    pub review_h: f64,
    /// Distribution of the work over the instances.
    #[serde(default)]
    pub sharing: Sharing,
    /// Correlation of successive launches.
    #[serde(default)]
    pub correlation: Correlation,
    /// Maximum number of launches of a fleet, after which it keeps what it has; no limit if left out.
    pub max_launches: Option<u64>,
    /// Number of fleets that are simulated in a replication.
    #[serde(default = "default_count::<1000, _>")]
    pub fleets: u64,
}

/// A type of instance.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceType {
    /// Share of the launches that give this type.
    pub share: f64,
    /// Speed; the work of the job is in hours of speed 1.
    pub speed: f64,
}

/// Billing rules.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Billing {
    /// Billing increment in seconds: 3600 by the hour, 1 by the second.
    pub step_s: f64,
    /// Minimum billed time in seconds.
    pub minimum_s: f64,
}

impl Default for Billing {
    fn default() -> Self {
        Self { step_s: 1.0, minimum_s: 60.0 }
    }
}

impl Billing {
    /// Returns the hours that are billed for so many hours of use.
    #[inline]
    pub fn billed_h(&self, hours: f64) -> f64 {
        let step_h = self.step_s / 3600.0;
        let used = hours.max(self.minimum_s / 3600.0);
        // A whole number of steps stays one when its hours are no exact binary fraction.
        (used / step_h - 1e-9).ceil() * step_h
    }
}

/// Rule by which instances are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// An instance that is not of the kept types is ended, and launched again.
    #[default]
    TrialAndFailure,
    /// An instance is kept when another launch does not pay for the remaining work (optimal stopping).
    Stopping,
    /// Every instance is kept, and reviewed regularly: a launch that gives a faster one replaces it, as
    /// long as that pays.
    Replacement,
}

/// Distribution of the work over the instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// An idle instance takes the next piece: all end together.
    #[default]
    Dynamic,
    /// Each instance has an equal part of the work.
    Equal,
}

/// Correlation of successive launches: freed capacity is often given out again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Correlation {
    /// Probability that a launch right after another gives the same type.
    pub same_ratio: f64,
    /// Hours after which that probability has fallen by a factor of e; 0: it does not fall.
    pub decay_h: f64,
}

impl Correlation {
    /// Returns the probability that a launch gives the type of the one `hours` before it.
    #[inline]
    pub fn after(&self, hours: f64) -> f64 {
        let decay = if self.decay_h > 0.0 { (-hours / self.decay_h).exp() } else { 1.0 };
        self.same_ratio * decay
    }
}

fn yes() -> bool {
    true
}

/// Maximum number of reviews of an instance.
const MAX_REVIEWS: f64 = 1e6;
/// Maximum mean number of launches for one kept instance.
const MAX_TRIALS: f64 = 1e6;

impl SelectionScenario {
    /// Returns an error for a scenario that cannot be simulated.
    pub fn check(&self) -> Result<()> {
        check_version(self.version)?;
        self.check_types()?;
        within("instances", self.instances as f64, 1.0, 1e6)?;
        within("fleets", self.fleets as f64, 1.0, 1e8)?;
        positive("hours", self.hours)?;
        positive("price_usd_per_h", self.price_usd_per_h)?;
        positive("billing.step_s", self.billing.step_s)?;
        positive("review_h", self.review_h)?;
        within("hours / review_h", self.hours / self.review_h, 0.0, MAX_REVIEWS)?;
        within("billing.minimum_s", self.billing.minimum_s, 0.0, 1e15)?;
        within("trial_s", self.trial_s, 0.0, 1e15)?;
        within("launch_usd", self.launch_usd, 0.0, 1e15)?;
        within("correlation.decay_h", self.correlation.decay_h, 0.0, 1e15)?;
        let same = self.correlation.same_ratio;
        if !(0.0..1.0).contains(&same) {
            return refuse(
                format!("correlation.same_ratio is {same}; it is a probability below 1."),
                "At 1 no launch would ever give another type.",
            );
        }
        let is_equal = self.sharing == Sharing::Equal;
        let changes = self.strategy == Strategy::Replacement;
        if is_equal && (changes || self.launch_results().any(|result| result.speed <= 0.0)) {
            let what = "sharing: instances that change or do nothing cannot have equal parts.";
            return refuse(what, "Write `sharing: dynamic`.");
        }
        if let Some(max) = self.max_launches.filter(|max| *max < self.instances) {
            return refuse(
                format!("max_launches is {max}; the fleet alone needs up to {}.", self.instances),
                "Raise it, or take fewer instances.",
            );
        }
        Ok(())
    }

    fn check_types(&self) -> Result<()> {
        if self.types.is_empty() {
            return refuse("types: there is none.", "Name at least one type.");
        }
        for (name, kind) in &self.types {
            positive(&format!("types.{name}.share"), kind.share)?;
            positive(&format!("types.{name}.speed"), kind.speed)?;
        }
        let sum = self.share_sum();
        // Shares of printed tables sum to 1 only within their rounding.
        if sum > 1.0 + 1e-6 {
            let what = format!("types: the shares sum to {sum:.4}, which is more than 1.");
            return refuse(what, "Shares are parts of all launches.");
        }
        if let Some(name) = self.keep.iter().find(|name| !self.types.contains_key(*name)) {
            let known: Vec<_> = self.types.keys().map(String::as_str).collect();
            let hint = format!("There are: {}.", known.join(", "));
            return refuse(format!("keep: there is no type '{name}'."), hint);
        }
        let kept_results = self.launch_results().filter(|result| result.is_kept);
        let kept_probability: f64 = kept_results.map(|result| result.probability).sum();
        if 1.0 / kept_probability > MAX_TRIALS {
            let what = format!(
                "keep: only one launch in {:.0} gives a kept type.",
                1.0 / kept_probability
            );
            return refuse(what, "Keep a type that is more frequent.");
        }
        Ok(())
    }

    /// Returns the sum of the shares as given.
    pub fn share_sum(&self) -> f64 {
        self.types.values().map(|kind| kind.share).sum()
    }

    /// Returns the possible results of a launch, whose probabilities sum to 1, and whether trial and
    /// failure keeps them. Of shares that are not normalised the rest comes last, with speed 0.
    pub fn launch_results(&self) -> impl Iterator<Item = LaunchResult> + '_ {
        let sum = self.share_sum();
        let fastest = self.types.values().map(|kind| kind.speed).fold(0.0, f64::max);
        let divisor = if self.normalise { sum } else { 1.0 };
        let rest = (1.0 - sum).max(0.0);
        let nothing = (!self.normalise && rest > 1e-9).then_some(LaunchResult {
            probability: rest,
            speed: 0.0,
            is_kept: false,
        });
        let named = self.types.iter().map(move |(name, kind)| LaunchResult {
            probability: kind.share / divisor,
            speed: kind.speed,
            is_kept: if self.keep.is_empty() {
                kind.speed >= fastest
            } else {
                self.keep.contains(name)
            },
        });
        named.chain(nothing)
    }

    /// Returns the cost of a launch that is ended again, in hours of an instance.
    pub fn rejected_h(&self) -> f64 {
        self.billing.billed_h(self.trial_s / 3600.0) + self.launch_usd / self.price_usd_per_h
    }
}

/// A possible result of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchResult {
    pub probability: f64,
    pub speed: f64,
    pub is_kept: bool,
}
