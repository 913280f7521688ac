"""What the namer calls each load of a run, from what all victims beside it lost.

The name of the load is known here; the namer does not look at it. Where it says something else,
the victims of this machine do not lose what that load is said to take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist

from nephoscope.core.model import TrialRecord
from nephoscope.features.isolation import naming
from nephoscope.features.isolation.naming import Effect
from nephoscope.features.isolation.naming_references import REFERENCES
from nephoscope.features.isolation.records import Cell, NamedLoad
from nephoscope.measure.plans.resources import RESOURCES

FEWEST = 3
"""Victims beside one load; of fewer, several resources could be named alike."""

_STILL = ("cpu", "memory", "cache")
"""Victims that ask the kernel for nothing: what it does beside them, it does for others."""

_COUNTED: Mapping[str, str] = {
    "kernel_reads": "kernel_read_bytes_per_s",
    "kernel_writes": "kernel_written_bytes_per_s",
    "kernel_flushes": "kernel_flushes_per_s",
    "kernel_packets": "kernel_packets_per_s",
    "kernel_switches": "kernel_switches_per_s",
}
"""Canary of the namer: counter beside a trial."""

_TELLING = ("operation", "direction")
"""Parameters by which two victims of one benchmark miss different resources."""


def named(cells: Sequence[Cell], records: Mapping[str, TrialRecord]) -> tuple[NamedLoad, ...]:
    """A name for each load that stood beside enough victims, with what was really injected."""
    groups: dict[tuple[str, str, float, int], dict[str, Effect]] = {}
    for cell in cells:
        canary = canary_of(cell, records)
        effect = _effect(cell)
        key = (cell.victim.target, cell.resource, cell.intensity, cell.neighbours)
        if canary and effect is not None:
            groups.setdefault(key, {})[canary] = effect
        if canary in _STILL:
            counted = _of_the_kernel(cell, records)
            groups[key] = {**counted, **groups.get(key, {})}
    out: list[NamedLoad] = []
    for key, effects in groups.items():
        if len(effects.keys() & RESOURCES.keys()) >= FEWEST:
            name = naming.name(effects, REFERENCES)
            _, resource, intensity, neighbours = key
            sentence = (
                f"Load on {resource} at {100 * intensity:g} %, {neighbours} concurrent: "
                f"identified as {name.word}. {name.sentence}"
            )
            second = name.second or None
            out.append(NamedLoad(*key, name.word, sentence, name.lost, name.distance, second))
    return tuple(out)


def canary_of(cell: Cell, records: Mapping[str, TrialRecord]) -> str:
    """The canary that a cell's victim is; '' for victims that the namer does not know."""
    record = records.get(cell.trials[0]) if cell.trials else None
    params = dict(record.params) if record else {}
    for name, resource in RESOURCES.items():
        victim = resource.victim
        # Of a histogram the line that is watched is its median: `rtt_ns` is `rtt_p50_ns`.
        metric = cell.victim.metric.replace("_p50_", "_")
        if victim is None or (victim.benchmark, victim.metric) != (cell.victim.benchmark, metric):
            continue
        if all(params.get(key) == victim.params[key] for key in _TELLING if key in victim.params):
            return name
    return ""


def _of_the_kernel(cell: Cell, records: Mapping[str, TrialRecord]) -> dict[str, Effect]:
    """Returns what the kernel that the victim shares with its neighbours did beside this cell's
    trials, against the baseline trials on both sides; nothing for a victim with a kernel of its
    own."""
    baseline = {name for trial in cell.trials for name in records[trial].around.values()}
    sides = [
        [records[name] for name in names if name in records] for names in (baseline, cell.trials)
    ]
    out = {}
    for canary, key in _COUNTED.items():
        rates = [
            [naming.KERNEL_FLOORS[canary] + float(record.counters[key]) for record in side]
            for side in sides
            if all(record.counters.get(key) is not None for record in side)
        ]
        effect = naming.effect(*rates) if len(rates) == len(sides) else None
        if effect is not None:
            out[canary] = effect
    return out


def _effect(cell: Cell) -> Effect | None:
    """The interference factor on the namer's scale."""
    factor = cell.factor
    if factor is None or not factor.low or not factor.high or factor.low <= 0:
        return None
    width = math.log(factor.high / factor.low)
    errors = NormalDist().inv_cdf((1 + factor.confidence) / 2)
    return Effect(math.log(factor.value), width / 2 / errors)
