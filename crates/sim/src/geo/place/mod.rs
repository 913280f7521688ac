//! Which sites: for these users, this objective and this budget.
//!
//! Sets of sites are compared in closed form: all of them where there are few enough, else by
//! search, with a bound on how much better any other could be. The winners are simulated.
mod answer;
mod bound;
mod from;
mod problem;
mod question;
#[cfg(test)]
mod scenario_tests;
mod search;
#[cfg(test)]
mod tests;

pub use answer::{run, Answer, Change, Choice, Simulated};
pub use from::Factors;
pub use problem::{Base, Candidate, Evaluation, Instances, Problem, Way, HOURS};
pub use question::Question;
pub use search::{search, Found, Goal};
