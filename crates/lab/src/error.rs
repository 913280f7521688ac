//! The errors of the lab program, and the outcome of system calls.
use nephoscope_wire::error::{Error, Kind};
use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a system call that gave `rc` came to.
pub fn outcome(rc: impl Into<i64>) -> io::Result<()> {
    match rc.into() {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Returns an error if a system call gave a negative `rc`. what: what it was to do, for the sentence.
pub fn require(rc: impl Into<i64>, what: &str) -> Result<()> {
    outcome(rc).map_err(|error| os_error(what, &error))
}

pub fn usage(message: impl Into<String>) -> Error {
    Error::usage(message, "Run `nephoscope-lab help`.")
}

/// A failure after the start.
pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(Kind::Failed, "failed", message, hint)
}

/// The machine does not have something: a right, a kernel feature, CPU time to reserve.
pub fn missing(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(Kind::Lacks, "missing", message, hint)
}

/// Returns an error for a failed system call; a missing right is reported as such.
pub fn os_error(what: &str, error: &io::Error) -> Error {
    let message = format!("{what} failed: {error}.");
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => missing(
            format!("{what} is not permitted ({error})."),
            "Run it as root, or with the capabilities CAP_SYS_ADMIN, CAP_NET_ADMIN and \
             CAP_SYS_NICE.",
        ),
        Some(libc::ENOENT | libc::ESRCH) => failed(
            message,
            "Run `nephoscope lab list`; what is not there may have been taken down.",
        ),
        _ => failed(message, "Run `nephoscope lab check` to see what this machine allows."),
    }
}
