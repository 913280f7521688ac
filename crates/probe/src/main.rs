//! `nephoscope-probe`: arguments in, JSON lines out. Samples go to stdout, logs to stderr.
//!
//! Exit codes: 0 done, 2 the caller asked for something that does not exist, 3 the trial failed,
//! 4 the machine lacks something, 130 cancelled, 124 the deadline passed.
mod args;
mod disk;
mod error;
mod http;
mod instruments;
mod load;
mod machine;
mod memory;
mod net;
mod storage;
mod threads;
mod timing;
/// The benchmark that a test adds to a copy of these sources: compiled here, so that it stays one.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../../tests/e2e/toy_echo.rs"]
mod toy_echo;
mod trial;
mod unattended;

use args::{Command, Subject};
use error::{ProbeError, Result};
use nephoscope_wire::writer::report_error;
use serde_json::Map;
use std::io::Write;
use trial::session::Session;

fn main() {
    let code = match args::parse(std::env::args_os().skip(1)).and_then(run) {
        Ok(()) => 0,
        Err(error) => report_error("nephoscope-probe", &error, std::io::stdout()),
    };
    std::process::exit(code);
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Help => print(args::HELP),
        Command::Version => print(&format!("nephoscope-probe {}", env!("CARGO_PKG_VERSION"))),
        Command::Describe => print(&instruments::describe().to_string()),
        Command::Observe => http::observe::run(),
        Command::Unattended(job) => unattended::run(&job),
        Command::Run { subject, limits, gap_meter } => {
            let (instrument, params) = find(subject)?;
            let session = Session::begin(&limits)?;
            trial::run(instrument.spec, &params, session, gap_meter, instrument.run)
        }
        Command::Serve { subject, limits, token, bind } => {
            let (instrument, params) = find(subject)?;
            let session = Session::begin(&limits)?;
            let token = token.map_or_else(|| session.read_token(), Ok)?;
            let serve = instrument.far_side()?;
            let listen = trial::ListenConfig { bind, token };
            trial::serve(instrument.spec, &params, session, |trial| serve(trial, &listen))
        }
    }
}

fn find(
    subject: Subject,
) -> Result<(&'static instruments::Instrument, Map<String, serde_json::Value>)> {
    match subject {
        Subject::Benchmark { id, params } => Ok((instruments::find(&id)?, params)),
        Subject::Job(job) => {
            Ok((&instruments::wrap::WRAP, Map::from_iter([("job".to_owned(), job.into())])))
        }
    }
}

fn print(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").map_err(|error| ProbeError::output(&error))
}
