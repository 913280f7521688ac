//! Share of the CPU that a loop gets: measured by the probe, simulated by the simulator.
use crate::meaning::Headline;
use crate::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "cpu.gaps",
    summary: "Share of the CPU that a tight loop gets, and its scheduling gaps",
    params: &[
        Param::int("duration_ns", 1_000_000_000, 10_000_000..=3_600_000_000_000)
            .doc("Time for which each loop reads the clock."),
        Param::int("threshold_ns", 100_000, 100..=1_000_000_000)
            .doc("Minimum time between two clock reads that counts as a gap."),
        Param::ints("cpus", &[], 0..=1023)
            .doc("CPUs to measure; an empty list takes all allowed CPUs."),
        Param::count("cpus_max", 0, 0..=1024)
            .doc("Maximum number of CPUs to measure, lowest first; 0 for no limit."),
        Param::count("processes_per_cpu", 1, 1..=16)
            .doc("Loops per CPU; more than one are processes that contend for it."),
        Param::count("events_max", 1000, 0..=1_000_000)
            .doc("Maximum number of gaps per loop reported one by one; histograms have all."),
        Param::int("sleep_ns", 0, 0..=60_000_000_000)
            .doc("Length of the sleeps of each loop; 0 keeps it always busy."),
        Param::int("busy_ns", 500_000_000, 1_000_000..=3_600_000_000_000)
            .doc("Busy time between two sleeps."),
        Param::switch("pin", true).doc("Pin each loop to its CPU."),
        Param::choice("clock", "auto", &["auto", "tsc", "monotonic"])
            .doc("Clock to read; auto takes the time-stamp counter if it is usable as a clock."),
    ],
    metrics: &[
        Metric::higher("cpu_share_ratio")
            .share()
            .headline()
            .doc("Share of its CPU that a loop obtained: 1 minus its gaps over the window."),
        Metric::higher("obtained_cpus")
            .headline()
            .in_summary(Headline::of("CPU time available"))
            .doc("CPUs that all loops together obtained."),
        Metric::higher("obtained_cycles_cpus")
            .doc("CPUs obtained over whole cycles of the loop with most long gaps; needs three."),
        Metric::higher("cpu_share_cycles_ratio")
            .share()
            .doc("CPU share over whole cycles between the first and last long gap; needs three."),
        Metric::higher("thread_cpu_ratio")
            .share()
            .doc("CPU time of the loop over elapsed time, as the kernel counts it."),
        Metric::lower("gap_length_ns").histogram().doc("Lengths of all gaps."),
        Metric::higher("run_length_ns").histogram().doc("Lengths of the runs between two gaps."),
        Metric::neutral("gap_period_ns")
            .histogram()
            .doc("Times from the start of a gap to the start of the next."),
        Metric::lower("gap_event_ns")
            .series()
            .doc("Lengths of the first gaps, at their start times, with their causes."),
        Metric::neutral("sleep_event_ns")
            .series()
            .doc("Lengths of the requested sleeps, at their start times."),
        Metric::lower("gaps_per_s").doc("Gaps per second."),
        Metric::lower("gap_longest_ns").doc("Maximum time between two clock reads."),
        Metric::lower("look_cost_ns").headline().doc("Mean time of an undisturbed clock read."),
        Metric::lower("look_floor_ns")
            .doc("99.9th percentile of the clock reads that are no gaps: detection limit of gaps."),
        Metric::lower("look_min_ns").doc("Minimum time of a clock read."),
        Metric::lower("asking_ratio")
            .share()
            .doc("Share of the window spent on asking the kernel for causes of gaps."),
        Metric::lower("involuntary_switches_per_s")
            .doc("Involuntary context switches of the loop per second."),
        Metric::lower("steal_ratio")
            .share()
            .doc("Share of all CPU time that the hypervisor gave to other guests."),
        Metric::lower("psi_cpu_some_ratio")
            .share()
            .doc("Share of the time in which some task of this machine waited for a CPU."),
        Metric::lower("throttled_ratio")
            .doc("Time throttled by the cgroup's CPU quota, summed over CPUs, per elapsed time."),
    ],
    overhead: "occupies every measured CPU; 1 µs per gap for its cause",
    source: "tight-loop CPU availability meters (rtla osnoise, hwlatdetect; Zhuang 2012, CPUBen)",
    ..Spec::about(Resource::Scheduler)
};
