//! Yields what it is told to: in the probe and in the simulator, to test what stands behind both.
use crate::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "null",
    summary: "Samples of a given value, to test the software behind a benchmark",
    params: &[
        Param::float("value", 100.0, 1e-9..=1e15).doc("True value of the samples."),
        Param::float("noise_ratio", 0.0, 0.0..=1.0)
            .doc("Standard deviation of the noise, relative to the value."),
        Param::count("samples", 1, 0..=1_000_000).doc("Number of samples."),
        Param::seed().doc("Random seed of the noise; 0 takes the clock."),
        Param::int("wait_ns", 0, 0..=3_600_000_000_000).doc("Delay before the first sample."),
        Param::choice(
            "failure",
            "none",
            &["none", "error", "lacks", "exit", "hang", "garbage", "truncated", "nan"],
        )
        .doc("Failure to simulate after the samples."),
    ],
    metrics: &[
        Metric::lower("null_ns").headline().doc("The value as a time."),
        Metric::higher("null_per_s").doc("The value as a rate."),
        Metric::lower("null_latency_ns").histogram().doc("Values of the trial as a histogram."),
    ],
    overhead: "none",
    source: "the null engine of fio, which exists to test fio itself",
    two_sided: true,
    ..Spec::about(Resource::None)
};
