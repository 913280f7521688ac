//! Yields what it is told to: in the probe and in the simulator, to test what stands behind both.
use crate::spec::{Better, Kind, Metric, Param, Shape, Spec, Unit};

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "null",
    summary: "Yields what it is told to, to test everything else",
    params: &[
        Param {
            id: "value",
            unit: Unit::None,
            kind: Kind::Float { default: 100.0, min: 1e-9, max: 1e15 },
            doc: "The true value.",
        },
        Param {
            id: "noise_ratio",
            unit: Unit::Ratio,
            kind: Kind::Float { default: 0.0, min: 0.0, max: 1.0 },
            doc: "Standard deviation of the noise, relative to the value.",
        },
        Param {
            id: "samples",
            unit: Unit::Count,
            kind: Kind::Int { default: 1, min: 0, max: 1_000_000 },
            doc: "How many values to yield.",
        },
        Param {
            id: "seed",
            unit: Unit::None,
            kind: Kind::Int { default: 0, min: 0, max: i64::MAX },
            doc: "Seed of the noise; 0 takes the clock.",
        },
        Param {
            id: "wait_ns",
            unit: Unit::Ns,
            kind: Kind::Int { default: 0, min: 0, max: 3_600_000_000_000 },
            doc: "How long to wait before the first value.",
        },
        Param {
            id: "failure",
            unit: Unit::None,
            kind: Kind::Choice {
                default: "none",
                choices: &["none", "error", "lacks", "exit", "hang", "garbage", "truncated", "nan"],
            },
            doc: "The way to fail after the samples.",
        },
    ],
    metrics: &[
        Metric {
            id: "null_ns",
            unit: Unit::Ns,
            better: Better::Lower,
            shape: Shape::Scalar,
            headline: true,
            doc: "The value, as if it were a time.",
        },
        Metric {
            id: "null_per_s",
            unit: Unit::PerS,
            better: Better::Higher,
            shape: Shape::Scalar,
            headline: false,
            doc: "The value, as if it were a rate.",
        },
        Metric {
            id: "null_latency_ns",
            unit: Unit::Ns,
            better: Better::Lower,
            shape: Shape::Histogram,
            headline: false,
            doc: "The values of the trial as a histogram.",
        },
    ],
    overhead: "none",
    source: "the null engine of fio, which exists to test fio itself",
    two_sided: true,
    load: false,
};
