//! What the Nephoscope programs share: the records of their line protocol and how they are declared,
//! checked, read and written. No clock and no unsafe code.
//!
//! `spec` is what a benchmark says about itself, `meaning` what it is about, `params` is what a caller asks of it (checked
//! against the spec), `lines` is what travels on stdout, one JSON object a line, `writer` writes it,
//! `error` is why a trial failed; `arguments` reads the command line, `input` the files that it names,
//! `random` is a seeded generator, `gap_cycles` an estimate that probe and simulator make.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod error;
pub mod gap_cycles;
pub mod input;
pub mod lines;
pub mod meaning;
pub mod params;
pub mod random;
pub mod spec;
pub mod specs;
pub mod writer;

/// Version of the line protocol. It changes when an old reader would misread a new line.
pub const PROTOCOL: u32 = 3;
