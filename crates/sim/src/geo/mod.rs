//! Sites for users around the world: what response time users feel, and what it costs.
//!
//! A [`Scenario`] names user bases, sites, and what lies between them; [`run`] simulates it once,
//! and its [`Outcome`] tells what was seen. With `compat` the model is CloudAnalyst's with all its
//! quirks; without, it is free of them:
//!
//! | CloudAnalyst | here |
//! |---|---|
//! | all users of a base ask at one moment | a Poisson stream whose rate follows the local hour |
//! | the first part of a message answers for all of it | the last one does |
//! | each message counts as one | each request does |
//! | bandwidth is halved, doubled, taken off twice | a link sends one message after the other |
//! | megabits that are megabytes, gigabytes that are megabytes | units as they are named |
//! | peak hours of the first day only, in UTC | local hours of every day, across midnight too |
//! | one seed, no warm-up | a seed for each replication, a minute of warm-up |
mod ask;
mod balance;
mod broker;
pub mod builtin;
mod check;
mod farm;
mod faults;
pub mod load;
mod model;
pub mod named;
pub mod network;
mod noise;
mod pages;
pub mod place;
mod places;
mod samples;
mod scale;
pub mod scenario;
mod seen;
mod send;
mod serve;
mod server;
mod slab;
pub mod table;
#[cfg(test)]
mod tests;
mod tool;
mod travel;
pub mod users;
pub mod web;
pub mod world;

pub use model::run;
pub use named::Named;
pub use samples::Emit;
pub use scenario::Scenario;
pub use seen::{BaseSeen, Outcome, RegionSeen, SiteSeen};
pub use world::World;
