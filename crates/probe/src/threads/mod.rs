//! Threads and processes that work together: where they run, how they start, how they wait for each
//! other; the loops of the scheduling-gap meter, and the execution of other programs.
pub mod barriers;
pub mod cpu_halves;
pub mod echo_process;
pub mod execution;
pub mod gaps;
pub mod pair;
pub mod team;
pub mod turn_passing;
pub mod workers;
