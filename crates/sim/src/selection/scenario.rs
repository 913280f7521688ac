//! What a scenario of selection says: the keys, their units, their defaults.
use crate::error::{above_zero, Refused};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A job, the instances that one may get for it, and the rule by which one is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of this format: 1.
    pub version: u32,
    /// What it is called.
    #[serde(default)]
    pub name: String,
    /// What it shows, and where its figures come from.
    #[serde(default)]
    pub note: String,
    /// What a launch may give, by name.
    pub types: BTreeMap<String, Kind>,
    /// Shares that sum to less than 1: true divides them by their sum; false takes the rest for
    /// instances that do nothing.
    #[serde(default = "yes")]
    pub normalise: bool,
    /// Size of the job: instances of speed 1 that would do it in `hours`.
    pub instances: u64,
    /// Hours of the job.
    pub hours: f64,
    /// What an instance costs, US dollars an hour, whatever its type.
    pub price_usd_per_h: f64,
    /// What one pays for.
    #[serde(default)]
    pub billing: Billing,
    /// Seconds until a launch has told its type and is ended again.
    #[serde(default = "minute")]
    pub trial_s: f64,
    /// What a launch costs besides, US dollars.
    #[serde(default)]
    pub launch_usd: f64,
    /// The rule.
    #[serde(default)]
    pub strategy: Strategy,
    /// Of `trial_and_failure`: the types that are kept; none given: the fastest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// Of `replacement`: hours between two looks.
    #[serde(default = "day")]
    pub review_h: f64,
    /// How the work is shared.
    #[serde(default)]
    pub sharing: Sharing,
    /// How alike launches are that follow one another.
    #[serde(default)]
    pub correlation: Correlation,
    /// The fleet may be launched from so often; then what one has is kept. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches_at_most: Option<u64>,
    /// Fleets that are simulated in a replication.
    #[serde(default = "thousand")]
    pub fleets: u64,
}

/// A type of instance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Part of the launches that give it.
    pub share: f64,
    /// Its speed; the job is counted in hours of speed 1.
    pub speed: f64,
}

/// What one pays for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Billing {
    /// An instance is paid in whole steps of so many seconds: 3600 by the hour, 1 by the second.
    pub step_s: f64,
    /// And at least for so many.
    pub least_s: f64,
}

impl Default for Billing {
    fn default() -> Self {
        Self { step_s: 1.0, least_s: 60.0 }
    }
}

impl Billing {
    /// Hours that are paid for so many hours of use.
    #[inline]
    pub fn billed_h(&self, hours: f64) -> f64 {
        let step_h = self.step_s / 3600.0;
        let used = hours.max(self.least_s / 3600.0);
        // A whole number of steps stays one when its hours are no exact binary fraction.
        (used / step_h - 1e-9).ceil() * step_h
    }
}

/// By which rule an instance is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// What is not of the kept types is ended, and launched again.
    #[default]
    TrialAndFailure,
    /// It is kept when another launch does not pay for the work that is left (optimal stopping).
    Stopping,
    /// What comes is kept, and looked at again now and then: a launch that gives something faster
    /// takes its place, as long as that pays.
    Replacement,
}

/// How the work is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Whoever is free takes the next piece: all end together.
    #[default]
    Dynamic,
    /// Each instance has the same part of it.
    Equal,
}

/// How alike launches are that follow one another: what was freed is often given out again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Correlation {
    /// Probability that a launch right after another gives its type again.
    pub same_ratio: f64,
    /// Hours after which that probability has fallen to a third (1/e); 0: it never falls.
    pub fades_h: f64,
}

impl Correlation {
    /// Probability that a launch gives the type of the one `hours` before it.
    #[inline]
    pub fn after(&self, hours: f64) -> f64 {
        let faded = if self.fades_h > 0.0 { (-hours / self.fades_h).exp() } else { 1.0 };
        self.same_ratio * faded
    }
}

fn yes() -> bool {
    true
}
fn minute() -> f64 {
    60.0
}
fn day() -> f64 {
    24.0
}
fn thousand() -> u64 {
    1000
}

/// More fleets, launches of all fleets, or looks are not meant.
const MOST_FLEETS: u64 = 100_000_000;
const MOST_INSTANCES: u64 = 1_000_000;
/// Launches that one kept instance may take on average before that is called hopeless.
const MOST_TRIALS: f64 = 1e6;

impl Scenario {
    /// Whether it can be simulated; one sentence where it cannot.
    pub fn check(&self) -> Result<(), Refused> {
        let told = |what: String, hint: &str| Err(Refused::new(what, hint));
        if self.version != 1 {
            return told(format!("version: there is no version {}.", self.version), "Write 1.");
        }
        self.check_types()?;
        above_zero("instances", self.instances as f64)?;
        for (name, value) in [
            ("hours", self.hours),
            ("price_usd_per_h", self.price_usd_per_h),
            ("billing.step_s", self.billing.step_s),
            ("review_h", self.review_h),
            ("fleets", self.fleets as f64),
        ] {
            above_zero(name, value)?;
        }
        for (name, value) in [
            ("billing.least_s", self.billing.least_s),
            ("trial_s", self.trial_s),
            ("launch_usd", self.launch_usd),
            ("correlation.fades_h", self.correlation.fades_h),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return told(format!("{name} is {value}, which is below zero."), "Give 0 or more.");
            }
        }
        let same = self.correlation.same_ratio;
        if !(0.0..1.0).contains(&same) {
            return told(
                format!("correlation.same_ratio is {same}; it is a probability below 1."),
                "At 1 no launch would ever give another type.",
            );
        }
        if self.instances > MOST_INSTANCES || self.fleets > MOST_FLEETS {
            return told(
                format!(
                    "{} fleets of {} instances are more than is simulated.",
                    self.fleets, self.instances
                ),
                "At most 1,000,000 instances and 100,000,000 fleets.",
            );
        }
        if self.sharing == Sharing::Equal
            && (self.strategy == Strategy::Replacement
                || self.chances().any(|one| one.speed <= 0.0))
        {
            return told(
                "sharing: equal parts cannot be given to instances that change or do nothing."
                    .to_owned(),
                "Write `sharing: dynamic`.",
            );
        }
        if self.launches_at_most.is_some_and(|most| most < self.instances) {
            return told(
                format!(
                    "launches_at_most is {}, and the fleet alone takes up to {}.",
                    self.launches_at_most.unwrap_or(0),
                    self.instances
                ),
                "Raise it, or take fewer instances.",
            );
        }
        Ok(())
    }

    fn check_types(&self) -> Result<(), Refused> {
        if self.types.is_empty() {
            return Err(Refused::new("types: there is none.", "Name at least one type."));
        }
        for (name, kind) in &self.types {
            above_zero(&format!("types.{name}.share"), kind.share)?;
            above_zero(&format!("types.{name}.speed"), kind.speed)?;
        }
        let sum = self.share_sum();
        // Shares of printed tables sum to 1 only within their rounding.
        if sum > 1.0 + 1e-6 {
            return Err(Refused::new(
                format!("types: the shares sum to {sum:.4}, which is more than 1."),
                "Shares are parts of all launches.",
            ));
        }
        if let Some(name) = self.keep.iter().find(|name| !self.types.contains_key(*name)) {
            let known: Vec<_> = self.types.keys().map(String::as_str).collect();
            return Err(Refused::new(
                format!("keep: there is no type '{name}'."),
                format!("There are: {}.", known.join(", ")),
            ));
        }
        let kept: f64 = self.chances().filter(|one| one.kept).map(|one| one.chance).sum();
        if 1.0 / kept > MOST_TRIALS {
            return Err(Refused::new(
                format!("keep: one launch in {:.0} gives what is kept.", 1.0 / kept),
                "Keep a type that comes more often.",
            ));
        }
        Ok(())
    }

    /// Sum of the shares as given.
    pub fn share_sum(&self) -> f64 {
        self.types.values().map(|kind| kind.share).sum()
    }

    /// Fastest speed.
    pub fn fastest(&self) -> f64 {
        self.types.values().map(|kind| kind.speed).fold(0.0, f64::max)
    }

    /// What a launch gives: each type with its chance, which sum to 1, and whether trial and failure
    /// keeps it. Of shares that are not normalised the rest comes last, with speed 0.
    pub fn chances(&self) -> impl Iterator<Item = Chance> + '_ {
        let sum = self.share_sum();
        let (fastest, of) = (self.fastest(), if self.normalise { sum } else { 1.0 });
        let rest = (1.0 - sum).max(0.0);
        let nothing = (!self.normalise && rest > 1e-9).then_some(Chance {
            chance: rest,
            speed: 0.0,
            kept: false,
        });
        let named = self.types.iter().map(move |(name, kind)| Chance {
            chance: kind.share / of,
            speed: kind.speed,
            kept: if self.keep.is_empty() {
                kind.speed >= fastest
            } else {
                self.keep.contains(name)
            },
        });
        named.chain(nothing)
    }

    /// Hours that are paid for a launch that is ended again.
    pub fn trial_h(&self) -> f64 {
        self.billing.billed_h(self.trial_s / 3600.0)
    }

    /// The same, with what a launch costs besides, in hours of an instance.
    pub fn rejected_h(&self) -> f64 {
        self.trial_h() + self.launch_usd / self.price_usd_per_h
    }
}

/// One possible result of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// Its probability.
    pub chance: f64,
    /// Its speed.
    pub speed: f64,
    /// Whether it is among the kept types.
    pub kept: bool,
}
