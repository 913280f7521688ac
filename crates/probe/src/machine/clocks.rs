//! The clock: which source the kernel uses, and what one reading costs.
use super::cpuid::Cpuid;
use super::Section;
use crate::timing::closed_loop::median;
use crate::timing::timed;
use nephoscope_linux::clock;
use nephoscope_linux::files::{Fact, Files};

const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// Readings in a batch: long against the reading that times the batch.
const BATCH: u32 = 256;
/// Batches; 8192 readings together take 0.2 ms on a machine with a quick clock, 8 ms where each
/// reading enters the kernel.
const BATCHES: usize = 32;

/// Nanoseconds of one reading of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct ReadCost {
    pub min_ns: f64,
    pub median_ns: f64,
}

pub fn read_cost() -> ReadCost {
    let mut batches = [0.0f64; BATCHES];
    // One batch to warm the code and the kernel's clock page.
    std::hint::black_box(batch());
    for slot in &mut batches {
        *slot = batch();
    }
    let median_ns = median(&mut batches);
    ReadCost { min_ns: batches[0], median_ns }
}

fn batch() -> f64 {
    let section = timed::start();
    for _ in 0..BATCH {
        std::hint::black_box(clock::monotonic_ns());
    }
    // The section's own last reading is one more.
    section.stop() as f64 / f64::from(BATCH + 1)
}

pub fn section(files: &Files, cpuid: &Fact<Cpuid>) -> Section {
    let cost = read_cost();
    let mut section = Section::new("clock");
    section.put("source", files.line(format!("{SOURCE}/current_clocksource")));
    let available = files.line(format!("{SOURCE}/available_clocksource"));
    let words = |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    section.put("available_sources", available.map(words));
    section.set("read_min_ns", cost.min_ns);
    section.set("read_median_ns", cost.median_ns);
    let invariant = cpuid.clone().and_then(|cpuid| {
        cpuid.tsc_invariant.ok_or_else(|| "cpuid has no power management leaf".to_owned())
    });
    section.put("tsc_invariant", invariant);
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::attempts::{attempt, holds};

    #[test]
    fn the_cost_agrees_with_a_plain_loop() {
        // The same quantity through another path: a loop timed by the standard library's clock.
        // Both are minima of short batches, which preemption does not touch; a factor of 2 covers
        // the difference between the two loops' own code.
        attempt("one reading of the clock", || {
            let cost = read_cost();
            assert!(cost.min_ns > 0.0 && cost.min_ns <= cost.median_ns, "{cost:?}");
            let plain = (0..50)
                .map(|_| {
                    let start = std::time::Instant::now();
                    for _ in 0..256 {
                        std::hint::black_box(std::time::Instant::now());
                    }
                    start.elapsed().as_nanos() as f64 / 257.0
                })
                .fold(f64::INFINITY, f64::min);
            let ratio = cost.min_ns / plain;
            let readings = format!("{cost:?}, plain loop {plain:.1} ns, ratio {ratio:.2}");
            holds((0.5..=2.0).contains(&ratio), readings)
        });
    }
}
