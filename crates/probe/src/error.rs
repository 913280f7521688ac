//! The one error of the probe: that of every program which runs trials.
pub use nephoscope_wire::error::{Error as ProbeError, Kind};

/// The outcome of what can end a trial; of other errors where one is named.
pub type Result<T, E = ProbeError> = std::result::Result<T, E>;
