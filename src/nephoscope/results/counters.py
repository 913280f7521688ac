"""The counters beside the trials of a run: beside a typical trial, and beside the worst."""

from __future__ import annotations

from statistics import median

from nephoscope.core.model import TrialRecord
from nephoscope.core.records import dataclass
from nephoscope.results.run_data import RunData
from nephoscope.stats import facts

COUNTERS: tuple[tuple[str, str, str], ...] = (
    ("steal_ratio", "stolen by the hypervisor", "ratio"),
    ("psi_cpu_some_ratio", "CPU pressure", "ratio"),
    ("psi_memory_some_ratio", "memory pressure", "ratio"),
    ("psi_io_some_ratio", "disk pressure", "ratio"),
    ("throttled_ratio", "stopped by the own quota", "ratio"),
    ("others_busy_cpus", "CPUs used by other programs here", "cpus"),
    ("others_io_bytes_per_s", "disk traffic of other programs here", "bytes_per_s"),
    ("controller_busy_cpus", "CPUs used by the controller", "cpus"),
    ("controller_late_ns", "longest delay of the controller", "ns"),
    ("spare_gap_ratio", "missed on a spare CPU", "ratio"),
    ("spare_gap_longest_ns", "longest gap on a spare CPU", "ns"),
)
"""Key of `beside`, how it is called, unit: what the rule of attribution looks at."""

SPARE = "spare_"
MISSING = "spare_missing"


@dataclass(frozen=True, slots=True)
class CounterLine:
    """One counter over the trials of one target; n: trials that show it, of `trials`.

    counter: its key. median, maximum: None where no trial shows it. why_missing: the reason most
    often given for that.
    """

    target: str
    counter: str
    name: str
    unit: str
    median: float | None
    maximum: float | None
    n: int
    trials: int
    why_missing: str | None = None


@dataclass(frozen=True, slots=True)
class TrialCounters:
    """System counters during the trials of a run, by target."""

    lines: tuple[CounterLine, ...]


def analyse(data: RunData) -> TrialCounters:
    """Returns the counters by target, without warm-up rounds and trials without any counters."""
    by_target: dict[str, list[TrialRecord]] = {}
    for record in data.records:
        if record.key.round > 0 and record.counters:
            by_target.setdefault(record.key.target, []).append(record)
    return TrialCounters(
        tuple(
            _line(target, own, key, name, unit)
            for target, own in by_target.items()
            for key, name, unit in COUNTERS
        )
    )


def _line(target: str, records: list[TrialRecord], key: str, name: str, unit: str) -> CounterLine:
    readings = [facts.number(record.counters, key) for record in records]
    values = [value for value in readings if value is not None]
    why = None if values else "not shown by this machine"
    if not values and key.startswith(SPARE):
        reasons = [str(text) for record in records if (text := record.counters.get(MISSING))]
        why = max(set(reasons), key=reasons.count) if reasons else "measured without a gap meter"
    middle, most = (median(values), max(values)) if values else (None, None)
    return CounterLine(target, key, name, unit, middle, most, len(values), len(records), why)
