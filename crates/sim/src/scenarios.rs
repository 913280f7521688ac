//! Scenario files: those that come with the program, and how all are read.
use crate::error::{invalid, Result};
use serde::de::DeserializeOwned;

/// Names and JSON texts of scenarios.
pub type BuiltIn = &'static [(&'static str, &'static str)];

macro_rules! built_in {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../scenarios/", $folder, $name, ".json")))),+]
    };
}

/// Scenarios of sites and users. facebook: CloudAnalyst's own; twitter-2008: the published figures as
/// printed, and as they are consistent with each other.
pub const GEO: BuiltIn = built_in!(
    "": "cloudanalyst-default",
    "facebook-1",
    "facebook-2",
    "facebook-3",
    "facebook-4",
    "twitter-2008-as-printed-us",
    "twitter-2008-as-printed-eu",
    "twitter-2008-as-printed-two",
    "twitter-2008-consistent-us",
    "twitter-2008-consistent-eu",
    "twitter-2008-consistent-two",
);

/// Scenarios of CPU schedulers. Source of those of Xen: Zhuang 2012, Table 4.3 and Figure 4.3, one
/// machine of two virtual CPUs on four processors, or as their notes say.
pub const SCHEDULER: BuiltIn = built_in!(
    "scheduler/": "linux-quota-150",
    "linux-reservation-30-40",
    "linux-web-beside-busy",
    "linux-weights",
    "web-under-bvt",
    "web-under-credit",
    "web-under-linux-quota",
    "web-under-linux",
    "web-under-sedf",
    "xen-credit-150",
    "xen-credit-256-200",
    "xen-credit-512-190",
    "xen-credit-512-200",
    "xen-credit-cap-40-two",
    "xen-credit-cap-44",
    "xen-sedf-10-26",
    "xen-sedf-150-210",
    "xen-sedf-30-40",
);

/// Scenarios of instance selection.
pub const SELECTION: BuiltIn = built_in!("selection/": "zhuang-2012", "two-types");

/// Returns the default value of a number, for serde.
pub fn default<const N: u32>() -> f64 {
    f64::from(N)
}

/// Returns the default value of a whole number, for serde.
pub fn default_count<const N: u16, T: From<u16>>() -> T {
    T::from(N)
}

/// Reads a scenario from JSON. Returns an error for what is not JSON, and for unknown, missing and
/// ill-typed keys; values are checked by the scenario's own `check`.
pub fn parse<S: DeserializeOwned>(text: &str) -> Result<S> {
    serde_json::from_str(text).map_err(|error| {
        invalid(format!("The scenario cannot be read: {error}."), "Correct it there.")
    })
}

/// Reads a scenario that comes with the program; None if there is none of that name.
pub fn built_in<S: DeserializeOwned>(known: BuiltIn, name: &str) -> Option<S> {
    let (_, text) = known.iter().find(|(known, _)| *known == name)?;
    Some(parse(text).expect("a test reads every built-in scenario"))
}
