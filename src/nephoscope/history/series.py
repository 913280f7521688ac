"""Reads series from stored runs: one point a run, by metric, target and setting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nephoscope.analysis.statistics.values import Refused
from nephoscope.compaction.summarise import MACHINE, estimate_of, summary_of
from nephoscope.errors import StoreError, UnknownName
from nephoscope.model import INTERNAL, Better, Estimate, Shape, factors_key
from nephoscope.reading.sentences import did_you_mean
from nephoscope.results import lines, names
from nephoscope.store import StoredRun
from nephoscope.store.summary import MetricSummary, RunSummary

REPETITION = "repeats"
"""Label of runs that repeat a measurement to confirm a change; they are no points of a series."""
_PERCENTILE = re.compile(r"_p(\d{2,6})(?=_|$)")


@dataclass(frozen=True, slots=True)
class Point:
    """The metric in one run.

    at_s: start of the run, seconds since the epoch. target: its name in that run. facts: name ->
    value of FACTS, VERSIONS and MACHINE as far as the machine shows them. steal: median share of
    CPU time stolen by the hypervisor; None where hidden.
    """

    run: str
    at_s: float
    estimate: Estimate
    target: str = field(metadata=INTERNAL)
    facts: Mapping[str, str] = field(metadata=INTERNAL)
    steal: float | None = field(default=None, metadata=INTERNAL)


@dataclass(frozen=True, slots=True)
class Series:
    """A metric at one setting on one target over time.

    target: its newest name. factors: as of results. params: the other parameters of the benchmark.
    points: in order of time.
    """

    benchmark: str
    metric: str
    target: str
    factors: Mapping[str, Any]
    params: Mapping[str, Any]
    unit: str
    better: Better
    points: tuple[Point, ...]


def read(
    runs: Iterable[StoredRun | RunSummary],
    metric: str,
    *,
    targets: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    confidence: float = 0.95,
    repetitions: bool = False,
) -> tuple[list[Series], list[str]]:
    """Returns the series of a metric, and a sentence for each run that is left out.

    metric: as in results, such as `latency_p99_ns`; any percentile of a histogram. targets,
    benchmarks: only these, all when empty. repetitions: runs labelled so too. Raises UnknownName
    where no run has the metric.
    """
    by_setting: dict[tuple[str, str, str, str], list[_Entry]] = {}
    known: set[str] = set()
    notes = []
    for run in runs:
        labels = run.labels if isinstance(run, RunSummary) else run.manifest.get("labels")
        if not repetitions and REPETITION in (labels or {}):
            continue
        try:
            one = run if isinstance(run, RunSummary) else summary_of(run)
            for entry in entries_of(one, metric, known, confidence):
                own = entry.metric
                if benchmarks and own.benchmark not in benchmarks:
                    continue
                setting = (own.benchmark, own.factors, own.params, own.unit)
                by_setting.setdefault(setting, []).append(entry)
        except (StoreError, Refused) as error:
            name = run.run if isinstance(run, RunSummary) else run.id
            notes.append(f"Run {name} is left out: {error}")
    if not by_setting and not notes:
        raise UnknownName(
            f"No selected run has the metric '{metric}'{did_you_mean(metric, known)}.",
            "`nephoscope show RUN` prints the metrics of a run.",
        )
    series = [one for entries in by_setting.values() for one in _by_target(metric, entries)]
    wanted = [
        one
        for one in series
        if not targets or {point.target for point in one.points} & set(targets)
    ]
    if by_setting and not wanted:
        names_there = sorted({point.target for one in series for point in one.points})
        raise UnknownName(
            f"No run of target {' or '.join(targets)} has the metric '{metric}'.",
            f"Targets with it: {', '.join(names_there)}.",
        )
    order = sorted(wanted, key=lambda one: (one.benchmark, one.target, factors_key(one.factors)))
    return order, notes


@dataclass(frozen=True, slots=True)
class _Entry:
    """A point with the setting that it belongs to. is_lab: its target is a lab host."""

    metric: MetricSummary
    point: Point
    is_lab: bool


def entries_of(
    run: RunSummary, metric: str, known: set[str], confidence: float
) -> Iterator[_Entry]:
    """Yields the points of a metric in a run; adds the names of all its metrics to `known`."""
    for own in run.metrics:
        quantile = None
        if own.shape is Shape.SCALAR:
            known.add(own.metric)
            if own.metric != metric:
                continue
        else:
            known |= {
                names.percentile_metric(own.metric, own.unit, one) for one in lines.PERCENTILES
            }
            quantile = _quantile(own, metric)
            if quantile is None:
                continue
        estimate = run.estimate(own, metric, confidence)
        if estimate is None:
            trials = own.values() if quantile is None else own.histograms()
            estimate = estimate_of(own, trials, quantile, metric, confidence)
        if isinstance(estimate, str):
            raise Refused(estimate)
        target = run.targets[own.target]
        facts = {**target.facts, **({"command": own.command} if own.command else {})}
        point = Point(run.run, run.started_s, estimate, own.target, facts, target.steal)
        yield _Entry(own, point, target.is_lab)


def _quantile(histogram: MetricSummary, metric: str) -> float | None:
    """Returns the quantile of a histogram that a name such as latency_p99_ns means, or None."""
    match = _PERCENTILE.search(metric)
    quantile = int(match[1]) / 10 ** len(match[1]) if match else 0.0
    if not 0 < quantile < 1:
        return None
    name = names.percentile_metric(histogram.metric, histogram.unit, quantile)
    return quantile if name == metric else None


def _by_target(metric: str, entries: Sequence[_Entry]) -> Iterator[Series]:
    """Yields a series for each target.

    A target that was renamed continues its series: two names of one machine are one target unless
    a run has both, or they are hosts of a lab, which share the machine they run on.
    """
    by_name: dict[str, list[_Entry]] = {}
    for entry in entries:
        by_name.setdefault(entry.point.target, []).append(entry)
    groups: list[list[_Entry]] = []
    for own in by_name.values():
        group = next((one for one in groups if _is_renamed(one, own)), None)
        if group is None:
            groups.append(list(own))
        else:
            group += own
    for group in groups:
        points = sorted((entry.point for entry in group), key=lambda one: (one.at_s, one.run))
        first = group[0].metric
        yield Series(
            first.benchmark,
            metric,
            points[-1].target,
            json.loads(first.factors),
            json.loads(first.params),
            first.unit,
            first.better,
            tuple(points),
        )


def _is_renamed(a: Sequence[_Entry], b: Sequence[_Entry]) -> bool:
    machines = [
        {entry.point.facts.get(MACHINE) for entry in side if not entry.is_lab} - {None}
        for side in (a, b)
    ]
    runs = [{entry.point.run for entry in side} for side in (a, b)]
    return bool(machines[0] & machines[1]) and not runs[0] & runs[1]
