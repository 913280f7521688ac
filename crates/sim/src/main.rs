//! `nephoscope-sim`: arguments in, JSON lines out, as `nephoscope-probe` speaks them: what a
//! simulated machine, cloud or choice yields instead of a measured one.
//!
//! Exit codes: 0 done, 2 the caller asked for something that does not exist or cannot be simulated,
//! 3 the trial failed, 124 the deadline passed, 130 cancelled.
mod cli;

fn main() {
    std::process::exit(cli::main(std::env::args().skip(1)));
}
