//! What work waits for: servers in order of arrival, servers by priority, servers that are shared.
mod fifo;
mod priority;
mod sharing;

pub use fifo::Fifo;
pub use priority::Priority;
pub use sharing::{Finished, Sharing};
