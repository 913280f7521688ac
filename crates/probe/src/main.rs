//! `nephoscope-probe`: arguments in, JSON lines out. Samples go to stdout, logs to stderr.
//!
//! Exit codes: 0 done, 2 the caller asked for something that does not exist, 3 the trial failed,
//! 4 the machine lacks something, 130 cancelled, 124 the deadline passed.
mod affinity;
#[cfg(debug_assertions)]
mod alloc;
mod args;
#[cfg(test)]
mod attempts;
mod buffer;
mod caches;
mod cgroup;
mod clock;
mod closed_loop;
mod counters;
mod decimal;
mod disk;
mod echo_process;
mod error;
mod execution;
mod files;
mod gaps;
mod http;
mod http2;
mod http_server;
mod idle_cpu;
mod instruments;
mod kernel;
mod kv;
mod ladder;
mod load;
mod machine;
mod net;
mod observe;
mod other_programs;
mod pages;
mod parameters;
mod password_hashes;
mod pi;
mod proc;
mod requests;
mod ring;
mod session;
mod signals;
mod simd;
mod storage;
mod stream;
mod team;
mod thread_barriers;
mod timed;
mod touch;
mod trial;
mod turn_passing;
mod walks;
mod workers;
mod wrap;

use args::{Command, Subject};
use error::{ProbeError, Result};
use nephoscope_wire::writer::report_error;
use serde_json::Map;
use session::Session;
use std::io::Write;

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
        Command::Observe => observe::run(),
        Command::Run { subject, limits, gap_meter } => {
            let (instrument, params) = find(subject)?;
            trial::run(instrument, &params, Session::begin(&limits)?, gap_meter)
        }
        Command::Serve { subject, limits, token, bind } => {
            let (instrument, params) = find(subject)?;
            let session = Session::begin(&limits)?;
            let token = token.map_or_else(|| session.read_token(), Ok)?;
            trial::serve(instrument, &params, session, &trial::ListenConfig { bind, token })
        }
    }
}

fn find(
    subject: Subject,
) -> Result<(&'static instruments::Instrument, Map<String, serde_json::Value>)> {
    match subject {
        Subject::Benchmark { id, params } => Ok((instruments::find(&id)?, params)),
        Subject::Job(job) => Ok((&wrap::WRAP, Map::from_iter([("job".to_owned(), job.into())]))),
    }
}

fn print(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").map_err(|error| ProbeError::output(&error))
}
