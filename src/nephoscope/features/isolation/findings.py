"""Findings on neighbours: what a victim loses beside a load, whether it comes back.

"Neighbour" is said only where stats/attribution.py says it; else the load is named as a load
that stood beside the victim, which is all that is known.
"""

from __future__ import annotations

from typing import Any

from nephoscope.core import units
from nephoscope.core.model import Better, Estimate, Finding, Severity
from nephoscope.core.naming import full_name
from nephoscope.features.isolation.records import UNHARMED_VERDICTS, Cell, Isolation
from nephoscope.stats.attribution import SlowdownCause
from nephoscope.stats.interference import turned
from nephoscope.stats.statistics.values import percent
from nephoscope.stats.target_evidence import Answers, TargetEvidence, limit_lines

_GRAVE = 1.25
"""From a quarter more time on a loss is a warning: a fifth of the rate is gone."""

_DISK = "Request a volume with guaranteed operations per second, or a local disk."
_LINK = "Request guaranteed throughput, and check latency, which traffic shaping may not protect."
_NEXT = {
    "cpu": "Request dedicated CPUs or another placement, or plan with the remaining share.",
    "memory": "Place memory-intensive programs on separate machines.",
    "cache": "Keep working sets within the per-core caches, or request a partitioned cache.",
    "disk_read": _DISK,
    "disk_write": _DISK,
    "fsync": "Put durable data on a separate volume and batch its writes.",
    "net_send": _LINK,
    "net_receive": _LINK,
    "packets": (
        "Batch small messages, or request an instance type with guaranteed packets per second."
    ),
    "switches": "Request dedicated CPUs; send fewer, larger messages to reduce context switches.",
}
_ANY_NEXT = "Plan with the lower end of the remaining performance, or request a dedicated host."


def _cells(case: TargetEvidence) -> list[Any]:
    """Returns the cells of this target without the idle control."""
    isolation = case.part(Isolation)
    cells = isolation.cells if isolation is not None else ()
    return [cell for cell in cells if cell.victim.target == case.target and cell.resource != "idle"]


def _words(resource: str) -> str:
    text = {"cpu": "CPU time", "memory": "memory bandwidth", "cache": "last-level cache"}
    return text.get(resource, resource.replace("_", " "))


def loss(factor: Estimate, better: Better) -> str:
    """Returns what a factor costs: '12 % [9, 15]' of a rate, or as much longer for a time."""

    def cost(of: float) -> float:
        return 1 - 1 / of if better is Better.HIGHER else of - 1

    value = cost(factor.value)
    sides = (factor.low, factor.high)
    low, high = (None if side is None or side <= 0 else cost(side) for side in sides)
    digits = units.interval_digits(value, low, high)
    return units.format_interval(value, low, high, "ratio", digits)


def _loss_text(cell: Any) -> str:
    """'Memory bandwidth of a neighbour costs mem.stream throughput 12 % [9, 15]'."""
    blamed = cell.attribution is not None and cell.attribution.word is SlowdownCause.NEIGHBOUR
    resource = _words(cell.resource)
    who = f"A neighbour that loads {resource}" if blamed else f"A concurrent load on {resource}"
    many = f" ({cell.neighbours} concurrent)" if cell.neighbours > 1 else ""
    victim = full_name(cell.victim.benchmark, cell.victim.metric)
    kind = "" if cell.victim.better is Better.HIGHER else " more time"
    text = f"{who}{many} costs {victim} {loss(cell.factor, cell.victim.better)}{kind}"
    return text[0].upper() + text[1:]


def losses(case: TargetEvidence) -> Answers:
    """Yields what victims lose, the worst first; of each victim and resource the greatest loss."""
    worst: dict[tuple[Any, ...], Any] = {}
    for cell in _cells(case):
        if cell.comparison.verdict.word != "worse" or cell.factor is None:
            continue
        key = (cell.victim.benchmark, cell.victim.metric, cell.resource)
        if key not in worst or worst[key].factor.value < cell.factor.value:
            worst[key] = cell
    if not worst:
        return
    ranked = sorted(worst.values(), key=lambda cell: -cell.factor.value)
    first = ranked[0]
    evidence = []
    for cell in ranked:
        by = cell.attribution
        cause = "not attributed" if by is None else f"attributed to: {by.word.value}"
        evidence.append(f"{_loss_text(cell)} (n = {cell.factor.n}); {cause}")
    yield Finding(
        "interference",
        Severity.WARNING if (first.factor.low or 0) > _GRAVE else Severity.NOTICE,
        f"{_loss_text(first)} (n = {first.factor.n}).",
        limit_lines(evidence),
        _NEXT.get(first.resource, _ANY_NEXT),
    )


def not_back(case: TargetEvidence) -> Answers:
    """Victims whose quiet after a load is worse than before it."""
    stuck = [cell for cell in _cells(case) if cell.recovery.word == "not recovered"]
    if stuck:
        stuck.sort(key=lambda cell: -cell.recovery.ratio.value)
        evidence = [
            f"{full_name(cell.victim.benchmark, cell.victim.metric)} "
            f"after {_words(cell.resource)}: "
            f"{loss(cell.recovery.ratio, cell.victim.better)} worse than before "
            f"(n = {cell.recovery.ratio.n})"
            for cell in stuck
        ]
        yield Finding(
            "no_recovery",
            Severity.NOTICE,
            f"{len(stuck)} of {len(_cells(case))} pairs of victim and load did not recover "
            "after the load stopped.",
            limit_lines(evidence),
            "Check for after-effects (write-back, burst credits, page cache) and pause longer "
            "between trials. The factors of these pairs use the baseline before and after the "
            "load.",
        )


def false_alarms(case: TargetEvidence) -> Answers:
    """An idle neighbour that seems to take something: the experiment sees what is not there."""
    isolation = case.part(Isolation)
    idle = isolation.idle if isolation is not None else None
    if isolation is None or idle is None or idle.share is None or "too many" not in idle.sentence:
        return
    if not any(cell.victim.target == case.target for cell in isolation.cells):
        return
    yield Finding(
        "idle_interference",
        Severity.WARNING,
        idle.sentence,
        (f"share with Wilson's interval: {units.format_value(idle.share.value, 'ratio')}, "
         f"n = {idle.share.n}",),
        "Repeat on an idle machine; until then, rely on large factors only.",
    )  # fmt: skip


def kept_apart(case: TargetEvidence) -> Answers:
    """Nothing is lost beyond the margin, and it was looked for."""
    cells = [cell for cell in _cells(case) if cell.has_interval]
    if not cells or not all(cell.comparison.verdict.word in UNHARMED_VERDICTS for cell in cells):
        return
    largest = max(cells, key=lambda cell: _bound(cell).high or 0.0)
    bound = _bound(largest)
    yield Finding(
        "isolated",
        Severity.INFO,
        f"None of {len(cells)} pairs of victim and load loses more than the margin.",
        (
            f"largest loss compatible with the measurements: {_words(largest.resource)} on "
            f"{largest.victim.benchmark}, {loss(bound, largest.victim.better)} at "
            f"{percent(bound.confidence)} (n = {bound.n})",
        ),
    )


def _bound(cell: Cell) -> Estimate:
    """Returns the interval that excluded a loss: that of the equivalence test, if it has one."""
    bound = turned(cell.comparison.equivalence, cell.victim.better) or cell.factor
    assert bound is not None
    return bound


RULES = (losses, not_back, false_alarms, kept_apart)
