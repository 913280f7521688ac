"""The second command of each duet against the first, pair by pair.

A trial is a pair: both commands ran at the same time, and exchanged their CPUs in the middle. Its
`relative_time_ratio` is one observation of the ratio, so that whatever slowed both has cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nephoscope.catalog import DUET
from nephoscope.core.model import Better, Estimate, Factors, MetricResult, TrialStatus, factors_key
from nephoscope.core.records import dataclass
from nephoscope.results.lines import pool_comparisons
from nephoscope.results.run_data import RunData
from nephoscope.stats import compare
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.statistics.dependence import ASSUMED
from nephoscope.stats.statistics.values import Refused

LABEL = "label"
RATIO = "relative_time_ratio"
SLOWDOWN = "slowdown_ratio"
WALL = "wall_mean_ns"
MARGIN = 0.03
"""Of runs whose plan states none."""


@dataclass(frozen=True, slots=True)
class Duet:
    """Two commands of one setting on one target. first: the one that the other is compared with.

    factors: of the setting. comparison: second against first, by pairs; its `n_a` counts pairs.
    slowdown: factor by which a command is slower while its partner runs; None where too little of
    an execution ran alone. cpus: of each command; unused_cpus: those that had no counterpart.
    share_cores: whether each core runs threads of both commands.
    """

    target: str
    factors: Factors
    first: str
    second: str
    comparison: TwoSampleComparison
    slowdown: Estimate | None
    cpus: int
    unused_cpus: int
    share_cores: bool


@dataclass(frozen=True, slots=True)
class Duets:
    """The duets of a run. notes: of those that could not be compared, and why."""

    duets: tuple[Duet, ...]
    notes: tuple[str, ...]


def analyse(data: RunData) -> Duets | None:
    """Returns the comparison of each duet; None for a run without one that was measured."""
    lines = [line for line in data.metrics if line.benchmark == DUET]
    ratios = [line for line in lines if line.metric == RATIO]
    priors = pool_comparisons(
        {
            (DUET, RATIO, line.target, factors_key(line.factors)): np.log(line.trial_values)
            for line in ratios
        }
    )
    duets, notes = [], []
    for line in ratios:
        try:
            duets.append(_duet(data, line, lines, priors.get(DUET, ASSUMED)))
        except Refused as reason:
            notes.append(f"{line.label}: {reason}")
    return Duets(tuple(duets), tuple(notes)) if ratios else None


def _duet(data: RunData, line: MetricResult, lines: list[MetricResult], prior: Any) -> Duet:
    params, document = _of_first_trial(data, line)
    first = str(params.get(LABEL) or "A")
    second = str(params.get(f"second_{LABEL}") or "B")
    walls = _find(lines, line, WALL, {LABEL: first})
    times, ratios = compare.common_rounds(walls.by_round if walls else {}, line.by_round)
    comparison = compare.paired(
        times,
        times * ratios,
        better=Better.LOWER,
        margin=float(data.manifest.plan.get("margin", MARGIN)),
        unit="ns",
        confidence=data.confidence,
        names=(first, second),
        prior=prior,
    )
    slowdown = _find(lines, line, SLOWDOWN, {})
    sets = document.get("sets") or [[]]
    return Duet(
        line.target,
        line.factors,
        first,
        second,
        comparison,
        slowdown.estimate if slowdown else None,
        len(sets[0]),
        len(document.get("unused") or ()),
        bool(document.get("share_cores")),
    )


def _find(
    lines: list[MetricResult], of: MetricResult, metric: str, more: Factors
) -> MetricResult | None:
    """Returns the line of another metric of the same setting."""
    factors = {**of.factors, **more}
    return next(
        (
            line
            for line in lines
            if (line.metric, line.target) == (metric, of.target) and dict(line.factors) == factors
        ),
        None,
    )


def _of_first_trial(
    data: RunData, line: MetricResult
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the parameters of the line's first valid trial, and its sets of CPUs."""
    for record in data.records:
        if (
            (record.benchmark, record.key.target) == (DUET, line.target)
            and record.status is TrialStatus.VALID
            and dict(record.factors) == dict(line.factors)
        ):
            return record.params, record.documents.get("cpus", {})
    return {}, {}
