//! `nephoscope-lab`: runs programs in lab hosts, delays packets, reserves CPU time, rewrites memory.
//!
//! Exit codes: 0 done, 2 invalid arguments, 3 failed, 4 missing right or kernel feature. `enter` ends as
//! the program that it executes; 127 if there is no such program, 126 if it cannot be executed.
mod args;
mod deadline;
mod dirty;
mod enter;
mod error;
mod line;
mod output;
mod reserve;

use output::report_failure;

fn main() {
    let code = args::run(std::env::args_os().skip(1));
    std::process::exit(code.unwrap_or_else(|error| report_failure(&error)));
}
