"""The counters beside the trials of a run: beside a typical trial, and beside the worst."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from nephoscope.model import TrialRecord

COUNTERS: tuple[tuple[str, str, str], ...] = (
    ("steal_ratio", "stolen by the hypervisor", "ratio"),
    ("psi_cpu_some_ratio", "CPU pressure", "ratio"),
    ("psi_memory_some_ratio", "memory pressure", "ratio"),
    ("psi_io_some_ratio", "disk pressure", "ratio"),
    ("throttled_ratio", "stopped by the own quota", "ratio"),
    ("others_busy_cpus", "CPUs used by other programs here", "cpus"),
    ("others_io_bytes_per_s", "disk traffic of other programs here", "bytes_per_s"),
    ("spare_gap_ratio", "missed on a spare CPU", "ratio"),
    ("spare_gap_longest_ns", "longest gap on a spare CPU", "ns"),
)
"""Key of `beside`, how it is called, unit: what the rule of attribution looks at."""

SPARE = "spare_"
MISSING = "spare_missing"


@dataclass(frozen=True, slots=True)
class CounterLine:
    """One counter over the trials of one target; n: trials that show it, of `trials`.

    median, most: None where no trial shows it. why: the reason most often given for that.
    """

    target: str
    key: str
    name: str
    unit: str
    median: float | None
    most: float | None
    n: int
    trials: int
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """The object of the `--json` output."""
        return {
            "target": self.target,
            "counter": self.key,
            "unit": self.unit,
            "median": self.median,
            "most": self.most,
            "n": self.n,
            "trials": self.trials,
            "why_missing": self.why or None,
        }


def counters(records: Iterable[TrialRecord]) -> tuple[CounterLine, ...]:
    """The counters by target; warm-up rounds and trials without any counters do not count."""
    by_target: dict[str, list[TrialRecord]] = {}
    for record in records:
        if record.key.round > 0 and record.beside:
            by_target.setdefault(record.key.target, []).append(record)
    return tuple(
        _line(target, own, key, name, unit)
        for target, own in by_target.items()
        for key, name, unit in COUNTERS
    )


def _line(target: str, records: list[TrialRecord], key: str, name: str, unit: str) -> CounterLine:
    found = [record.beside.get(key) for record in records]
    values = [
        float(value)
        for value in found
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    why = "" if values else "not shown by this machine"
    if not values and key.startswith(SPARE):
        reasons = [str(text) for record in records if (text := record.beside.get(MISSING))]
        why = max(set(reasons), key=reasons.count) if reasons else "measured without a gap meter"
    middle, most = (median(values), max(values)) if values else (None, None)
    return CounterLine(target, key, name, unit, middle, most, len(values), len(records), why)
