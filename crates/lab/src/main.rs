//! `nephoscope-lab`: runs programs in lab hosts, delays packets, reserves CPU time.
//!
//! Exit codes: 0 done, 2 invalid arguments, 3 failed, 4 missing right or kernel feature. `enter` ends as
//! the program that it executes; 127 if there is no such program, 126 if it cannot be executed.
mod args;
mod cgroup;
mod deadline;
mod enter;
mod error;
mod line;
mod namespaces;
mod priority;
mod reserve;
mod signals;

use args::Command;
use error::LabError;
use serde_json::Value;
use std::io::Write;

fn main() {
    let code = match args::parse(std::env::args_os().skip(1)).and_then(run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nephoscope-lab: {error}");
            error.code
        }
    };
    std::process::exit(code);
}

fn run(command: Command) -> Result<i32, LabError> {
    match command {
        Command::Help => print(args::HELP),
        Command::Version => print(&format!("nephoscope-lab {}", env!("CARGO_PKG_VERSION"))),
        Command::Enter(config) => enter::run(&config),
        Command::Line(config) => line::run(&config),
        Command::Reserve(config) => reserve::run(&config),
    }
}

/// Writes a line of JSON. Nobody may be listening any more; the work goes on.
fn report(value: &Value) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}

fn print(text: &str) -> Result<i32, LabError> {
    writeln!(std::io::stdout(), "{text}")
        .map(|()| 0)
        .map_err(|error| LabError::os("Writing to standard output", &error))
}
