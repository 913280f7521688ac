//! Records and units shared by the Nephoscope programs. No I/O, no clock, no system call.
//!
//! `spec` is what a benchmark says about itself, `params` is what a caller asks of it (checked
//! against the spec), `lines` is what travels on stdout, one JSON object a line, `error` why there is
//! none.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod error;
pub mod lines;
pub mod params;
pub mod spec;
pub mod specs;

/// Version of the line protocol. It changes when an old reader would misread a new line.
pub const PROTOCOL: u32 = 2;
