//! Servers: in order of arrival, or shared by all jobs.
mod fifo;
mod processor_sharing;

pub use fifo::Fifo;
pub use processor_sharing::{Completed, ProcessorSharing};
