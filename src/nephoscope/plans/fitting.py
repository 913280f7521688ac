"""A survey fitted to the machines that it measures: each is loaded up to its own CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nephoscope.plans.model import Entry, Plan
from nephoscope.plans.survey import THREADS, thread_levels
from nephoscope.targets.kinds.record import TargetRecord


def fitted(plan: Plan, targets: Sequence[TargetRecord], cpus: Mapping[str, int]) -> Plan:
    """The plan on other targets. cpus: name of each target -> CPUs that a process may use there.

    An entry that varies `threads` gets the levels of each machine; what only some of the machines
    have becomes an entry of its own, on those.
    """
    entries: list[Entry] = []
    for entry in plan.benchmarks:
        if THREADS not in entry.factors:
            entries.append(entry)
            continue
        for names, levels in _levels(targets, cpus):
            factors = {**entry.factors, THREADS: levels}
            on = names if len(names) < len(targets) else ()
            entries.append(entry.model_copy(update={"factors": factors, "on": on}))
    return plan.model_copy(update={"targets": tuple(targets), "benchmarks": tuple(entries)})


def _levels(
    targets: Sequence[TargetRecord], cpus: Mapping[str, int]
) -> list[tuple[tuple[str, ...], list[int]]]:
    """Levels by the targets that have them, those of all targets first."""
    found: dict[tuple[str, ...], list[int]] = {}
    of_each = {target.name: thread_levels(cpus[target.name]) for target in targets}
    for level in sorted({level for levels in of_each.values() for level in levels}):
        names = tuple(name for name, levels in of_each.items() if level in levels)
        found.setdefault(names, []).append(level)
    return sorted(found.items(), key=lambda pair: -len(pair[0]))
