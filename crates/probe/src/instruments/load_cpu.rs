//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. It keeps CPUs busy for a fixed
//! share of the time, and counts the CPU time it obtains, so that its presence is verified.
//!
//! # How
//! Each thread is pinned and computes until it has used `intensity_ratio` of each period by its CPU
//! clock, then sleeps until the next period. CPU time lost to others is not made up for; excess is
//! deducted from the next period. The work is a chain of dependent multiplications and shifts in
//! registers. It ends after `duration_ns` or when stopped, with all samples in both cases.
//!
//! # Known truth
//! The CPU time that the kernel accounts to the process is `intensity_ratio` per thread within 2
//! points. Two loads that want more than a CPU report less, interval by interval, and together what
//! exists. The duty cycle follows a simulated clock exactly.
//!
//! # Cross-check
//! `stress-ng --cpu N --cpu-load P`; the busy share in `/proc/stat`.
//!
//! # Overhead
//! The chosen CPU time. The counting thread wakes a hundred times per second.
//!
//! # Caveats
//! The share is of CPU time, not of speed: at a lower clock rate `load_work_per_s` falls. Use
//! `cpu.hash` and `cpu.pi` to compare machines. Periods as short as scheduler slices give a smooth
//! load, longer ones bursts. `idle` yields to every other program of its cgroup; between groups the
//! group's weight applies.
use crate::error::{ProbeError, Result};
use crate::load::load_threads::{self, CounterRate, LoadSettings, LoadTarget, Work};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, PERIOD, THREADS};
use crate::trial::Trial;
use nephoscope_linux::scheduling;
use nephoscope_wire::meaning::{Aggressor, Contended, Literal};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "load.cpu",
    summary: "Verified CPU load: keeps CPUs busy for a fixed share of the time",
    params: &[
        THREADS,
        CPUS,
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
        Param::switch("idle", false)
            .doc("Use only otherwise idle CPU time (SCHED_IDLE), to keep CPUs from sleeping."),
    ],
    metrics: &[
        load::LOAD_CPUS.headline(),
        load::THREAD_INTENSITY,
        Metric::neutral("load_work_per_s").doc("Steps of the computation per second, all threads."),
        load::INTERVAL_THREAD_INTENSITY,
        Metric::neutral("interval_work_per_s")
            .series()
            .doc("Steps of the computation per second in each interval, at its end."),
    ],
    overhead: "the chosen share of the chosen CPUs",
    source: "duty-cycled busy loops (stress-ng --cpu-load; lookbusy)",
    load: true,
    aggressor_for: &[Aggressor {
        resource: Contended::Cpu,
        params: &[("threads", Literal::Int(1))],
    }],
    ..Spec::about(Resource::Cpu)
};

/// Steps between two looks at the clocks: some microseconds, beside which the looks are little.
const STEPS: u64 = 4096;

pub fn run(trial: &mut Trial) -> Result<()> {
    let settings = LoadSettings::of(trial, LoadTarget::CpuTime)?;
    let cpus = load::placement(trial)?;
    if trial.params.bool("idle") {
        scheduling::run_only_when_idle()
            .map_err(|error| ProbeError::os("Running only on idle CPUs", &error))?;
    }
    let rate = CounterRate { total: "load_work_per_s", interval: "interval_work_per_s", each: 1.0 };
    load_threads::run(trial, &settings, &load::pinned(&cpus), &[rate], |thread| {
        Ok(RegisterChain(thread as u64 + 1))
    })
}

/// A chain of dependent steps in a register (xorshift64*).
struct RegisterChain(u64);

impl Work for RegisterChain {
    #[inline]
    fn bit(&mut self) -> Result<u64> {
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
        let mut chain = RegisterChain(1);
        assert_eq!(chain.bit().unwrap(), STEPS);
        let first = chain.0;
        chain.bit().unwrap();
        assert_ne!(chain.0, first);
    }
}
