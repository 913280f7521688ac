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

use nephoscope_wire::error::Error;
use nephoscope_wire::writer::report_error;
use serde_json::Value;
use std::io::Write;

fn main() {
    let code = args::run(std::env::args_os().skip(1));
    std::process::exit(code.unwrap_or_else(|error| report_failure(&error)));
}

/// Writes an error for people to standard error; returns its exit code.
fn report_failure(error: &Error) -> i32 {
    report_error("nephoscope-lab", error, std::io::sink())
}

/// Writes a line of JSON. Nobody may be listening any more; the work goes on.
fn report(value: &Value) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}
