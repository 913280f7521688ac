//! Share of the CPU that a loop gets: measured by the probe, simulated by the simulator.
use crate::spec::{Metric, Param, Spec};

pub const SPEC: Spec = Spec {
    id: "cpu.gaps",
    summary: "Share of the CPU that a tight loop gets, and its scheduling gaps",
    params: &[
        Param::int("duration_ns", 1_000_000_000, 10_000_000..=3_600_000_000_000)
            .doc("How long each loop looks."),
        Param::int("threshold_ns", 100_000, 100..=1_000_000_000)
            .doc("Two looks at least this far apart enclose a gap."),
        Param::ints("cpus", &[], 0..=1023)
            .doc("The CPUs to measure; none given means all that this process may use."),
        Param::count("cpus_max", 0, 0..=1024)
            .doc("At most so many of them, the first; 0 means all."),
        Param::count("processes_per_cpu", 1, 1..=16)
            .doc("Loops on each CPU; above 1 they are processes that contend for it."),
        Param::count("events_max", 1000, 0..=1_000_000)
            .doc("Gaps kept one by one per loop; the histograms hold all."),
        Param::int("sleep_ns", 0, 0..=60_000_000_000)
            .doc("How long each loop sleeps now and then; 0 means that it is always busy."),
        Param::int("busy_ns", 500_000_000, 1_000_000..=3_600_000_000_000)
            .doc("How long it is busy between two sleeps."),
        Param::switch("pin", true).doc("Whether each loop is pinned to its CPU."),
        Param::choice("clock", "auto", &["auto", "tsc", "monotonic"])
            .doc("The clock to look at; auto takes the time-stamp counter where it is a clock."),
    ],
    metrics: &[
        Metric::higher("cpu_share_ratio")
            .headline()
            .doc("Share of its CPU that a loop had: 1 minus its gaps over the window."),
        Metric::higher("obtained_cpus").headline().doc("CPUs that all loops together had."),
        Metric::higher("obtained_cycles_cpus").doc(
            "CPUs that all loops had over whole cycles of the one with most long gaps; from three.",
        ),
        Metric::higher("cpu_share_cycles_ratio").doc(
            "The share over whole cycles between the first and the last long gap; from three on.",
        ),
        Metric::higher("thread_cpu_ratio")
            .doc("CPU time of the loop over elapsed time, as the kernel counts it."),
        Metric::lower("gap_length_ns").histogram().doc("Lengths of all gaps."),
        Metric::higher("run_length_ns")
            .histogram()
            .doc("Lengths of the undisturbed runs between two gaps."),
        Metric::neutral("gap_period_ns")
            .histogram()
            .doc("Times from the start of a gap to the start of the next."),
        Metric::lower("gap_event_ns")
            .series()
            .doc("Lengths of the first gaps, each at its start and with its cause."),
        Metric::neutral("sleep_event_ns")
            .series()
            .doc("Lengths of the sleeps that it was told, each at its start."),
        Metric::lower("gaps_per_s").doc("Gaps per second of the window."),
        Metric::lower("gap_longest_ns")
            .doc("Longest time between two looks, whether a gap or not."),
        Metric::lower("look_cost_ns")
            .headline()
            .doc("Mean time of one look while nothing disturbed."),
        Metric::lower("look_floor_ns")
            .doc("99.9th percentile of the looks that are no gaps: no gap can be seen below it."),
        Metric::lower("look_min_ns").doc("Shortest look."),
        Metric::lower("asking_ratio")
            .doc("Share of the window that went into asking the kernel for causes."),
        Metric::lower("involuntary_switches_per_s")
            .doc("Involuntary context switches of the loop per second."),
        Metric::lower("steal_ratio")
            .doc("Share of all CPU time that the hypervisor gave to others meanwhile."),
        Metric::lower("psi_cpu_some_ratio").doc(
            "Share of the time in which some task of this machine waited for a CPU meanwhile.",
        ),
        Metric::lower("throttled_ratio").doc(
            "Time that the quota of the control group stopped it, summed over CPUs, per time.",
        ),
    ],
    overhead: "occupies every measured CPU for the duration; 1 µs a gap for its cause",
    source: "tight-loop CPU availability meters (rtla osnoise, hwlatdetect; Zhuang 2012, CPUBen)",
    ..Spec::EMPTY
};
