//! What a machine is: read by the probe, said by the simulator of the machine that it simulates.
use crate::spec::{Better, Kind, Metric, Param, Shape, Spec, Unit};

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "sys.fingerprint",
    summary: "What this machine is: CPU, memory, disks, ports, kernel, limits",
    params: &[
        Param {
            id: "cloud_metadata",
            unit: Unit::None,
            kind: Kind::Bool { default: false },
            doc: "Whether to ask the cloud's link-local metadata service.",
        },
        Param {
            id: "metadata_address",
            unit: Unit::None,
            kind: Kind::Text { default: "169.254.169.254:80" },
            doc: "Address and port of the metadata service; link-local or loopback only.",
        },
    ],
    metrics: &[
        Metric {
            id: "clock_read_ns",
            unit: Unit::Ns,
            better: Better::Lower,
            shape: Shape::Scalar,
            headline: true,
            doc: "Cost of one reading of the monotonic clock.",
        },
        Metric {
            id: "available_cpus",
            unit: Unit::Cpus,
            better: Better::Higher,
            shape: Shape::Scalar,
            headline: false,
            doc: "CPUs that this process may keep busy: allowed ones, or the quota if less.",
        },
        Metric {
            id: "memory_total_bytes",
            unit: Unit::Bytes,
            better: Better::Higher,
            shape: Shape::Scalar,
            headline: false,
            doc: "Memory that the kernel manages.",
        },
        Metric {
            id: "nic_speed_bits_per_s",
            unit: Unit::BitsPerS,
            better: Better::Higher,
            shape: Shape::Scalar,
            headline: false,
            doc: "Line rate of a network port, where its driver tells it; factor nic.",
        },
        Metric {
            id: "fingerprint",
            unit: Unit::None,
            better: Better::None,
            shape: Shape::Document,
            headline: false,
            doc: "All facts, by section, with a reason for each that is missing.",
        },
    ],
    overhead: "some milliseconds of one CPU",
    source: "Linux kernel documentation (proc, sysfs, cgroups, KVM), Intel SDM, AMD APM",
    two_sided: false,
    load: false,
};
