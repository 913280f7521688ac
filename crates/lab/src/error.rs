//! The errors of the lab program, and the outcome of system calls.
use nephoscope_linux::call::{self, CallError};
use nephoscope_wire::error::{Error, FailureKind};
use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns the error of a failed call; a missing right is reported as such.
pub fn call_failed(error: CallError) -> Error {
    os_error(&error.action, &error.error)
}

/// Returns an error if a system call gave a negative `rc`. action: what it was to do, for the sentence.
pub fn require(rc: impl Into<i64>, action: &str) -> Result<()> {
    call::require(rc, action).map_err(call_failed)
}

pub fn usage(message: impl Into<String>) -> Error {
    Error::usage(message, "Run `nephoscope-lab help`.")
}

/// A failure after the start.
pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(FailureKind::Failed, "failed", message, hint)
}

/// The machine does not have something: a right, a kernel feature, CPU time to reserve.
pub fn missing(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(FailureKind::Lacks, "missing", message, hint)
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
