"""Metrics of a watch for monitoring: estimates of the newest run, histograms, counts of events.

One list of families is rendered as OpenMetrics (endpoint.py) and as OTLP (otlp.py). Names follow
the conventions of Prometheus, whose values are in base units; an estimate keeps the unit that
reports state, as the label `unit`, because one family holds metrics of many units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np

from nephoscope.core.errors import NephoscopeError
from nephoscope.core.model import RECORDED
from nephoscope.features.watch.events import EventLog, State
from nephoscope.features.watch.repetition import Distribution, WatchRepetition

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One value of a gauge or counter."""

    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class BucketExemplar:
    """An observation in a bucket, and the run that has it: the way from a panel to the run."""

    run: str
    value: float


@dataclass(frozen=True, slots=True)
class HistogramPoint:
    """A histogram. counts: of the buckets up to each bound, then of the rest; not cumulative.

    exemplars: place of a bucket -> the largest observation in it of the last run that had one.
    """

    labels: Labels
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float
    exemplars: Mapping[int, BucketExemplar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with its points; a counter's name has no `_total`."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    points: Sequence[MetricPoint | HistogramPoint]


class _Buckets:
    """Counts of all runs of a metric since the process began, in steps of 1, 2 and 5.

    The bounds span ten times the range of the first run on both sides and never change.
    """

    def __init__(self, first: Distribution) -> None:
        positive = [value for value in first.values if value > 0 and math.isfinite(value)] or [1.0]
        low, high = (math.floor(math.log10(bound)) for bound in (min(positive), max(positive)))
        self.bounds = tuple(
            float(f"{step}e{exponent}")
            for exponent in range(max(low - 1, -300), min(high + 3, 300))
            for step in (1, 2, 5)
        )
        self.counts = np.zeros(len(self.bounds) + 1, dtype=np.int64)
        self.total = 0.0
        self.exemplars: dict[int, BucketExemplar] = {}

    def add(self, seen: Distribution, run: str) -> None:
        """Counts one more run; requests without an answer are above every bound, and the sum has
        the time that they waited."""
        places = np.searchsorted(self.bounds, seen.values)
        np.add.at(self.counts, places, np.asarray(seen.counts, dtype=np.int64))
        for value, count in seen.unanswered.items():
            self.counts[np.searchsorted(self.bounds, value)] -= count
            self.counts[-1] += count
        for place, value, count in zip(places.tolist(), seen.values, seen.counts, strict=True):
            # Values ascend: the last one of a bucket stays, which is its slowest observation.
            if math.isfinite(value) and count > seen.unanswered.get(value, 0):
                self.exemplars[place] = BucketExemplar(run, value)
        finite = [value * n for value, n in zip(seen.values, seen.counts, strict=True)]
        self.total += math.fsum(value for value in finite if math.isfinite(value))


class Metrics:
    """The families of one watch; `add` takes each repetition."""

    def __init__(self, watch: str) -> None:
        self._watch = watch
        self._newest: WatchRepetition | None = None
        self._buckets: dict[tuple[str, str, str, str, str], _Buckets] = {}
        self._series = 0

    def add(self, repetition: WatchRepetition | None, state: State) -> None:
        """Takes a repetition; None for a start that was skipped or failed."""
        if state.series != self._series:
            self._series, self._newest, self._buckets = state.series, None, {}
        if repetition is None:
            return
        self._newest = repetition
        for seen in repetition.distributions:
            key = (seen.benchmark, seen.metric, seen.target, seen.factors, seen.unit)
            self._buckets.setdefault(key, _Buckets(seen)).add(seen, repetition.run)

    def families(self, state: State, next_s: float) -> list[Family]:
        """Returns all families. next_s: the next start, epoch s."""
        own = {"watch": self._watch}
        events = [
            MetricPoint({**own, "event": kind}, n) for kind, n in sorted(state.counts.items())
        ]
        failing = [
            MetricPoint({**own, "target": name or "all"}, entry[0])
            for name, entry in state.failing.items()
        ]
        ends = [datetime.fromisoformat(end).timestamp() for end in [state.last_end] if end]
        gauges = {
            "failures_in_a_row": (
                "Failures in a row of a target; target all: of the whole repetition.",
                failing,
            ),
            "series": (
                "Number of the series; an edit of the plan begins a new one.",
                [MetricPoint(own, state.series)],
            ),
            "next_start_timestamp_seconds": ("Next start.", [MetricPoint(own, next_s)]),
            "last_end_timestamp_seconds": (
                "End of the last repetition.",
                [MetricPoint(own, at_s) for at_s in ends],
            ),
        }
        families = [
            Family("nephoscope_watch_events", "counter", "Events of the watch by kind.", events),
            *(
                Family(f"nephoscope_watch_{name}", "gauge", text, points)
                for name, (text, points) in gauges.items()
            ),
        ]
        return [family for family in [*families, *self._results(own)] if family.points]

    def _labels(self, own: Labels, of_line: Labels) -> Labels:
        """Returns the labels of a result; one of a replay has a label of its own."""
        is_replay = self._newest is not None and of_line["target"] in self._newest.recorded
        return {**own, **of_line, **({RECORDED: "true"} if is_replay else {})}

    def _results(self, own: Labels) -> list[Family]:
        points: dict[str, list[MetricPoint]] = {"": [], "_low": [], "_high": [], "_repetitions": []}
        keys = ("benchmark", "metric", "target", "factors", "unit")
        for key, estimate in (self._newest.estimates if self._newest else {}).items():
            labels = self._labels(own, dict(zip(keys, (*key, estimate.unit), strict=True)))
            values = (estimate.value, estimate.low, estimate.high, estimate.n)
            for name, value in zip(points, values, strict=True):
                if value is not None:  # an interval that does not exist has no sample
                    points[name].append(MetricPoint(labels, value))
        help_of = {
            "": "Estimate of the newest run.",
            "_low": "Lower bound of the confidence interval.",
            "_high": "Upper bound of the confidence interval.",
            "_repetitions": "Independent repetitions behind the estimate.",
        }
        histograms = [
            HistogramPoint(
                self._labels(own, dict(zip(keys, key, strict=True))),
                buckets.bounds,
                tuple(buckets.counts.tolist()),
                buckets.total,
                dict(buckets.exemplars),
            )
            for key, buckets in self._buckets.items()
        ]
        return [
            *(
                Family(f"nephoscope_estimate{name}", "gauge", help_of[name], family_points)
                for name, family_points in points.items()
            ),
            Family(
                "nephoscope_observations",
                "histogram",
                "Observations of all runs since the watch was started; requests without an answer "
                "are above every bound, and the sum has the time that they waited.",
                histograms,
            ),
        ]


Sink = Callable[[Sequence[Family], float], None]
"""Takes the families at a moment, epoch s: the endpoint, the exporter."""


@dataclass
class Publisher:
    """Brings the metrics to their sinks; one that fails is an event, and said once until it works.

    say: shows a sentence. now_s: the wall clock.
    """

    watch: str
    sinks: Sequence[Sink]
    say: Callable[[str], None]
    now_s: Callable[[], float]

    def __post_init__(self) -> None:
        self._metrics = Metrics(self.watch)
        self._failing = False

    def __call__(self, repetition: WatchRepetition | None, log: EventLog, next_s: float) -> None:
        """Takes a repetition; None for a start without one."""
        self._metrics.add(repetition, log.state)
        families = self._metrics.families(log.state, next_s)
        failure = ""
        for sink in self.sinks:
            try:
                sink(families, self.now_s())
            except NephoscopeError as error:
                failure = str(error)
                log.append("export_failed", sentence=failure)
        if failure and not self._failing:
            self.say(failure)
        self._failing = bool(failure)
