//! The one error of the probe: that of every program which runs trials.
pub use nephoscope_wire::error::{Error as ProbeError, Kind};
