//! What a machine is: read by the probe, said by the simulator of the machine that it simulates.
use crate::spec::{Metric, Param, Spec};

pub const SPEC: Spec = Spec {
    id: "sys.fingerprint",
    summary: "What this machine is: CPU, memory, disks, ports, kernel, limits",
    params: &[
        Param::switch("cloud_metadata", false)
            .doc("Whether to ask the cloud's link-local metadata service."),
        Param::text("metadata_address", "169.254.169.254:80")
            .doc("Address and port of the metadata service; link-local or loopback only."),
    ],
    metrics: &[
        Metric::lower("clock_read_ns")
            .headline()
            .doc("Cost of one reading of the monotonic clock."),
        Metric::higher("available_cpus")
            .doc("CPUs that this process may keep busy: allowed ones, or the quota if less."),
        Metric::higher("memory_total_bytes").doc("Memory that the kernel manages."),
        Metric::higher("nic_speed_bits_per_s")
            .doc("Line rate of a network port, where its driver tells it; factor nic."),
        Metric::document("fingerprint")
            .doc("All facts, by section, with a reason for each that is missing."),
    ],
    overhead: "some milliseconds of one CPU",
    source: "Linux kernel documentation (proc, sysfs, cgroups, KVM), Intel SDM, AMD APM",
    ..Spec::EMPTY
};
