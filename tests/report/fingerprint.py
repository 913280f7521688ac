"""A fingerprint as sys.fingerprint writes it, of a machine that does not exist."""

from __future__ import annotations

from typing import Any


def fingerprint() -> dict[str, Any]:
    return {
        "schema": 1,
        "identity": {"machine_id_hash": "0123456789abcdef"},
        "cpu": {
            "model": "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz",
            "by_cpuid": {
                "vendor": "GenuineIntel",
                "brand": "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz",
                "family": 6,
                "model": 85,
                "stepping": 7,
            },
            "by_cpuinfo": {
                "vendor": "GenuineIntel",
                "model_name": "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz",
                "family": 6,
                "model": 85,
                "stepping": 7,
                "distinct_models": 1,
            },
            "agree": True,
            "disagreements": [],
            "microcode": "0x5003901",
            "features": ["aes", "avx2", "avx512f"],
            "frequency_hz": 2.49e9,
            "governor": None,
            "frequency_driver": None,
            "frequency_min_hz": None,
            "frequency_max_hz": None,
            "boost": None,
        },
        "caches": {
            "last_level_bytes": 36608 << 10,
            "by_sysfs": [
                _cache(1, "data", 32 << 10, 2),
                _cache(1, "instruction", 32 << 10, 2),
                _cache(2, "unified", 1 << 20, 2),
                _cache(3, "unified", 36608 << 10, 2),
            ],
            "by_cpuid": None,
        },
        "topology": {
            "sockets": 1,
            "cores": 1,
            "threads_per_core": 2.0,
            "online_cpus": [0, 1],
            "allowed_cpus": [0, 1],
            "isolated_cpus": [],
            "numa_nodes": [{"node": 0, "cpus": [0, 1], "memory_bytes": 8_200_000_000}],
            "smt": "on",
        },
        "hypervisor": {
            "name": "KVM",
            "present": True,
            "signatures": ["KVMKVMKVM"],
            "sys_vendor": "Amazon EC2",
            "product_name": "m5.large",
            "bios_vendor": "Amazon EC2",
        },
        "clock": {
            "source": "kvm-clock",
            "available_sources": ["kvm-clock", "tsc", "acpi_pm"],
            "read_min_ns": 20.9,
            "read_median_ns": 21.4,
            "tsc_invariant": True,
        },
        "kernel": {
            "release": "6.1.0-18-cloud-amd64",
            "version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)",
            "arch": "x86_64",
            "boot_flags": {},
        },
        "mitigations": {
            "spectre_v1": "Mitigation: usercopy/swapgs barriers and __user pointer sanitization",
            "meltdown": "Not affected",
            "mds": "Vulnerable: Clear CPU buffers attempted, no microcode; SMT Host state unknown",
        },
        "memory": {
            "total_bytes": 8_202_000_000,
            "available_bytes": 7_300_000_000,
            "swap_total_bytes": 0,
            "swap_free_bytes": 0,
            "swap_devices": [],
            "swappiness": 60,
            "page_bytes": 4096,
            "huge_pages": [{"size_bytes": 2 << 20, "total": 0, "free": 0}],
            "transparent_hugepage": "always",
            "transparent_hugepage_defrag": "madvise",
            "page_merging": None,
        },
        "disks": {
            "devices": [
                {
                    "name": "nvme0n1",
                    "kind": "nvme",
                    "model": "Amazon Elastic Block Store",
                    "vendor": None,
                    "driver": "nvme",
                    "size_bytes": 21_474_836_480,
                    "rotational": False,
                    "scheduler": "none",
                    "queue_depth": 127,
                }
            ],
            "mounts": [
                {
                    "role": "root",
                    "mount_point": "/",
                    "file_system": "ext4",
                    "device": "/dev/nvme0n1p1",
                    "size_bytes": 20_900_000_000,
                    "free_bytes": 17_000_000_000,
                    "read_only": False,
                }
            ],
        },
        "nics": {
            "ports": [
                {
                    "name": "ens5",
                    "virtual": False,
                    "driver": "ena",
                    "state": "up",
                    "speed_bits_per_s": None,
                    "duplex": None,
                    "mtu_bytes": 9001,
                }
            ]
        },
        "limits": {
            "cgroup_version": "v2",
            "available_cpus": 2.0,
            "cpu_quota_cpus": None,
            "cpu_quota_path": None,
            "memory_limit_bytes": None,
            "memory_limit_path": None,
            "cpuset": [0, 1],
            "cpuset_path": "/sys/fs/cgroup",
        },
        "counters": {
            "steal": True,
            "steal_told_by_hypervisor": True,
            "steal_since_boot_ratio": 0.0021,
            "pressure_cpu": None,
            "pressure_memory": None,
            "pressure_io": None,
            "throttling": True,
            "perf_event_paranoid": 3,
        },
        "abilities": {"root": False, "io_uring": True, "io_uring_entries": 4},
        "os": {"id": "debian", "pretty_name": "Debian GNU/Linux 12 (bookworm)"},
        "container": {"hints": [], "first_process_readable": True},
        "cloud": {"asked": False, "provider": None},
        "missing": [
            {"fact": "cpu.governor", "reason": "no cpufreq policy is shown"},
            {
                "fact": "nics.ens5.speed_bits_per_s",
                "reason": "the driver does not tell the speed",
            },
            {"fact": "limits.cpu_quota_cpus", "reason": "no limit"},
            {"fact": "limits.memory_limit_bytes", "reason": "no limit"},
            {"fact": "counters.pressure_cpu", "reason": "/proc/pressure/cpu does not exist"},
        ],
    }


def _cache(level: int, kind: str, size: int, shared: int) -> dict[str, Any]:
    return {
        "level": level,
        "kind": kind,
        "size_bytes": size,
        "line_bytes": 64,
        "ways": 8,
        "shared_by": shared,
        "instances": 1,
    }
