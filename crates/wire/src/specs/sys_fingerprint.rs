//! What a machine is: read by the probe, said by the simulator of the machine that it simulates.
use crate::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "sys.fingerprint",
    summary: "Description of the machine: CPU, memory, disks, network, kernel, limits",
    params: &[
        Param::switch("cloud_metadata", false)
            .doc("Query the cloud's link-local metadata service."),
        Param::text("metadata_address", "169.254.169.254:80")
            .doc("Address and port of the metadata service; link-local or loopback only."),
    ],
    metrics: &[
        Metric::lower("clock_read_ns").headline().doc("Cost of one read of the monotonic clock."),
        Metric::higher("available_cpus").doc(
            "CPUs that this process may keep busy: the allowed CPUs, or its CPU quota if lower.",
        ),
        Metric::higher("memory_total_bytes").doc("Memory that the kernel manages."),
        Metric::higher("nic_speed_bits_per_s")
            .doc("Line rate of a network port, if its driver reports it; factor nic."),
        Metric::document("fingerprint")
            .doc("All facts by section, with a reason for each missing one."),
    ],
    overhead: "some milliseconds of one CPU",
    source: "Linux kernel documentation (proc, sysfs, cgroups, KVM), Intel SDM, AMD APM",
    ..Spec::about(Resource::None)
};
