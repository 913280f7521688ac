"""The plan that loads CPU, disk or network without a pause, and again after each pause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from nephoscope import catalog
from nephoscope.catalog.instruments import LOAD_CPU, LOAD_DISK, LOAD_NET
from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass
from nephoscope.features.credits.result import SERIES
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.files.load import from_values

_LOAD = {"cpu": LOAD_CPU, "disk": LOAD_DISK, "network": LOAD_NET}
_POINTS = 600
"""Intervals of a load's time."""
_LEAST_NS, _MOST_NS = 100_000_000, 60_000_000_000
_SPARE_S = 60.0


@dataclass(frozen=True, slots=True)
class CreditRequest:
    """What is loaded, for how long. cycles: times of load, with a pause before each but the
    first."""

    load: str = "cpu"
    duration_s: float = 1800.0
    pause_s: float = 0.0
    cycles: int = 1

    @property
    def machines(self) -> int:
        """Machines of each kind: a network load has one at its other end."""
        return 2 if self.load == "network" else 1

    @property
    def total_s(self) -> float:
        """The time of all of it."""
        return self.cycles * (self.duration_s + self.pause_s + 5.0)


def plan_of(targets: Sequence[Any], request: CreditRequest, **more: Any) -> Plan:
    """Returns the plan.

    targets: records, of a network load each of two machines, of which the first sends to the
    second. more: further keys of the plan. Raises UsageError, PlanError.
    """
    if request.cycles > 1 and not request.pause_s:
        raise UsageError("Several cycles need a pause between them.", "Add --pause 10min.")
    benchmark = _LOAD[request.load]
    assert benchmark in SERIES
    interval_ns = min(max(round(1e9 * request.duration_s / _POINTS), _LEAST_NS), _MOST_NS)
    entry: dict[str, Any] = {
        "benchmark": benchmark,
        "params": {"duration_ns": round(1e9 * request.duration_s), "interval_ns": interval_ns},
        "timeout": f"{request.duration_s + _SPARE_S!r}s",
    }
    entries = [entry]
    if request.load == "network":
        entries = [{**entry, **ends} for ends in _ends_of(targets)]
    before: list[dict[str, Any]] = []
    if request.pause_s:
        wait = {"wait_ns": round(1e9 * request.pause_s)}
        before = [
            {
                "benchmark": "null",
                "params": wait,
                "timeout": f"{request.pause_s + _SPARE_S!r}s",
            }
        ]
    values: dict[str, Any] = {
        "name": "burst-credits",
        "question": f"Does the {request.load} live on credits: burst, baseline, size, refill?",
        "targets": list(targets),
        "benchmarks": entries,
        "repeat": {"min": request.cycles, "max": request.cycles},
        "warmup": 0,
        "accept": ["throttled"],
        "before": before,
        "phases": {"prepare": f"{request.pause_s + _SPARE_S!r}s"},
        **more,
    }
    return from_values(values, catalog.load(), lambda _: "")


def _ends_of(targets: Sequence[Any]) -> Iterator[dict[str, Any]]:
    names = [machine.name for target in targets for machine in target.each()]
    for sender, receiver in [*pairwise(names)][::2]:
        yield {"on": [sender], "peer": receiver}
