//! `nephoscope-sim` simulates what `nephoscope-probe` measures: arguments in, JSON lines out.
//!
//! Exit codes: 0 done, 2 invalid input, 3 the trial failed, 124 the deadline passed, 130 cancelled.
mod cli;

fn main() {
    std::process::exit(cli::main(std::env::args_os().skip(1)));
}
