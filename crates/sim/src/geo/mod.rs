//! Sites for users around the world: what response time users feel, and what it costs.
//!
//! A [`Scenario`] names user bases, sites, and what lies between them; [`run`] simulates it once.
pub mod named;
pub mod scenario;
pub mod web;

pub use named::Named;
pub use scenario::Scenario;
