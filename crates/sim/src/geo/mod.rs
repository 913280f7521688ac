//! Sites for users around the world: response time and cost.
//!
//! A [`Scenario`] describes user bases, sites, and the network between them; [`run`] simulates it once
//! and returns its [`Outcome`]. With `compat` the model is CloudAnalyst's with all its errors:
//!
//! | CloudAnalyst | otherwise |
//! |---|---|
//! | all users of a base send simultaneously | a Poisson process whose rate follows the local hour |
//! | the first batch of a message ends its response | the last one does |
//! | each message counts as one | each request does |
//! | bandwidth is halved, doubled, subtracted twice | a link sends one message after another |
//! | megabits that are megabytes, gigabytes that are megabytes | units as they are named |
//! | peak hours of the first day only, in UTC | local hours of every day, over midnight too |
//! | one seed, no warm-up | a seed for each replication, a minute of warm-up |
mod autoscaling;
mod broker;
mod check;
mod cloudanalyst;
mod faults;
mod instance_pool;
pub mod load;
mod load_balancer;
mod locations;
mod model;
pub mod network;
pub mod ordered_map;
mod outcome;
pub mod page;
mod page_loads;
pub mod place;
pub mod profile;
mod random_factor;
pub mod regions;
mod request_source;
mod samples;
pub mod scenario;
mod send;
mod serve;
mod server;
mod slab;
#[cfg(test)]
mod tests;
pub mod topology;
mod transfer;

pub use model::run;
pub use ordered_map::OrderedMap;
pub use outcome::{BaseOutcome, GeoOutcome, RegionOutcome, SiteOutcome};
pub use scenario::GeoScenario;
pub use topology::Topology;
