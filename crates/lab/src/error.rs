//! The error of the lab program: exit code, a sentence, the next step.
use std::fmt;
use std::io;

pub const USAGE: i32 = 2;
/// A failure after the start.
pub const FAILED: i32 = 3;
/// The machine does not have something: a right, a kernel feature, CPU time to reserve.
pub const MISSING: i32 = 4;

/// What a system call that gave `rc` came to.
pub fn outcome(rc: impl Into<i64>) -> io::Result<()> {
    match rc.into() {
        ..0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A failure with its sentence and next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabError {
    pub code: i32,
    pub message: String,
    pub hint: String,
}

impl LabError {
    pub fn new(code: i32, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message, "Run `nephoscope-lab help`.")
    }

    /// Returns an error for a failed system call; a missing right is reported as such.
    pub fn os(what: &str, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::new(
                MISSING,
                format!("{what} is not permitted ({error})."),
                "Run it as root, or with the capabilities CAP_SYS_ADMIN, CAP_NET_ADMIN and \
                 CAP_SYS_NICE.",
            ),
            Some(libc::ENOENT | libc::ESRCH) => Self::new(
                FAILED,
                format!("{what} failed: {error}."),
                "Run `nephoscope lab list`; what is not there may have been taken down.",
            ),
            _ => Self::new(
                FAILED,
                format!("{what} failed: {error}."),
                "Run `nephoscope lab check` to see what this machine allows.",
            ),
        }
    }

    pub fn last(what: &str) -> Self {
        Self::os(what, &io::Error::last_os_error())
    }
}

impl From<nephoscope_wire::error::Error> for LabError {
    fn from(error: nephoscope_wire::error::Error) -> Self {
        Self::new(error.kind.exit_code(), error.message, error.hint)
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.message, self.hint)
    }
}
