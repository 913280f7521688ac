//! The one error of the lab program: exit code, a sentence, the next step.
use std::fmt;
use std::io;

/// The caller asked for something that does not exist or is out of bounds.
pub const USAGE: i32 = 2;
/// It was started and failed.
pub const FAILED: i32 = 3;
/// The machine lacks something: a right, a kernel feature, CPU time to reserve.
pub const LACKING: i32 = 4;

/// A failure with its sentence and next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabError {
    /// Exit code of the program.
    pub code: i32,
    /// What and where; a full sentence.
    pub message: String,
    /// What to do next; a full sentence.
    pub hint: String,
}

impl LabError {
    /// A failure of any kind.
    pub fn new(code: i32, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    /// The caller's mistake in the words of the command.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message, "Run `nephoscope-lab help`.")
    }

    /// A system call that failed: a missing right is told as such.
    pub fn os(what: &str, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::new(
                LACKING,
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

    /// The last system call's failure.
    pub fn last(what: &str) -> Self {
        Self::os(what, &io::Error::last_os_error())
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.message, self.hint)
    }
}
