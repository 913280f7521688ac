//! Why a model cannot be simulated: one sentence for what and where, one for the next step.
use nephoscope_wire::error::{Error, FailureKind};

/// The outcome of what may be refused.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error for invalid input. what: what is wrong, and where; begins with the scenario key
/// where there is one.
pub fn invalid(what: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(FailureKind::Usage, "refused", what, hint)
}

/// Refuses invalid input.
pub fn refuse<T>(what: impl Into<String>, hint: impl Into<String>) -> Result<T> {
    Err(invalid(what, hint))
}

/// Numbers beyond are mistakes, and times and sums that follow from them have no representation.
const SMALLEST: f64 = 1e-9;
const LARGEST: f64 = 1e15;

/// Returns the value if it is above zero and not absurdly large.
pub fn positive(key: &str, value: f64) -> Result<f64> {
    if (SMALLEST..=LARGEST).contains(&value) {
        return Ok(value);
    }
    let hint = format!("Give a number above zero ({SMALLEST:e} to {LARGEST:e}).");
    refuse(format!("{key} is {value}."), hint)
}

/// Returns the value if it lies within the bounds.
pub fn within(key: &str, value: f64, min: f64, max: f64) -> Result<f64> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    refuse(format!("{key} is {value}."), format!("Give a number from {min} to {max}."))
}

/// Returns an error if the scenario is of another format version than 1.
pub fn check_version(version: u32) -> Result<()> {
    if version == 1 {
        return Ok(());
    }
    refuse(format!("version is {version}."), "This program reads version 1: write `version: 1`.")
}
