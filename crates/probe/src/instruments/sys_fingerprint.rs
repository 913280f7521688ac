//! # What it measures
//! The machine as seen from inside: the CPU by `cpuid` and by `/proc/cpuinfo` and whether they
//! agree, microcode, caches, topology, hypervisor, clock source and the cost of a clock read,
//! kernel and mitigations, memory, swap and huge pages, disks and file systems, network ports,
//! cgroup limits, available counters, and the rights of this process. The cloud's metadata only on
//! request.
//!
//! # How
//! It reads small files of `/proc`, `/sys` and `/etc`, and uses some system calls and `cpuid`; it
//! executes nothing and needs no root. The document has one object per section; a fact that the
//! machine does not show is null, and `missing` has the reason (`{"fact":
//! "nics.eth0.speed_bits_per_s", "reason": "the driver does not tell the speed"}`).
//!
//! `clock_read_ns` is the median of 32 batches of 256 reads of `CLOCK_MONOTONIC`. `available_cpus`
//! is the number of allowed CPUs, or the lowest CPU quota of the cgroup and its visible ancestors
//! (versions 1 and 2). The hypervisor is `none` only if the CPU's hypervisor bit is clear. Steal is
//! visible if a tick of it was ever seen, on bare metal, or if the hypervisor announces it.
//!
//! With `cloud_metadata` it asks the link-local metadata address of EC2 (IMDSv2), Google and Azure,
//! at most 300 ms each: instance type, region, zone, image, and a hash of the instance identifier;
//! never credentials or user data. `machine_id_hash` is the first 16 digits of a salted SHA-256 of
//! the machine identifier, or of the boot identifier if there is none: runs of one machine are
//! recognised while the identifier stays here.
//!
//! # Known truth
//! A cgroup with a quota of 50 ms in 100 ms shows 0.5 CPUs; CPUs, memory, capabilities and the size
//! of the root file system equal `sched_getaffinity`, `sysinfo(2)`, `capget(2)` and `df`. Texts
//! captured from other machines (ports, cgroup layouts, Intel, AMD and Arm CPUs, hidden `/proc`)
//! have known answers.
//!
//! # Cross-check
//! `lscpu`, `free -b`, `lsblk -b`, `ethtool`, `systemd-detect-virt`.
//!
//! # Overhead
//! Some milliseconds of one CPU.
//!
//! # Caveats
//! `cpuid` shows what the hypervisor chooses. It differs from `/proc/cpuinfo` after a live
//! migration to another CPU model, or if a container shows an invented file. Images copied with
//! their machine identifier share a hash. `rotational` and a virtual port's speed are the driver's
//! claims. Limits above the visible part of the cgroup tree are invisible.
use crate::error::Result;
use crate::machine::{self, cloud, inconsistencies};
use crate::trial::factors;
use crate::trial::Trial;
use nephoscope_linux::files::Files;
pub use nephoscope_wire::specs::sys_fingerprint::SPEC;
use serde_json::Value;

pub fn run(trial: &mut Trial) -> Result<()> {
    // Checked even when unused: a wrong address is a mistake today and not next week.
    let address = cloud::address(trial.params.text("metadata_address"))?;
    let is_requested = trial.params.bool("cloud_metadata");
    trial.prepared()?;
    let cloud = if is_requested { cloud::ask(address) } else { cloud::not_requested() };
    let document = machine::document(&Files::machine(), cloud);
    let scalars = [
        ("clock_read_ns", document["clock"]["read_median_ns"].as_f64()),
        ("available_cpus", document["limits"]["available_cpus"].as_f64()),
        ("memory_total_bytes", document["memory"]["total_bytes"].as_f64()),
    ];
    trial.out.emit_known(&scalars, &factors! {})?;
    for port in document["nics"]["ports"].as_array().into_iter().flatten() {
        if let Some(speed) = port["speed_bits_per_s"].as_f64() {
            trial.out.emit("nic_speed_bits_per_s", speed, factors! {"nic": nic(port)})?;
        }
    }
    for sentence in inconsistencies::sentences(&document) {
        trial.out.note(sentence);
    }
    trial.out.emit_document("fingerprint", document)
}

fn nic(port: &Value) -> &str {
    port["name"].as_str().unwrap_or_default()
}
