"""Findings that the fingerprint alone carries: what the machine says that it is."""

from __future__ import annotations

from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core import units
from nephoscope.core.estimate_text import estimate_text
from nephoscope.core.model import Finding, Severity
from nephoscope.stats import facts
from nephoscope.stats.target_evidence import (
    Answers,
    TargetEvidence,
    Unchecked,
    is_above,
    limit_lines,
)

_GOOD_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
_SLOW_CLOCK_NS = 100.0  # reading a good clock takes 20 to 50 ns; beyond 100 the kernel is entered
_SLOW_PORT_BITS_PER_S = 100e6
_USED_SWAP_BYTES = 16 * 1024**2  # less is what any idle system parks there


def cpu_names_disagree(case: TargetEvidence) -> Answers:
    """The cpuid instruction and /proc/cpuinfo describe different CPUs."""
    agree = facts.fact(case.fingerprint, "cpu.agree")
    if agree is False:
        differences = facts.items(case.fingerprint, "cpu.disagreements") or []
        yield Finding(
            "cpu_names_disagree",
            Severity.WARNING,
            "The cpuid instruction and /proc/cpuinfo name different CPUs.",
            limit_lines([str(difference) for difference in differences]),
            "Rely on the measured speeds; ask the provider whether the machine was migrated or "
            "its CPU is masked.",
        )
    elif agree is None and case.has_fingerprint:
        yield _missing(case, "cpu.agree", "Agreement of cpuid and /proc/cpuinfo")


def cpu_models_differ(case: TargetEvidence) -> Answers:
    """The CPUs of one machine are of different models."""
    models = facts.number(case.fingerprint, "cpu.by_cpuinfo.distinct_models")
    if models is not None and models > 1:
        yield Finding(
            "cpu_models_differ",
            Severity.NOTICE,
            f"This machine has CPUs of {models:.0f} different models.",
            ("/proc/cpuinfo lists different model names.",),
            "Pin latency-sensitive programs to CPUs of one model.",
        )


def slow_ports(case: TargetEvidence) -> Answers:
    """A network port that is slow or half duplex: a port at 10 Mb/s once cost a study its days."""
    ports = facts.items(case.fingerprint, "nics.ports")
    if ports is None:
        if case.has_fingerprint:
            yield _missing(case, "nics.ports", "Speed and duplex of the network interfaces")
        return
    for port in ports:
        if facts.fact(port, "virtual") is not True and facts.text(port, "state") != "down":
            yield from _port(case, port)


def _port(case: TargetEvidence, port: Any) -> Answers:
    name = facts.text(port, "name") or "?"
    speed, duplex = facts.number(port, "speed_bits_per_s"), facts.text(port, "duplex")
    slow = speed is not None and speed < _SLOW_PORT_BITS_PER_S
    if slow or duplex == "half":
        rate = "an unknown speed" if speed is None else units.format_value(speed, "bits_per_s")
        half = ", half duplex" if duplex == "half" else ""
        yield Finding(
            "slow_port",
            Severity.WARNING,
            f"Network interface {name} runs at {rate}{half}, which limits every transfer.",
            (f"driver {facts.text(port, 'driver') or 'unknown'}, duplex {duplex or 'unknown'}",),
            f"Run `ethtool {name}` and check autonegotiation on both ends, or ask the provider.",
        )
    elif speed is None:
        yield _missing(case, f"nics.{name}.speed_bits_per_s", f"Speed of network interface {name}")


def cpu_quota(case: TargetEvidence) -> Answers:
    """The control group may use less CPU time than its CPUs have."""
    quota = facts.number(case.fingerprint, "limits.cpu_quota_cpus")
    allowed = facts.items(case.fingerprint, "topology.allowed_cpus")
    if quota is None or (allowed is not None and quota >= len(allowed)):
        return
    of = "" if allowed is None else f" of the {len(allowed)} that it sees"
    yield Finding(
        "cpu_quota",
        Severity.WARNING,
        f"A cgroup quota limits this machine to {units.format_number(quota)} CPUs{of}; the "
        "kernel throttles threads that exceed it until the next period.",
        (
            (
                "quota of "
                f"{facts.text(case.fingerprint, 'limits.cpu_quota_path') or 'a hidden cgroup'}"
            ),
        ),
        "Raise the quota, or size thread pools to it; programs that count CPUs start too "
        "many threads.",
    )


def cpu_set(case: TargetEvidence) -> Answers:
    """Fewer CPUs may be used than are online."""
    allowed = facts.items(case.fingerprint, "topology.allowed_cpus")
    online = facts.items(case.fingerprint, "topology.online_cpus")
    if allowed is None or online is None or len(allowed) >= len(online):
        return
    yield Finding(
        "cpu_set",
        Severity.NOTICE,
        f"This process may run on {len(allowed)} of {len(online)} online CPUs.",
        (f"allowed: {allowed}", f"online: {online}"),
        "Check the cpuset of the cgroup and the CPU affinity of the parent process.",
    )


def memory_limit(case: TargetEvidence) -> Answers:
    """The control group may use less memory than the machine has."""
    limit = facts.number(case.fingerprint, "limits.memory_limit_bytes")
    total = facts.number(case.fingerprint, "memory.total_bytes")
    if limit is None or total is None or limit >= total:
        return
    yield Finding(
        "memory_limit",
        Severity.NOTICE,
        f"A cgroup limit allows {units.format_value(limit, 'bytes')} of "
        f"{units.format_value(total, 'bytes')} of memory; the kernel kills programs that "
        "exceed it.",
        ((f"limit of {facts.text(case.fingerprint, 'limits.memory_limit_path') or 'its cgroup'}"),),
        "Size caches and heaps to the limit, not to the output of `free`.",
    )


def swap_in_use(case: TargetEvidence) -> Answers:
    """Memory lies in swap."""
    total = facts.number(case.fingerprint, "memory.swap_total_bytes")
    free = facts.number(case.fingerprint, "memory.swap_free_bytes")
    if total is None or free is None or total - free < _USED_SWAP_BYTES:
        return
    yield Finding(
        "swap_in_use",
        Severity.NOTICE,
        f"{units.format_value(total - free, 'bytes')} of memory were swapped out at the "
        "start of the run.",
        (f"swap space: {units.format_value(total, 'bytes')}",),
        "Find the cause of the memory shortage (`vmstat 1`); access to swapped-out memory is slow.",
    )


def steal_hidden(case: TargetEvidence) -> Answers:
    """A virtual machine that would not notice a theft of its CPU time."""
    if facts.is_virtual(case.fingerprint) is not True:
        return
    if facts.fact(case.fingerprint, "counters.steal") is False:
        yield Finding(
            "steal_hidden",
            Severity.NOTICE,
            "The hypervisor does not report steal time; CPU time that it gives to other "
            "machines appears as unexplained gaps.",
            (facts.reason(case.fingerprint, "counters.steal_since_boot_ratio"),),
            "Judge interference by scheduling gaps and repeated runs, not by a steal time of 0.",
        )


def pressure_hidden(case: TargetEvidence) -> Answers:
    """The kernel does not account for waiting."""
    known = facts.fact(case.fingerprint, "counters")
    if not isinstance(known, dict) or facts.fact(case.fingerprint, "counters.pressure_cpu") is True:
        return
    yield Finding(
        "pressure_hidden",
        Severity.INFO,
        "Pressure stall information is unavailable, so waits for CPU, memory and disk "
        "cannot be attributed.",
        (facts.reason(case.fingerprint, "counters.pressure_cpu"),),
        "Boot with `psi=1` if you control the kernel command line.",
    )


def clock_source(case: TargetEvidence) -> Answers:
    """A clock source that is not the CPU's own counter."""
    source = facts.text(case.fingerprint, "clock.source")
    if source is None:
        if case.has_fingerprint:
            yield _missing(case, "clock.source", "Clock source")
        return
    if source not in _GOOD_CLOCKS:
        offered = facts.items(case.fingerprint, "clock.available_sources") or []
        yield Finding(
            "clock_source",
            Severity.NOTICE,
            f"The kernel uses the clock source '{source}' instead of the CPU's time-stamp "
            "counter, so clock reads are slow.",
            (f"available: {', '.join(str(word) for word in offered) or 'unknown'}",),
            "Run `dmesg | grep -i tsc` for the reason; write tsc to current_clocksource if it "
            "is available.",
        )


def clock_cost(case: TargetEvidence) -> Answers:
    """Reading the clock takes long, whatever its name."""
    for metric in case.of(instruments.FINGERPRINT, "clock_read_ns"):
        if is_above(metric.estimate, _SLOW_CLOCK_NS):
            source = facts.text(case.fingerprint, "clock.source") or "unknown"
            yield Finding(
                "clock_cost",
                Severity.NOTICE,
                f"A clock read takes {estimate_text(metric.estimate)}, which slows programs that "
                "read the clock often and limits the resolution of short measurements.",
                (f"clock source {source}; usual: 20 to 50 ns",),
                "Check the clock source; a sandbox that intercepts system calls has the same "
                "effect.",
            )


def vulnerable(case: TargetEvidence) -> Answers:
    """The kernel calls itself vulnerable to a flaw of the CPU."""
    states = facts.fact(case.fingerprint, "mitigations")
    if not isinstance(states, dict) or not states:
        return
    if all(state is None for state in states.values()):
        yield _missing(case, "mitigations.known", "Mitigations of CPU vulnerabilities")
        return
    open_ones = {
        name: state for name, state in states.items() if str(state).lower().startswith("vulnerable")
    }
    if not open_ones:
        return
    flag = facts.text(case.fingerprint, "kernel.boot_flags.mitigations")
    names = ", ".join(sorted(open_ones))
    yield Finding(
        "vulnerable",
        Severity.NOTICE,
        f"The kernel reports that this machine is vulnerable to {names}.",
        (
            *limit_lines([f"{name}: {state}" for name, state in sorted(open_ones.items())]),
            *([f"booted with mitigations={flag}"] if flag else []),
        ),
        "Update microcode or kernel before running untrusted code; mitigations may reduce speed.",
    )


def huge_pages_off(case: TargetEvidence) -> Answers:
    """Transparent huge pages are off."""
    if facts.text(case.fingerprint, "memory.transparent_hugepage") == "never":
        yield Finding(
            "huge_pages_off",
            Severity.NOTICE,
            "Transparent huge pages are off, so programs with large working sets spend more "
            "time on address translation.",
            ("/sys/kernel/mm/transparent_hugepage/enabled says never",),
            "Compare memory latency with huge and small pages, then set transparent huge pages "
            "to madvise.",
        )


def siblings(case: TargetEvidence) -> Answers:
    """Several CPUs are threads of one core."""
    threads = facts.number(case.fingerprint, "topology.threads_per_core")
    if threads is not None and threads > 1:
        cores = facts.number(case.fingerprint, "topology.cores")
        of = "" if cores is None else f" ({cores:.0f} core{('' if cores == 1 else 's')} in total)"
        yield Finding(
            "siblings",
            Severity.INFO,
            f"{threads:.0f} CPUs are hardware threads of one core{of}; together they do less "
            "than twice the work of one.",
            (f"SMT control: {facts.text(case.fingerprint, 'topology.smt') or 'unknown'}",),
            "Plan capacity from the scaling curve, not from the number of CPUs.",
        )


def microcode_hidden(case: TargetEvidence) -> Answers:
    """The microcode's version is not to be had."""
    if not isinstance(facts.fact(case.fingerprint, "cpu"), dict):
        return
    code = facts.text(case.fingerprint, "cpu.microcode")
    # KVM invents 0x1 and 0x1000065 for its guests, Xen and others all ones.
    if code is None or code.lower() in ("0x0", "0x1", "0x1000065", "0xffffffff"):
        why = facts.reason(case.fingerprint, "cpu.microcode")
        yield Finding(
            "microcode_hidden",
            Severity.INFO,
            "The microcode version of the CPU is unavailable.",
            (f"reported revision {code} is a placeholder of hypervisors" if code else why,),
        )


def virtualised(case: TargetEvidence) -> Answers:
    """The machine runs under a hypervisor."""
    virtual = facts.is_virtual(case.fingerprint)
    if virtual is None and case.has_fingerprint:
        yield _missing(case, "hypervisor.name", "Presence of a hypervisor")
    if not virtual:
        return
    name = facts.text(case.fingerprint, "hypervisor.name")
    firmware = [
        word
        for part in ("sys_vendor", "product_name")
        if (word := facts.text(case.fingerprint, f"hypervisor.{part}"))
    ]
    signatures = facts.items(case.fingerprint, "hypervisor.signatures") or []
    yield Finding(
        "virtualised",
        Severity.INFO,
        f"This is a virtual machine; its hypervisor is {name or 'unnamed'}.",
        (
            f"cpuid signatures: {', '.join(str(word) for word in signatures) or 'none'}",
            f"firmware: {' '.join(firmware) or 'not shown'}",
        ),
    )


def _missing(case: TargetEvidence, fact: str, what: str) -> Unchecked:
    return Unchecked(what, facts.reason(case.fingerprint, fact))


LIMIT_RULES = (cpu_names_disagree, cpu_models_differ, slow_ports, cpu_quota, cpu_set, memory_limit)
CLOCK_RULES = (swap_in_use, steal_hidden, pressure_hidden, clock_source, clock_cost)
PROPERTY_RULES = (vulnerable, huge_pages_off, siblings, microcode_hidden, virtualised)
