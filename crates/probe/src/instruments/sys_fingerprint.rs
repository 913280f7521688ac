//! # What it measures
//! What this machine is, as seen from inside it: the CPU by the `cpuid` instruction and by
//! `/proc/cpuinfo` and whether the two agree, microcode, caches, topology, hypervisor, clock source
//! and the cost of a clock reading, kernel and mitigations, memory, swap and huge pages, disks and
//! file systems, network ports with driver, speed and duplex, control group limits, which counters
//! can be believed, and what this process may do. The cloud's own metadata only on request.
//!
//! # How
//! It reads small files of `/proc`, `/sys` and `/etc`, a few system calls and the `cpuid`
//! instruction; nothing is executed and nothing needs root. The document has one object per
//! section. A fact that this machine does not show is null, and `missing` says why
//! (`{"fact": "nics.eth0.speed_bits_per_s", "reason": "the driver does not tell the speed"}`).
//!
//! `clock_read_ns` is the median of 32 batches of 256 readings of `CLOCK_MONOTONIC`.
//! `available_cpus` is the number of CPUs that this process may run on, or its CPU quota where that
//! is less; quotas are searched in the own control group and all visible ancestors, version 1 and 2.
//! The hypervisor is `none` only where the CPU's hypervisor bit is clear. Steal counts as visible
//! when one tick of it was ever seen, on bare metal, or where the hypervisor announces it.
//!
//! With `cloud_metadata` the link-local metadata address is asked, at most 300 ms for each of EC2
//! (IMDSv2), Google and Azure: instance type, region, zone, image, and a hash of the instance
//! identifier. Credentials and user data are never asked for. `machine_id_hash` is the first 16
//! digits of a salted SHA-256 of the machine identifier, so that runs of one machine can be
//! recognised while the identifier stays here; where the machine has none, of the kernel's identifier
//! of this boot, which holds until the next.
//!
//! # Known truth
//! A control group made by the test with a quota of 50 ms in 100 ms shows 0.5 CPUs; the CPUs equal
//! `sched_getaffinity`, the memory equals `sysinfo(2)`, the capabilities equal `capget(2)`, the size
//! of the root file system equals `df`. Texts captured from other machines (virtio and 10 Mb/s
//! half-duplex ports, control group layouts, Intel, AMD and Arm CPUs, hidden `/proc`) have known
//! answers.
//!
//! # Cross-check
//! `lscpu`, `free -b`, `lsblk -b`, `ethtool`, `systemd-detect-virt`.
//!
//! # Overhead
//! Some milliseconds of one CPU; no load before or after.
//!
//! # Caveats
//! Under a hypervisor `cpuid` says what the hypervisor wants it to say. It differs from
//! `/proc/cpuinfo` after a live migration to another CPU model, or where a container shows an
//! invented file. Images that were copied with their machine identifier share one hash. A disk's
//! `rotational` flag and a virtual port's speed are what the driver claims, not what was measured.
//! Limits set above the visible part of the control group tree cannot be seen from inside.
use crate::error::ProbeError;
use crate::files::Files;
use crate::machine::{self, cloud, oddities};
use crate::trial::factors;
use crate::trial::Trial;
pub use nephoscope_wire::specs::sys_fingerprint::SPEC;
use serde_json::Value;

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    // Checked even when unused: a wrong address is a mistake today and not next week.
    let address = cloud::address(trial.params.text("metadata_address"))?;
    let asked = trial.params.bool("cloud_metadata");
    trial.prepared()?;
    let cloud = if asked { cloud::ask(address) } else { cloud::not_asked() };
    let document = machine::document(&Files::machine(), cloud);
    let scalars = [
        ("clock_read_ns", &document["clock"]["read_median_ns"]),
        ("available_cpus", &document["limits"]["available_cpus"]),
        ("memory_total_bytes", &document["memory"]["total_bytes"]),
    ];
    for (metric, value) in scalars {
        if let Some(value) = value.as_f64() {
            trial.out.emit(metric, value, factors! {})?;
        }
    }
    for port in document["nics"]["ports"].as_array().into_iter().flatten() {
        if let Some(speed) = port["speed_bits_per_s"].as_f64() {
            trial.out.emit("nic_speed_bits_per_s", speed, factors! {"nic": nic(port)})?;
        }
    }
    for sentence in oddities::sentences(&document) {
        trial.out.note(sentence);
    }
    trial.out.emit_document("fingerprint", document)
}

fn nic(port: &Value) -> &str {
    port["name"].as_str().unwrap_or_default()
}
