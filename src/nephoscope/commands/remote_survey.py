"""Adapts a survey to the CPUs of the targets named by `--target`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nephoscope.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.plans import Plan, Target


def fitted(plan: Plan, texts: Sequence[str]) -> Plan:
    """The survey on the targets that the texts of `--target` name, up to the CPUs of each.

    Raises UsageError for a text that is no target, or two that get one name; TargetError for a
    machine that does not answer.
    """
    from nephoscope.plans import fit_to_machines
    from nephoscope.targets.kinds import parse

    records = [parse(text) for text in texts]
    names = [record.name for record in records]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise UsageError(
            f"Two targets have the name '{twice[0]}'.",
            "Name each target once, or write a plan with names.",
        )
    cpus = asyncio.run(_cpus(records))
    return fit_to_machines(plan, records, cpus)


async def _cpus(records: Sequence[Target]) -> dict[str, int]:
    counts = {}
    for record in records:
        target = record.make()
        try:
            counts[record.name] = cpus_of(await target.open())
        finally:
            await target.close()
    return counts


def cpus_of(fingerprint: Mapping[str, Any]) -> int:
    """Returns the number of CPUs that a process may use there; 1 if unknown."""
    topology = fingerprint.get("topology")
    allowed = topology.get("allowed_cpus") if isinstance(topology, dict) else None
    return len(allowed) if isinstance(allowed, list) and allowed else 1
