"""Figures of several targets as one system, from the trials that they ran at the same time.

A rate of the system is the sum of its members' rates; a time is that of its slowest member, for
which work that is divided waits. Both are formed round by round, so that their intervals are those
of the system and not sums of the members' intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nephoscope.core.model import Better, Estimate, MetricResult, factors_key
from nephoscope.core.shared_load import sharing_targets
from nephoscope.results.run_data import RunData
from nephoscope.stats.statistics import estimates

Combination = Literal["sum", "slowest"]

RATES = frozenset({"per_s", "bytes_per_s", "bits_per_s"})


@dataclass(frozen=True, slots=True)
class ClusterFigure:
    """A metric of several targets as one system, over the rounds in which all of them have it.

    combination: sum of the members' rates, or the longest of their times. system: its median over
    rounds. imbalance: the best member's value over the worst one's in a round, at least 1, median
    over rounds; null where a value is 0.
    """

    benchmark: str
    metric: str
    label: str
    factors: Mapping[str, Any]
    targets: tuple[str, ...]
    combination: Combination
    system: Estimate
    imbalance: Estimate | None


@dataclass(frozen=True, slots=True)
class Clusters:
    """The figures of all clusters of a run, in the order of its plan."""

    figures: tuple[ClusterFigure, ...]


def analyse(data: RunData) -> Clusters | None:
    """Returns the figures of targets that ran together; None where no round has all of them."""
    figures = tuple(figure for lines in _clusters(data) for figure in _figures(lines, data))
    return Clusters(figures) if figures else None


def _clusters(data: RunData) -> Iterator[list[MetricResult]]:
    """Yields the lines of one metric, one for each member."""
    seen: set[tuple[str, str, str, tuple[str, ...]]] = set()
    for setting in data.manifest.settings:
        targets = tuple(setting.get("targets") or ())
        if not setting.get("together") or len(targets) < 2 or sharing_targets(setting):
            continue
        groups: dict[tuple[str, str], dict[str, MetricResult]] = {}
        for line in data.metrics:
            if line.benchmark == setting.get("benchmark") and line.target in targets:
                key = (line.metric, factors_key(line.factors))
                groups.setdefault(key, {})[line.target] = line
        for (metric, factors), members in groups.items():
            identity = (str(setting.get("benchmark")), metric, factors, targets)
            if len(members) == len(targets) and identity not in seen:
                seen.add(identity)
                yield [members[target] for target in targets]


def _figures(lines: Sequence[MetricResult], data: RunData) -> Iterator[ClusterFigure]:
    first = lines[0]
    combination = _combination(first)
    by_round = [line.by_round for line in lines]
    rounds = sorted(set.intersection(*(set(values) for values in by_round)))
    if combination is None or not rounds:
        return
    values = [[member[round] for member in by_round] for round in rounds]
    combine = sum if combination == "sum" else max
    ratios = [max(row) / min(row) for row in values if min(row) > 0]
    confidence, unit = data.confidence, first.estimate.unit
    yield ClusterFigure(
        first.benchmark,
        first.metric,
        first.label,
        first.factors,
        tuple(line.target for line in lines),
        combination,
        estimates.median([combine(row) for row in values], unit=unit, confidence=confidence),
        estimates.median(ratios, unit="ratio", confidence=confidence) if ratios else None,
    )


def _combination(line: MetricResult) -> Combination | None:
    """Returns how the members' values make the system's; None for a metric that has no such value,
    as a share."""
    if not line.headline or not line.trial_values:
        return None
    unit = line.estimate.unit
    if line.better is Better.HIGHER and unit in RATES:
        return "sum"
    return "slowest" if line.better is Better.LOWER and unit == "ns" else None
