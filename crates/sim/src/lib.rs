//! A small, exact discrete-event simulator.
//!
//! Time is integer nanoseconds; two events may lie as close together as they like, and events of one
//! moment come in the order in which they were asked for. What is kept grows with what is in flight
//! and never with what has passed. The same seed gives the same bytes, on any number of threads.
//!
//! | to | use |
//! |---|---|
//! | run a model of your own | [`Model`], [`simulate`], [`Agenda`] |
//! | let work wait or share | [`resource::Fifo`], [`resource::Priority`], [`resource::Sharing`] |
//! | let work arrive | [`arrivals::Arrivals`] |
//! | draw at random | [`random::Stream`] |
//! | count what happened | [`tally`], with [`warmup`] cut and [`replicate`]d runs |
//! | choose among unequal instances | [`selection`] |
//! | place sites for users around the world | [`geo`] |
//! | check a queue | [`queue`] simulated, [`theory`] in closed form |
//!
//! ```
//! use nephoscope_sim::queue::{Queue, Service, Discipline};
//! use nephoscope_sim::arrivals::Arrivals;
//!
//! let queue = Queue {
//!     arrivals: Arrivals::poisson(800.0).unwrap(),
//!     service: Service::exponential(1e6).unwrap(),
//!     discipline: Discipline::Fifo,
//!     servers: 1,
//!     requests: 10_000,
//! };
//! let seen = queue.run(7, 0).unwrap();
//! assert_eq!(seen.response.count(), 10_000);
//! ```
pub mod agenda;
pub mod arrivals;
pub mod error;
pub mod geo;
pub mod queue;
pub mod random;
pub mod replicate;
pub mod resource;
pub mod scheduler;
pub mod selection;
pub mod tally;
pub mod theory;
pub mod warmup;
pub mod wheel;

pub use agenda::{simulate, Agenda, Model, Stop};
pub use error::Refused;

/// A moment or a length of simulated time, in nanoseconds.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;
