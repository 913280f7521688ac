//! Selection among instances of one name and price that are not equally fast.
//!
//! A [`Scenario`] defines the probability and the speed of each type, the cost of an hour and of a
//! launch, and the rule by which instances are kept. [`run`] simulates whole fleets and the distribution
//! of their savings, besides the [closed forms](formulas).
//!
//! Sources: Zhuang (2012), section 5.2, for trial and failure; Farley et al., "More for your money",
//! SoCC 2012, for replacement; the reservation rule is that of optimal stopping (DeGroot,
//! Optimal Statistical Decisions, 1970, chapter 13).
mod fleets;
pub mod formulas;
mod launches;
mod outcome;
mod scenario;
#[cfg(test)]
mod tests;

pub use fleets::{FleetCosts, Fleets};
pub use outcome::{run, SelectionOutcome};
pub use scenario::{Billing, Correlation, InstanceType, SelectionScenario, Sharing, Strategy};
