//! Outcomes of system calls.
use std::fmt;
use std::io;

/// A system call that failed, and what it was to do.
#[derive(Debug)]
pub struct CallError {
    /// What was to be done, as the beginning of a sentence: "Joining the namespace /run/netns/a".
    pub action: String,
    pub error: io::Error,
}

impl CallError {
    pub fn new(action: impl Into<String>, error: io::Error) -> Self {
        Self { action: action.into(), error }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} failed: {}.", self.action, self.error)
    }
}

/// Returns the error of a system call that returned a negative number.
pub fn outcome(rc: impl Into<i64>) -> io::Result<()> {
    match rc.into() {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Returns the error of a system call that returned a negative number, with what it was to do.
pub fn require(rc: impl Into<i64>, action: &str) -> Result<(), CallError> {
    outcome(rc).map_err(|error| CallError::new(action, error))
}
