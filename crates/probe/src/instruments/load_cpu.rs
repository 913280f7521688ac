//! # What it measures
//! Nothing about the machine by itself: it is a load, to be run beside other benchmarks. It keeps
//! CPUs busy to a set share, and counts what it got, so that it can be proved afterwards that the
//! load was there all the time.
//!
//! # How
//! Each thread is pinned and works in periods: it computes until it has used `intensity_ratio` of
//! the period by its own CPU clock, then sleeps until the next period begins. What a period could
//! not get, because something else held the CPU, is not made up for later; what it used too much is
//! taken from the next one. The work is a chain of dependent multiplications and shifts in
//! registers: it needs the CPU's execution units and hardly anything of its caches. It ends after
//! `duration_ns`, or when it is told to stop, and in both cases with all its samples.
//!
//! # Known truth
//! The CPU time that the kernel accounts to the process, over the time it ran, is `intensity_ratio`
//! for each thread within 2 points. Two loads that want more than a CPU has show less than they
//! wanted, interval by interval, and together what there is. The duty of a thread follows a simulated
//! clock exactly.
//!
//! # Cross-check
//! `stress-ng --cpu N --cpu-load P`; the busy share in `/proc/stat`.
//!
//! # Overhead
//! What it is told to be. The counting thread wakes a hundred times a second.
//!
//! # Caveats
//! The share is of CPU time and not of speed: at a lower clock the same share is less work, which
//! `load_work_per_s` shows. Work done a second tells machines apart only roughly: `cpu.hash` and
//! `cpu.pi` measure that. With a period as long as the scheduler's slices or shorter the load looks
//! smooth to a neighbour; with a long one it comes in bursts. `idle` gives way at once to every other
//! program of its control group; between groups it weighs what its group weighs.
use crate::affinity;
use crate::error::ProbeError;
use crate::load::load_threads::{self, LoadSettings, LoadTarget, Rate, Work};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, PERIOD, THREADS};
use crate::trial::Trial;
use nephoscope_wire::spec::{Metric, Param, Spec};

pub const SPEC: Spec = Spec {
    id: "load.cpu",
    summary: "A load that keeps CPUs busy to a set share, and proves it",
    params: &[
        THREADS,
        CPUS,
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
        Param::switch("idle", false)
            .doc("Take only what nothing else wants (SCHED_IDLE): it keeps CPUs from sleeping."),
    ],
    metrics: &[
        Metric::neutral("load_cpus")
            .headline()
            .doc("CPU time of all threads over the time they ran: how many CPUs the load took."),
        Metric::neutral("load_intensity_ratio")
            .doc("CPU time of a thread over the time it ran, mean of the threads."),
        Metric::neutral("load_work_per_s").doc("Steps of the chain of all threads a second."),
        Metric::neutral("interval_intensity_ratio")
            .series()
            .doc("CPU time of a thread over each interval, mean of the threads, at its end."),
        Metric::neutral("interval_work_per_s")
            .series()
            .doc("Steps of the chain a second in each interval, at its end."),
    ],
    overhead: "the chosen share of the chosen CPUs",
    source: "duty-cycled busy loops (stress-ng --cpu-load; lookbusy)",
    load: true,
    ..Spec::EMPTY
};

/// Steps between two looks at the clocks: some microseconds, beside which the looks are little.
const STEPS: u64 = 4096;

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let shift = LoadSettings::of(trial, LoadTarget::CpuTime)?;
    let cpus = load::seats(trial)?;
    if trial.params.bool("idle") {
        affinity::only_when_idle()?;
    }
    let rate = Rate { total: "load_work_per_s", interval: "interval_work_per_s", each: 1.0 };
    load_threads::run(trial, &shift, &load::pinned(&cpus), &[rate], |thread| {
        Ok(Chain(thread as u64 + 1))
    })
}

/// A chain of dependent steps in a register (xorshift64*).
struct Chain(u64);

impl Work for Chain {
    #[inline]
    fn bit(&mut self) -> Result<u64, ProbeError> {
        let mut state = self.0;
        for _ in 0..STEPS {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state = state.wrapping_mul(0x2545_F491_4F6C_DD1D);
        }
        // Nobody reads the state; the compiler may not know.
        self.0 = std::hint::black_box(state);
        Ok(STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_of_work_is_counted_and_moves_on() {
        let mut chain = Chain(1);
        assert_eq!(chain.bit().unwrap(), STEPS);
        let first = chain.0;
        chain.bit().unwrap();
        assert_ne!(chain.0, first);
    }
}
