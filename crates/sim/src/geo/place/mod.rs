//! Placement: which sites to choose for given users, objective and budget.
//!
//! Sets of sites are compared in closed form: exhaustively if there are few, else by local search with a
//! bound on how much better any other set could be. The best sets are simulated.
mod bound;
mod config;
mod placement;
mod problem;
mod problem_from_scenario;
#[cfg(test)]
mod scenario_tests;
mod search;
#[cfg(test)]
mod tests;

pub use config::PlacementConfig;
pub use placement::{run, Change, Choice, Placement, Simulated};
pub use problem::{Candidate, Evaluation, Instances, PlacementUsers, Problem, ResponsePath, HOURS};
pub use problem_from_scenario::Scaling;
pub use search::{search, Goal, SearchResult};
