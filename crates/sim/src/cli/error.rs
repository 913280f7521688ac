//! The one error of the program: that of every program which runs trials.
pub use nephoscope_wire::error::{Error as SimError, Kind};
