//! `line`: a delay line in user space. Packets come from TAP devices, wait, and go out on others.
//!
//! One thread: it releases what is due, reads what has come, and sleeps until the next release. It
//! wakes a little early and looks at the clock for the rest (`spin_ns`), because a timer alone is
//! late by tens of microseconds. With nothing to do it uses no CPU.
mod config;
mod control;
mod engine;
mod path;
mod run;
mod slots;
mod tap;
mod waiting;

pub use run::run;
