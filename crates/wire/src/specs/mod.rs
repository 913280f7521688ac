//! Declarations of benchmarks that more than one program answers.

pub mod cpu_gaps;
pub mod null;
pub mod sys_fingerprint;
