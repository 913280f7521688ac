//! Memory that benchmarks map and walk: buffers, working sets, access patterns and the vector
//! instructions that they use.
pub mod buffer;
pub mod caches;
pub mod ladder;
pub mod pages;
pub mod ring;
pub mod simd;
pub mod stream;
pub mod walks;
