"""What a host is given of the CPUs: which ones, a weight, a cap, a reservation."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nephoscope.core.errors import Lacking, UsageError
from nephoscope.core.programs import find_launcher
from nephoscope.measure.lab.limits.cgroups import HostCgroup, put
from nephoscope.measure.lab.topology import CpuSpec

PERIOD_US = 100_000
"""The kernel's own default period of CFS bandwidth."""


def apply(group: HostCgroup, spec: CpuSpec) -> None:
    """Sets CPUs, weight and cap of a host, and reads them back.

    Raises UsageError for a CPU that this machine has not, Lacking for what this kernel cannot do.
    """
    set_cpus(group, spec.cpus)
    set_weight(group, spec.weight)
    set_cap(group, spec.cap, round(spec.cap_period_s * 1e6))


def set_cpus(group: HostCgroup, cpus: Iterable[int]) -> None:
    """Sets which CPUs it may run on; all of the group above when none is named."""
    file = group.file("cpuset", "cpuset.cpus", "cpuset.cpus")
    have = machine_cpus()
    wanted = sorted(set(cpus)) or have
    if missing := sorted(set(wanted) - set(have)):
        raise UsageError(
            f"This machine has no CPU {text_of(missing)}.", f"Name some of: {text_of(have)}."
        )
    put(file, text_of(wanted), lambda text: numbers_of(text) == wanted)


def set_weight(group: HostCgroup, weight: int) -> None:
    """Sets its share beside other groups.

    Version 1 counts shares, 1024 where version 2 has the weight 100: the ratio of two weights is
    the ratio of their shares, to the next whole number.
    """
    number = weight if group.version("cpu") == 2 else shares_of(weight)
    put(group.file("cpu", "cpu.shares", "cpu.weight"), str(number))


def shares_of(weight: int) -> int:
    """Version 1 shares of a version 2 weight: 100 is 1024; at least 2, the kernel's least."""
    return max(2, round(weight * 1024 / 100))


def set_cap(group: HostCgroup, cap_cpus: float | None, period_us: int) -> float | None:
    """Most CPU time in each period, in CPUs; returns what the kernel has."""
    quota_us = None if cap_cpus is None else round(cap_cpus * period_us)
    if group.version("cpu") == 2:
        text = f"{'max' if quota_us is None else quota_us} {period_us}"
        put(group.file("cpu", "", "cpu.max"), text)
    else:
        quota = group.file("cpu", "cpu.cfs_quota_us", "")
        # The kernel compares quota and period on every write: without a quota the period is free.
        put(quota, "-1")
        put(quota.with_name("cpu.cfs_period_us"), str(period_us))
        if quota_us is not None:
            put(quota, str(quota_us))
    return None if quota_us is None else quota_us / period_us


def check_reservation(group: HostCgroup, cpus: Iterable[int] = ()) -> None:
    """Lacking when the kernel would refuse a reservation beside these CPUs.

    SCHED_DEADLINE admits a thread only if it may run on every CPU of its scheduling domain. A
    cpuset has a domain of its own when it is exclusive: in version 2 a partition, in version 1 only
    after the root cpuset has given up balancing, which would change the whole machine.
    """
    wanted, have = sorted(set(cpus)), machine_cpus()
    if not wanted or wanted == have:
        return
    if group.version("cpuset") == 2:
        partition = group.file("cpuset", "", "cpuset.cpus.partition")
        if partition.exists() and partition.read_text().strip() in ("root", "isolated"):
            return
        raise Lacking(
            f"The kernel takes no reservation in a cpuset of CPUs {text_of(wanted)} that is no "
            "partition.",
            "Leave `cpus` out beside `reservation`, or make the group a cpuset partition.",
        )
    raise Lacking(
        f"The kernel takes no reservation in a cpuset of CPUs {text_of(wanted)}: with control "
        "groups of version 1 that needs a root cpuset without load balancing.",
        "Leave `cpus` out beside `reservation`.",
    )


def reservation_supervisor(folder: Path, slice_ns: int, period_ns: int) -> list[str]:
    """The command that keeps every thread of a group's folder under a reservation until SIGTERM.

    folder: the last one that a program joins (`Group.folders[-1]`), so that its limits are all
    there before its reservation is.
    """
    words = [str(find_launcher()), "reserve", "--cgroup", str(folder)]
    return [*words, "--slice", str(slice_ns), "--period", str(period_ns)]


def machine_cpus() -> list[int]:
    """Numbers of the CPUs that are online."""
    online = Path("/sys/devices/system/cpu/online")
    try:
        return numbers_of(online.read_text(encoding="ascii"))
    except OSError:
        return list(range(os.cpu_count() or 1))


def numbers_of(text: str) -> list[int]:
    """[0, 1, 3] of '0-1,3', the kernel's list format."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        if part:
            low, _, high = part.partition("-")
            numbers += range(int(low), int(high or low) + 1)
    return numbers


def text_of(numbers: Iterable[int]) -> str:
    """'0-1,3' of [0, 1, 3]."""
    parts: list[str] = []
    wanted = sorted(set(numbers))
    start = 0
    for at in range(1, len(wanted) + 1):
        if at == len(wanted) or wanted[at] != wanted[at - 1] + 1:
            low, high = wanted[start], wanted[at - 1]
            parts.append(str(low) if low == high else f"{low}-{high}")
            start = at
    return ",".join(parts)
