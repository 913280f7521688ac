//! Instances of one name and price are not equally fast: launch, look, keep or try again.
//!
//! A [`Scenario`] says which types come with which probability and how fast they are, what an hour
//! and a launch cost, and by which rule one is kept. [`run`] simulates whole fleets and tells how
//! the saving is spread over them, beside the [closed forms](closed) where there are some.
//!
//! Sources: Zhuang (2012), section 5.2, for trial and failure; Farley et al., "More for your money",
//! SoCC 2012, for replacing later; the reservation rule is that of optimal stopping (DeGroot,
//! Optimal Statistical Decisions, 1970, chapter 13).
pub mod closed;
mod fleets;
mod launches;
mod outcome;
mod scenario;
#[cfg(test)]
mod tests;

pub use fleets::{Fleet, Fleets};
pub use outcome::{run, Outcome};
pub use scenario::{Billing, Correlation, Kind, Scenario, Sharing, Strategy};
