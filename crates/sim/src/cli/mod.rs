//! The program around the library: arguments, the lines that go out, the gate before a trial.
mod args;
mod benchmarks;
mod error;
mod trial;
mod watch;

use args::Command;
use error::SimError;
use serde_json::json;
use std::io::Write;

/// The whole program; its exit code.
pub fn main(arguments: impl Iterator<Item = String>) -> i32 {
    match args::parse(arguments).and_then(run) {
        Ok(()) => 0,
        Err(error) => {
            // The same line serves programs (stdout) and people (stderr); a closed stdout is no
            // reason to lose the sentence.
            let _ = writeln!(std::io::stdout(), "{}", json!({ "error": error.to_failure() }));
            eprintln!("nephoscope-sim: {} {}", error.message, error.hint);
            error.kind.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), SimError> {
    match command {
        Command::Help => print(args::HELP),
        Command::Version => print(&format!("nephoscope-sim {}", env!("CARGO_PKG_VERSION"))),
        Command::Describe => print(&benchmarks::describe().to_string()),
        Command::Scenarios => print(&benchmarks::scenarios().to_string()),
        Command::Run(wanted) => trial::run(benchmarks::find(&wanted.id)?, *wanted),
    }
}

fn print(text: &str) -> Result<(), SimError> {
    writeln!(std::io::stdout(), "{text}").map_err(|error| SimError::output(&error))
}
