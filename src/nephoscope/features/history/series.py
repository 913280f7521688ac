"""Reads series from stored runs: one point a run, by metric, target and setting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise
from statistics import median
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import StoreError, UnknownName
from nephoscope.core.model import INTERNAL, RECORDED, Better, Estimate, Shape, factors_key, stated
from nephoscope.core.naming import factors_text, line_name
from nephoscope.features.compaction.reading import REPETITION as REPETITION
from nephoscope.features.compaction.summarise import MACHINE, estimate_of, summary_of
from nephoscope.results import lines, names
from nephoscope.stats.statistics.values import Refused
from nephoscope.store import StoredRun
from nephoscope.store.summary import MetricSummary, RunMeasurements

SAME_MOMENT_S = 1.0
"""Distance of two times below which they do not say which of two runs came first."""
_PERCENTILE = re.compile(r"_p(\d{2,6})(?=_|$)")


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """The metric in one run.

    at_s: start of the run, seconds since the epoch. target: its name in that run. facts: name ->
    value of FACTS, VERSIONS and MACHINE as far as the machine shows them. steal: median share of
    CPU time stolen by the hypervisor; None where hidden.
    """

    run: str
    at_s: float
    estimate: Estimate
    target: str
    facts: Mapping[str, str] = field(metadata=INTERNAL)
    steal: float | None = field(default=None, metadata=INTERNAL)


@dataclass(frozen=True)
class Series:
    """A metric at one setting on one target over time.

    target: its newest name. factors: as of results. params: the other parameters of the benchmark.
    points: in order of time; in the order in which they came into the store where they have one and
    the same time (`has_times`).
    """

    benchmark: str
    metric: str
    target: str
    factors: Mapping[str, Any]
    params: Mapping[str, Any]
    unit: str
    better: Better
    points: tuple[HistoryPoint, ...]

    @stated
    def has_times(self) -> bool:
        """Returns whether the times of the points put them into their order."""
        return self._has_times

    @cached_property
    def _has_times(self) -> bool:
        return have_times([point.at_s for point in self.points])

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The place of each run among the points, from 1."""
        return {point.run: n for n, point in enumerate(self.points, start=1)}

    @stated
    def label(self) -> str:
        """Returns the name of the metric with its setting."""
        return line_name(self.benchmark, self.metric, self.factors)

    @stated
    def params_text(self) -> str:
        """Returns the other parameters in words."""
        return factors_text(self.params)


def read(
    runs: Iterable[StoredRun | RunMeasurements],
    metric: str,
    *,
    targets: Sequence[str] = (),
    benchmarks: Sequence[str] = (),
    confidence: float = 0.95,
    repetitions: bool = False,
    window_s: float | None = None,
    replays: bool = False,
) -> tuple[list[Series], list[str]]:
    """Returns the series of a metric, and a sentence for each run that is left out.

    metric: as in results, such as `latency_p99_ns`; any percentile of a histogram. targets,
    benchmarks: only these, all when empty. repetitions: runs labelled so too. replays: runs that
    answered from a recording too. window_s: a point is
    all runs of so many seconds, whose trials are merged; None for a point per run. Raises
    UnknownName where no run has the metric.
    """
    by_setting: dict[tuple[str, str, str, str], list[_MetricEntry]] = {}
    known: set[str] = set()
    notes = []
    for run in runs:
        if not repetitions and REPETITION in run.labels:
            continue
        if RECORDED in run.labels and not replays:
            name = run.run if isinstance(run, RunMeasurements) else run.id
            notes.append(f"Run {name} is left out: it is a replay of a recording.")
            continue
        try:
            measurements = run if isinstance(run, RunMeasurements) else summary_of(run)
            for entry in entries_of(
                measurements, metric, known, confidence, is_merged=window_s is not None
            ):
                own = entry.metric
                if benchmarks and own.benchmark not in benchmarks:
                    continue
                setting = (own.benchmark, own.factors, own.params, own.unit)
                by_setting.setdefault(setting, []).append(entry)
        except (StoreError, Refused) as error:
            name = run.run if isinstance(run, RunMeasurements) else run.id
            notes.append(f"Run {name} is left out: {error}")
    if not by_setting and not notes:
        from nephoscope.core.reading.sentences import did_you_mean

        raise UnknownName(
            f"No selected run has the metric '{metric}'{did_you_mean(metric, known)}.",
            "`nephoscope show RUN` prints the metrics of a run.",
        )
    points = _Points(metric, confidence, window_s, notes)
    series = [series for entries in by_setting.values() for series in _by_target(points, entries)]
    wanted = [
        series
        for series in series
        if not targets or {point.target for point in series.points} & set(targets)
    ]
    if by_setting and not wanted:
        names_there = sorted({point.target for series in series for point in series.points})
        raise UnknownName(
            f"No run of target {' or '.join(targets)} has the metric '{metric}'.",
            f"Targets with it: {', '.join(names_there)}.",
        )
    order = sorted(
        wanted, key=lambda series: (series.benchmark, series.target, factors_key(series.factors))
    )
    return order, notes


@dataclass(frozen=True, slots=True)
class _MetricEntry:
    """A metric of a run at one setting on one target. is_lab: that is a lab host.

    quantile: of a histogram; None for values. estimate: None where the trials of several runs are
    to be merged, which `metric` then holds; without them it takes no memory.
    """

    metric: MetricSummary
    quantile: float | None
    estimate: Estimate | None
    run: str
    at_s: float
    created_s: float
    facts: Mapping[str, str]
    steal: float | None
    is_lab: bool


def entries_of(
    run: RunMeasurements, metric: str, known: set[str], confidence: float, *, is_merged: bool
) -> Iterator[_MetricEntry]:
    """Yields a metric of a run at each setting; adds the names of all its metrics to `known`.

    is_merged: its trials are merged with those of other runs, so that they need no estimate.
    """
    for own in run.metrics:
        quantile = None
        if own.shape is Shape.SCALAR:
            known.add(own.metric)
            if own.metric != metric:
                continue
        else:
            known |= {
                names.percentile_metric(own.metric, own.unit, percentile)
                for percentile in lines.PERCENTILES
            }
            quantile = _quantile(own, metric)
            if quantile is None:
                continue
        estimate = None
        if not is_merged:
            estimate = _estimate(run, own, quantile, metric, confidence)
        target = run.targets[own.target]
        yield _MetricEntry(
            own if is_merged else replace(own, packed="", packed_unanswered="", estimates={}),
            quantile,
            estimate,
            run.run,
            run.started_s,
            run.created_s,
            {**target.facts, **({"command": own.command} if own.command else {})},
            target.steal,
            target.is_lab,
        )


def _estimate(
    run: RunMeasurements,
    metric: MetricSummary,
    quantile: float | None,
    name: str,
    confidence: float,
) -> Estimate:
    """Returns the stored estimate, or computes it. Raises Refused."""
    estimate = run.estimate(metric, name, confidence)
    if estimate is None:
        trials, unanswered = _trials(metric), _unanswered([metric])
        estimate = estimate_of(metric, trials, unanswered, quantile, name, confidence)
    if isinstance(estimate, str):
        raise Refused(estimate)
    return estimate


def _trials(metric: MetricSummary) -> Sequence[Any]:
    return metric.values() if metric.shape is Shape.SCALAR else metric.histograms()


def _unanswered(metrics: Sequence[MetricSummary]) -> Sequence[Any]:
    """Returns the lower bounds among the trials of metrics; nothing where none has any."""
    if not any(metric.packed_unanswered for metric in metrics):
        return ()
    of_each: list[Any] = []
    for metric in metrics:
        of_each += metric.unanswered() or [((), ())] * len(_trials(metric))
    return of_each


def _quantile(histogram: MetricSummary, metric: str) -> float | None:
    """Returns the quantile of a histogram that a name such as latency_p99_ns means, or None."""
    match = _PERCENTILE.search(metric)
    quantile = int(match[1]) / 10 ** len(match[1]) if match else 0.0
    if not 0 < quantile < 1:
        return None
    name = names.percentile_metric(histogram.metric, histogram.unit, quantile)
    return quantile if name == metric else None


@dataclass(frozen=True, slots=True)
class _Points:
    """Turns entries into points. notes: receives a sentence for each window that is left out."""

    metric: str
    confidence: float
    window_s: float | None
    notes: list[str]

    def of(self, entries: Sequence[_MetricEntry]) -> Iterator[HistoryPoint]:
        """Yields the points of entries in order of time."""
        window_s = self.window_s
        if window_s is None:
            for entry in entries:
                if entry.estimate is not None and self._is_known(entry, entry.estimate):
                    yield _point([entry], entry.estimate)
            return
        # What was measured before and behind a change of a fact is not merged.
        for _, group in groupby(entries, key=lambda entry: (entry.at_s // window_s, entry.facts)):
            window = list(group)
            first = window[0]
            try:
                trials = [trial for entry in window for trial in _trials(entry.metric)]
                estimate = estimate_of(
                    first.metric,
                    trials,
                    _unanswered([entry.metric for entry in window]),
                    first.quantile,
                    self.metric,
                    self.confidence,
                )
            except (StoreError, Refused) as error:
                self.notes.append(
                    f"The window of {first.metric.target} from run {first.run} on is left out: "
                    f"{error}"
                )
            else:
                if self._is_known(first, estimate):
                    yield _point(window, estimate)

    def _is_known(self, entry: _MetricEntry, estimate: Estimate) -> bool:
        """States whether an estimate is a value; notes one that is a lower bound only."""
        if estimate.censored:
            value = units.format_value(estimate.value, estimate.unit)
            self.notes.append(
                f"{self.metric} of {entry.metric.target} in run {entry.run} is at least {value}, "
                f"which is no point of a series: {estimate.note}"
            )
        return not estimate.censored


def _point(entries: Sequence[_MetricEntry], estimate: Estimate) -> HistoryPoint:
    """Returns the point of a run, or of the runs of a window, which has the name of the first."""
    first = entries[0]
    steal = [entry.steal for entry in entries if entry.steal is not None]
    return HistoryPoint(
        first.run,
        first.at_s,
        estimate,
        entries[-1].metric.target,
        first.facts,
        median(steal) if steal else None,
    )


def _by_target(points_of: _Points, entries: Sequence[_MetricEntry]) -> Iterator[Series]:
    """Yields a series for each target.

    A target that was renamed continues its series: two names of one machine are one target unless
    a run has both, or they are hosts of a lab, which share the machine they run on.
    """
    by_name: dict[str, list[_MetricEntry]] = {}
    for entry in entries:
        by_name.setdefault(entry.metric.target, []).append(entry)
    groups: list[list[_MetricEntry]] = []
    for own in by_name.values():
        group = next((group for group in groups if _is_renamed(group, own)), None)
        if group is None:
            groups.append(list(own))
        else:
            group += own
    for group in groups:
        group.sort(key=lambda entry: (entry.at_s, entry.created_s, entry.run))
        if not have_times([entry.at_s for entry in group]):
            group.sort(key=lambda entry: (entry.created_s, entry.run))
        points = tuple(points_of.of(group))
        if not points:
            continue
        first = group[0].metric
        yield Series(
            first.benchmark,
            points_of.metric,
            points[-1].target,
            json.loads(first.factors),
            json.loads(first.params),
            first.unit,
            first.better,
            points,
        )


def have_times(at_s: Sequence[float]) -> bool:
    """Returns whether the times of runs, in ascending order, put them into an order.

    Runs that are measured one after the other do not begin within a second; files that were copied,
    or restored from an archive, may all have the time of that.
    """
    distances = [after - before for before, after in pairwise(at_s)]
    return not distances or abs(median(distances)) >= SAME_MOMENT_S


def _is_renamed(a: Sequence[_MetricEntry], b: Sequence[_MetricEntry]) -> bool:
    machines = [
        {entry.facts.get(MACHINE) for entry in side if not entry.is_lab} - {None} for side in (a, b)
    ]
    runs = [{entry.run for entry in side} for side in (a, b)]
    return bool(machines[0] & machines[1]) and not runs[0] & runs[1]
