//! `nephoscope-probe`: arguments in, JSON lines out. Samples go to stdout, logs to stderr.
//!
//! Exit codes: 0 done, 2 the caller asked for something that does not exist, 3 the trial failed,
//! 4 the machine lacks something, 130 cancelled, 124 the deadline passed.
mod affinity;
mod alloc;
mod args;
#[cfg(test)]
mod attempts;
mod beside;
mod buffer;
mod caches;
mod cancel;
mod cgroup;
mod clock;
mod control;
mod disk;
mod error;
mod files;
mod gaps;
mod handover;
mod instruments;
mod kernel;
mod ladder;
mod load;
mod machine;
mod net;
mod others;
mod pages;
mod pi;
mod proc;
mod ring;
mod simd;
mod spare;
mod stream;
mod team;
mod timed;
mod together;
mod touch;
mod trial;
mod walks;
mod window;
mod wrap;

use args::Command;
use error::ProbeError;
use serde_json::json;
use std::io::Write;

fn main() {
    let code = match args::parse(std::env::args().skip(1)).and_then(run) {
        Ok(()) => 0,
        Err(error) => {
            // The same line serves programs (stdout) and people (stderr); a closed stdout is no
            // reason to lose the sentence.
            let _ = writeln!(std::io::stdout(), "{}", json!({ "error": error.to_failure() }));
            eprintln!("nephoscope-probe: {} {}", error.message, error.hint);
            error.kind.exit_code()
        }
    };
    std::process::exit(code);
}

fn run(command: Command) -> Result<(), ProbeError> {
    match command {
        Command::Help => print(args::HELP),
        Command::Version => print(&format!("nephoscope-probe {}", env!("CARGO_PKG_VERSION"))),
        Command::Describe => print(&instruments::describe().to_string()),
        Command::Run { id, params, limits } => {
            let instrument = instruments::find(&id)?;
            cancel::install(&limits)?;
            trial::run(instrument, &params, limits.gap_meter)
        }
        Command::Wrap { job, limits } => {
            cancel::install(&limits)?;
            let params = serde_json::Map::from_iter([("job".to_owned(), job.into())]);
            trial::run(&wrap::WRAP, &params, limits.gap_meter)
        }
        Command::Serve { id, params, limits, token, bind } => {
            let instrument = instruments::find(&id)?;
            cancel::install(&limits)?;
            let token = token.map_or_else(control::token, Ok)?;
            trial::serve(instrument, &params, &trial::Door { bind, token })
        }
    }
}

fn print(text: &str) -> Result<(), ProbeError> {
    writeln!(std::io::stdout(), "{text}").map_err(|error| ProbeError::output(&error))
}
