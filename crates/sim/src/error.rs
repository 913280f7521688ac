//! What a model refuses: one sentence that says what, where and what to do next.
use nephoscope_wire::error::{Error, Kind};
use std::fmt;

/// Why a model cannot be simulated as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong, and where.
    pub what: String,
    /// What to do next.
    pub hint: String,
}

impl Refused {
    /// A refusal from its two sentences.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}", self.what, self.hint)
    }
}

impl std::error::Error for Refused {}

/// What a model refuses is the caller's to change.
impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::new(Kind::Usage, "refused", refused.what, refused.hint)
    }
}

/// The value, if it is a finite number above zero.
pub fn above_zero(name: &str, value: f64) -> Result<f64, Refused> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(Refused::new(
        format!("{name} is {value}, which is no number above zero."),
        format!("Give {name} a value above zero."),
    ))
}
