"""Which CPUs a victim and its neighbours get on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from nephoscope.core.records import dataclass

OWN, SHARED, CAPPED = "own", "shared", "capped"
PLACEMENTS = (OWN, SHARED, CAPPED)
"""A CPU each; one CPU for all; a CPU each, with the victim's own quota as one more treatment."""

_CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class CpuAssignment:
    """victim, neighbours: the CPU of each. warnings: sentences on what is not as asked."""

    victim: int
    neighbours: tuple[int, ...]
    warnings: tuple[str, ...] = ()


def assign_cpus(
    placement: str, neighbours: int, cpus: Sequence[int], cores: Mapping[int, str]
) -> CpuAssignment:
    """CPUs for a victim and so many neighbours. cpus: allowed here; cores: CPU -> its core's name.

    With a CPU each, cores of their own are given out before second threads of a core. Where there
    are too few CPUs, neighbours share the CPUs beside the victim's; with a single CPU, everybody
    shares it: both are told.
    """
    ordered = _cores_first(cpus, cores)
    victim, rest = ordered[0], ordered[1:]
    if placement == SHARED:
        return CpuAssignment(victim, (victim,) * neighbours)
    if not rest:
        sentence = "Only one CPU is available here, so victim and neighbours share it."
        return CpuAssignment(victim, (victim,) * neighbours, (sentence,))
    aggressor_cpus = tuple(rest[number % len(rest)] for number in range(neighbours))
    return CpuAssignment(
        victim, aggressor_cpus, tuple(_warnings(victim, aggressor_cpus, rest, cores))
    )


def _warnings(
    victim: int, assigned: Sequence[int], rest: Sequence[int], cores: Mapping[int, str]
) -> list[str]:
    warnings = []
    if len(assigned) > len(rest):
        warnings.append(
            f"{len(assigned)} neighbours and a victim need more than the {len(rest) + 1} CPUs "
            f"here; neighbours share CPU {', '.join(map(str, rest))}, so each of them loads "
            "it less."
        )
    twins = [cpu for cpu in assigned if cpu in cores and cores[cpu] == cores.get(victim)]
    if twins:
        warnings.append(
            f"CPU {twins[0]} is the sibling hardware thread of the victim's core; they share "
            "its units."
        )
    return warnings


def _cores_first(cpus: Sequence[int], cores: Mapping[int, str]) -> list[int]:
    """One CPU of every core, then the second ones, …"""
    seen: dict[str, int] = {}
    rank = {}
    for cpu in sorted(cpus):
        core = cores.get(cpu, f"cpu{cpu}")
        rank[cpu] = seen.get(core, 0)
        seen[core] = rank[cpu] + 1
    return sorted(cpus, key=lambda cpu: (rank[cpu], cpu))


def allowed_cpus() -> tuple[int, ...]:
    """The CPUs that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def cores_here(cpus: Sequence[int]) -> dict[int, str]:
    """CPU -> what names its core; without those of which the machine does not tell."""
    cores = {}
    for cpu in cpus:
        try:
            path = _CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list"
            cores[cpu] = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
    return cores
