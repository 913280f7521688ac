//! Time in a trial: counters that are read in a tight loop, timed sections and the pages that they use,
//! completions counted over a window.
#[cfg(debug_assertions)]
pub mod alloc;
pub mod closed_loop;
pub mod ticks;
pub mod timed;
pub mod touch;
