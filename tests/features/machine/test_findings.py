"""Each fact of the fingerprint that is odd makes its finding, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from nephoscope.core.model import (
    Severity,
)
from stats.judging import GOOD, changed, judge, line

MACHINES = {
    "cpu_names_disagree": (
        changed(cpu__agree=False, cpu__disagreements=["model: cpuid '106', /proc/cpuinfo '85'"]),
        Severity.WARNING,
        "106",
    ),
    "cpu_models_differ": (
        changed(cpu__by_cpuinfo={"distinct_models": 2}),
        Severity.NOTICE,
        "2 different models",
    ),
    "cpu_quota": (changed(limits__cpu_quota_cpus=0.5), Severity.WARNING, "0.500 CPUs of the 2"),
    "cpu_set": (changed(topology__allowed_cpus=[1]), Severity.NOTICE, "1 of 2 online CPUs"),
    "memory_limit": (
        changed(limits__memory_limit_bytes=1 << 30),
        Severity.NOTICE,
        "1.00 GiB of 8.00 GiB",
    ),
    "swap_in_use": (changed(memory__swap_free_bytes=512 << 20), Severity.NOTICE, "512 MiB"),
    "steal_hidden": (
        changed(hypervisor={"name": "KVM"}, counters__steal=False),
        Severity.NOTICE,
        "does not report steal",
    ),
    "pressure_hidden": (changed(counters__pressure_cpu=None), Severity.INFO, "unavailable"),
    "clock_source": (changed(clock__source="hpet"), Severity.NOTICE, "'hpet'"),
    "huge_pages_off": (changed(memory__transparent_hugepage="never"), Severity.NOTICE, "off"),
    "siblings": (
        changed(topology__threads_per_core=2.0),
        Severity.INFO,
        "2 CPUs are hardware threads",
    ),
    "microcode_hidden": (changed(cpu__microcode="0x1"), Severity.INFO, "unavailable"),
    "virtualised": (
        changed(hypervisor={"name": "KVM", "signatures": ["KVMKVMKVM"]}),
        Severity.INFO,
        "KVM",
    ),
    "vulnerable": (
        changed(mitigations={"mds": "Vulnerable: no microcode", "l1tf": "Not affected"}),
        Severity.NOTICE,
        "vulnerable to mds",
    ),
    "steal": (changed(counters__steal_since_boot_ratio=0.05), Severity.NOTICE, "since boot"),
    "no_io_uring": (changed(abilities__io_uring=False), Severity.INFO, "io_uring"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_fact_of_the_machine_is_found_and_nothing_else(name: str) -> None:
    fingerprint, severity, words = MACHINES[name]
    found = judge(fingerprint)
    assert found[name].severity is severity
    assert words in found[name].sentence + " ".join(found[name].evidence)
    assert found[name].evidence
    # Being virtual goes with a hypervisor that hides steal.
    assert set(found) - {"virtualised"} <= {name}


def port(**facts_of_it: Any) -> dict[str, Any]:
    usual = {"name": "eth0", "virtual": False, "state": "up", "driver": "e1000e"}
    return changed(nics={"ports": [usual | facts_of_it]})


@pytest.mark.parametrize(
    ("speed", "duplex", "words"),
    [
        (10_000_000, "half", "10.0 Mbit/s, half duplex"),
        (10_000_000, "full", "10.0 Mbit/s"),
        (1_000_000_000, "half", "1.00 Gbit/s, half duplex"),
        (None, "half", "an unknown speed, half duplex"),
    ],
)
def test_a_slow_or_half_duplex_port_is_a_warning(
    speed: int | None, duplex: str, words: str
) -> None:
    found = judge(port(speed_bits_per_s=speed, duplex=duplex))
    assert found["slow_port"].severity is Severity.WARNING
    assert words in found["slow_port"].sentence


def test_ports_that_are_no_finding() -> None:
    assert judge(port(speed_bits_per_s=100_000_000, duplex="full")) == {}
    assert judge(port(speed_bits_per_s=10_000_000, state="down")) == {}
    assert judge(port(speed_bits_per_s=10_000_000, virtual=True)) == {}
    assert set(judge(port(speed_bits_per_s=None, duplex=None))) == {"unchecked"}


def test_limits_that_bind_nothing_are_no_findings() -> None:
    assert judge(changed(limits__cpu_quota_cpus=2.0)) == {}
    assert judge(changed(limits__memory_limit_bytes=16 << 30)) == {}
    assert judge(changed(memory__swap_free_bytes=(1 << 30) - (1 << 20))) == {}


def test_a_slow_clock_needs_its_whole_interval_above_the_bound() -> None:
    slow = line("sys.fingerprint", "clock_read_ns", 900)
    unsure = line("sys.fingerprint", "clock_read_ns", 105, half=0.1)
    assert "900 ns" in judge(GOOD, (slow,))["clock_cost"].sentence
    assert judge(GOOD, (unsure,)) == {}
