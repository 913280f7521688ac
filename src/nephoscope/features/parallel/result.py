"""Steps of parallel work in a stored run: means of trials, by number of ranks and by rank."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nephoscope.catalog import spec_of
from nephoscope.catalog.instruments import NET_COLLECTIVE
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate, TrialRecord, factors_key
from nephoscope.features.parallel.records import FittedLaw, ParallelWork, RankLine, StepTimes
from nephoscope.results.run_data import RunData
from nephoscope.stats.statistics.means import mean_of_skewed
from nephoscope.stats.statistics.values import Refused
from nephoscope.stats.stragglers import straggler_law
from nephoscope.store.query import TrialHistogram, TrialValue

RANKS, RANK = "ranks", "rank"


@dataclass(slots=True)
class _Trial:
    """Means of one trial. whole: metric -> value; of_rank: (metric, rank) -> value."""

    target: str
    factors: Mapping[str, Any]
    ranks: int
    whole: dict[str, float] = field(default_factory=dict)
    of_rank: dict[tuple[str, int], float] = field(default_factory=dict)


def analyse(data: RunData) -> ParallelWork | None:
    """Returns the steps of a run; None where no trial with them counts."""
    trials = list(_trials(data))
    if not trials:
        return None
    settings = group_by(trials, lambda trial: (trial.target, factors_key(trial.factors)))
    steps: list[StepTimes] = []
    ranks: list[RankLine] = []
    laws: list[FittedLaw] = []
    for of_setting in settings.values():
        for _, own in sorted(group_by(of_setting, lambda trial: trial.ranks).items()):
            steps.append(_steps(own, data.confidence))
            ranks += _ranks(own, data.confidence)
        with suppress(Refused):
            laws.append(_law(of_setting, data.confidence))
    return ParallelWork(tuple(steps), tuple(ranks), tuple(laws))


def _trials(data: RunData) -> Iterator[_Trial]:
    spec = spec_of(NET_COLLECTIVE)
    default = next(param.default for param in spec.params if param.id == RANKS) if spec else 2
    records = {
        record.key.name: record
        for record in data.records
        if record.benchmark == NET_COLLECTIVE and record.key.round > 0
    }
    trials: dict[str, _Trial] = {}
    rows: list[TrialValue | TrialHistogram] = [*data.values, *data.distributions]
    for row in rows:
        record = records.get(row.trial)
        if record is None or row.benchmark != NET_COLLECTIVE or row.round <= 0:
            continue
        trial = trials.setdefault(row.trial, _begin(record, default))
        if isinstance(row, TrialHistogram):
            value = float(np.average(row.values, weights=row.counts))
        else:
            value = row.value
        rank = json.loads(row.factors).get(RANK)
        if rank is None:
            trial.whole[row.metric] = value
        else:
            trial.of_rank[row.metric, int(rank)] = value
    yield from (trial for trial in trials.values() if "slowest_work_ns" in trial.whole)


def _begin(record: TrialRecord, default: int) -> _Trial:
    factors = {name: level for name, level in record.factors.items() if name != RANKS}
    ranks = int(record.params.get(RANKS, record.factors.get(RANKS, default)))
    return _Trial(record.key.target, factors, ranks)


def _steps(trials: Sequence[_Trial], confidence: float) -> StepTimes:
    first = trials[0]

    def mean(metric: str, unit: str = "ns") -> Estimate:
        values = [trial.whole[metric] for trial in trials]
        return mean_of_skewed(values, unit=unit, confidence=confidence)

    ratios = [
        trial.whole["slowest_work_ns"] / trial.whole["expected_slowest_ns"]
        for trial in trials
        if trial.whole["expected_slowest_ns"] > 0
    ]
    return StepTimes(
        first.target,
        first.factors,
        first.ranks,
        mean("step_ns"),
        mean("slowest_work_ns"),
        mean_of_skewed(ratios, unit="ratio", confidence=confidence) if ratios else None,
        mean("operation_ns"),
        mean("efficiency_ratio", "ratio"),
    )


def _ranks(trials: Sequence[_Trial], confidence: float) -> Iterator[RankLine]:
    first = trials[0]

    def mean(metric: str, rank: int, unit: str = "ns") -> Estimate:
        values = [trial.of_rank[metric, rank] for trial in trials]
        return mean_of_skewed(values, unit=unit, confidence=confidence)

    for rank in range(first.ranks):
        yield RankLine(
            first.target,
            first.factors,
            first.ranks,
            rank,
            mean("work_ns", rank),
            mean("wait_ns", rank),
            mean("slowest_ratio", rank, "ratio"),
        )


def _law(trials: Sequence[_Trial], confidence: float) -> FittedLaw:
    law = straggler_law(
        [trial.ranks for trial in trials],
        [trial.whole["slowest_work_ns"] for trial in trials],
        unit="ns",
        confidence=confidence,
    )
    first = trials[0]
    return FittedLaw(first.target, first.factors, law.fixed, law.delay, law.misfit_ratio)
