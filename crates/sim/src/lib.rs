//! An exact discrete-event simulator of queues, schedulers and sites around the world.
//!
//! Time is in integer nanoseconds; simultaneous events are processed in the order in which they were
//! scheduled. Memory grows with what is in flight, never with simulated time. The same seed gives the
//! same results, bit by bit.
//!
//! | to | use |
//! |---|---|
//! | run a model | [`Model`], [`simulate`], [`EventQueue`] |
//! | serve jobs | [`processor_sharing::ProcessorSharing`], [`queue::Queue`] |
//! | generate arrivals | [`arrivals::Arrivals`] |
//! | draw random numbers | [`random::Stream`], [`random::Distribution`] |
//! | collect results | [`statistics`], [`replicate`] |
//! | simulate CPU schedulers | [`scheduler`] |
//! | select among unequal instances | [`selection`] |
//! | place sites for users around the world | [`geo`] |
//! | check a queue | [`queue`], [`closed_forms`] |
pub mod arrivals;
pub mod closed_forms;
pub mod error;
pub mod event_queue;
pub mod geo;
pub mod processor_sharing;
pub mod queue;
pub mod random;
pub mod replicate;
pub mod samples;
pub mod scenarios;
pub mod scheduler;
pub mod selection;
pub mod statistics;
#[cfg(test)]
mod testing;
mod timer_wheel;

pub use event_queue::{simulate, EventQueue, Model};

/// A time or a duration in nanoseconds of simulated time.
pub type Nanos = u64;

pub const SECOND: Nanos = 1_000_000_000;
