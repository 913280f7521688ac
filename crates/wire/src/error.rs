//! The one error of a program that runs trials: a stable name, a sentence, the next step.
use serde::Serialize;

/// What kind of failure it is; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The caller asked for something that does not exist, is out of bounds or makes no sense.
    Usage,
    /// The trial was started and failed.
    Failed,
    /// The machine lacks something (a kernel feature, a permission, space).
    Lacks,
    /// Told to stop, or the caller went away.
    Cancelled,
    /// The deadline passed.
    Deadline,
}

impl FailureKind {
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Usage => 2,
            Self::Failed => 3,
            Self::Lacks => 4,
            Self::Cancelled => 130,
            Self::Deadline => 124,
        }
    }
}

/// A failure with its name, sentence and next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Error {
    #[serde(skip)]
    pub kind: FailureKind,
    /// Stable snake_case name for programs.
    pub name: &'static str,
    /// What and where; a full sentence.
    pub message: String,
    /// What to do next; a full sentence.
    pub hint: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.message, self.hint)
    }
}

impl Error {
    pub fn new(
        kind: FailureKind,
        name: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { kind, name, message: without_os_codes(message.into()), hint: hint.into() }
    }

    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, "usage", message, hint)
    }

    /// A system call that failed where it normally does not.
    pub fn os(what: &str, error: &std::io::Error) -> Self {
        Self::new(
            FailureKind::Failed,
            "system_call_failed",
            format!("{what} failed: {error}."),
            "Run `nephoscope doctor` to see what this machine allows.",
        )
    }

    pub fn output(error: &std::io::Error) -> Self {
        Self::new(
            FailureKind::Failed,
            "output_closed",
            format!("Standard output cannot be written: {error}."),
            "Read the output to its end, or free space where it goes.",
        )
    }
}

/// Returns a sentence in which errors of the operating system stand in words only: 'Connection
/// refused' without its number, and a time limit of a socket as what it is.
fn without_os_codes(mut message: String) -> String {
    while let Some(start) = message.find(" (os error ") {
        let Some(length) = message[start..].find(')') else { break };
        message.replace_range(start..=start + length, "");
    }
    message.replace("Resource temporarily unavailable", "no answer came within the time limit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_are_words() {
        for (code, words) in [
            (libc::ECONNREFUSED, "Connection refused"),
            (libc::EAGAIN, "no answer came within the time limit"),
        ] {
            let error = std::io::Error::from_raw_os_error(code);
            let message = format!("a: {error}; b: {error}.");
            let cleaned = Error::usage(message, "").message;
            assert_eq!(cleaned, format!("a: {words}; b: {words}."));
        }
        assert_eq!(Error::usage("a (os error x", "").message, "a (os error x");
    }
}
