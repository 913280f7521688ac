//! The one error of the program: exit code, a stable name, a sentence, the next step.
use nephoscope_sim::Refused;
use nephoscope_wire::lines::Failure;
use nephoscope_wire::params::BadParam;

/// The caller asked for something that does not exist, is out of bounds or cannot be simulated.
pub const USAGE: i32 = 2;
/// The trial was started and failed.
pub const FAILED: i32 = 3;
/// The machine lacks something.
pub const LACKS: i32 = 4;
/// The deadline passed.
pub const DEADLINE: i32 = 124;
/// Told to stop, or the caller went away.
pub const CANCELLED: i32 = 130;

/// A failure with its name, sentence and next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimError {
    /// Exit code of the program.
    pub code: i32,
    /// Stable snake_case name for programs.
    pub name: &'static str,
    /// What and where; a full sentence.
    pub message: String,
    /// What to do next; a full sentence.
    pub hint: String,
}

impl SimError {
    /// A failure of any kind.
    pub fn new(
        code: i32,
        name: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { code, name, message: message.into(), hint: hint.into() }
    }

    /// The caller's mistake.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(USAGE, "usage", message, hint)
    }

    /// Standard output cannot be written.
    pub fn output(error: &std::io::Error) -> Self {
        Self::new(
            FAILED,
            "output_closed",
            format!("Standard output cannot be written: {error}."),
            "Read the output to its end, or free space where it goes.",
        )
    }

    /// The line for stdout.
    pub fn to_failure(&self) -> Failure {
        Failure {
            name: self.name.to_owned(),
            message: self.message.clone(),
            hint: self.hint.clone(),
        }
    }
}

impl From<BadParam> for SimError {
    fn from(bad: BadParam) -> Self {
        Self::usage(bad.0, "Run `nephoscope-sim describe` for names and bounds.")
    }
}

/// What a model refuses is the caller's to change.
impl From<Refused> for SimError {
    fn from(refused: Refused) -> Self {
        Self::new(USAGE, "refused", refused.what, refused.hint)
    }
}
