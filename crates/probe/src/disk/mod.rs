//! What the disk benchmarks share: the place, the scratch file, the order of records, the engines.
pub mod engine_ring;
pub mod engine_sync;
pub mod errors;
pub mod folder;
pub mod job;
pub mod mail;
pub mod mailbox;
pub mod memory;
pub mod mover;
pub mod passes;
pub mod pattern;
pub mod place;
pub mod scratch;
