"""Evidence that rules of findings examine: one target's facts, metrics and trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nephoscope.core.model import Estimate, Finding, MetricResult, PartType, part_of
from nephoscope.core.naming import as_number, common_factors, line_name
from nephoscope.stats.statistics import means
from nephoscope.stats.statistics.reach import range_of_ratios, without_wide_interval

Series = Mapping[tuple[str, str, str, str], Sequence[tuple[str, int, float]]]
"""As RunResult.series: (benchmark, metric, target, factors key) -> (trial, at_ns, value)."""


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A check that was skipped: what it would have checked, and why it could not."""

    what: str
    reason: str


Answers = Iterator[Finding | Unchecked]
"""What a rule yields."""


@dataclass(frozen=True, slots=True)
class TargetTrials:
    """TargetTrials of one target, without warm-up. counters: of each; failures: name -> count.

    placed: (benchmark, round) -> the factors and the counters of its trials.
    """

    valid: int = 0
    invalid: int = 0
    failed: int = 0
    counters: tuple[Mapping[str, Any], ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    placed: Mapping[tuple[str, int], Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]] = field(
        default_factory=dict
    )

    def reading(self, line: MetricResult, number: int) -> Mapping[str, Any]:
        """Returns the counters of the trial of a metric in a round; empty where several match."""
        matches = [
            reading
            for factors, reading in self.placed.get((line.benchmark, number), ())
            if factors.items() <= line.factors.items()
        ]
        return matches[0] if len(matches) == 1 else {}

    @property
    def total(self) -> int:
        """Number of trials, whatever their state."""
        return self.valid + self.invalid + self.failed

    def readings(self, counter: str) -> list[float]:
        """The readings of one counter, of the trials that have it; null is no reading."""
        values = (as_number(reading.get(counter)) for reading in self.counters)
        return [value for value in values if value is not None]

    def over_time(self, counter: str, unit: str, confidence: float = 0.95) -> Estimate | None:
        """Returns the mean of a counter over the time of all trials; None where it is hidden.

        A kernel counts in ticks of 10 ms, so one tick is 10 % of a short trial: only the sum over
        many trials can be judged. The interval is Fieller's, with trials as units.
        """
        known = [
            (float(reading["elapsed_ns"]), reading["elapsed_ns"] * float(reading[counter]))
            for reading in self.counters
            if reading.get(counter) is not None and reading.get("elapsed_ns")
        ]
        if not known:
            return None
        durations, sums = np.array(known).T
        value, n, method = float(sums.sum() / durations.sum()), len(known), "ratio of sums"
        if n < 2:
            return Estimate(value, None, None, confidence, n, unit, method)
        shared = float(np.cov(durations, sums)[0, 1])
        a, b = means.summary(durations), means.summary(sums)
        low, high = means.fieller(a, b, confidence, covariance=shared) or (None, None)
        bounded = without_wide_interval(
            Estimate(value, low, high, confidence, n, unit, f"{method}; Fieller"),
            range_of_ratios(durations, sums),
        )
        return bounded if bounded.low is None else replace(bounded, low=max(0.0, bounded.low))


@dataclass(frozen=True, slots=True)
class TargetEvidence:
    """Everything of one target that the rules may examine."""

    target: str
    fingerprint: Any
    metrics: tuple[MetricResult, ...]
    trials: TargetTrials
    parts: tuple[Any, ...] = ()
    series: Series = field(default_factory=dict)

    def part(self, kind: type[PartType]) -> PartType | None:
        """Returns the run's record of this type (see RunResult.parts); None where it has none."""
        return part_of(self.parts, kind)

    @property
    def has_fingerprint(self) -> bool:
        """Returns whether the machine was asked at all; without it no check is reported as
        missing."""
        return isinstance(self.fingerprint, Mapping) and bool(self.fingerprint)

    def name_of(self, line: MetricResult) -> str:
        """Returns a line's name in a sentence, without what all lines of its benchmark share."""
        own = [metric.factors for metric in self.metrics if metric.benchmark == line.benchmark]
        common = common_factors(own) if len(own) > 1 else {}
        return line_name(line.benchmark, line.metric, line.factors, leave_out=common)

    def of(self, benchmark: str, metric: str = "") -> list[MetricResult]:
        """Returns the metrics of a benchmark, or one of them."""
        return [
            line
            for line in self.metrics
            if line.benchmark == benchmark and metric in ("", line.metric)
        ]


def is_below(estimate: Estimate, bound: float) -> bool:
    """Returns whether the whole interval lies below the bound; the value where there is no
    interval."""
    top = estimate.high if estimate.high is not None else estimate.value
    return top < bound


def is_above(estimate: Estimate, bound: float) -> bool:
    """Returns whether the whole interval lies above the bound; the value where there is no
    interval."""
    bottom = estimate.low if estimate.low is not None else estimate.value
    return bottom > bound


def limit_lines(lines: Sequence[str], limit: int = 8) -> tuple[str, ...]:
    """At most `limit` lines of evidence, and how many more there are."""
    if len(lines) <= limit:
        return tuple(lines)
    return (*lines[:limit], f"and {len(lines) - limit} more")
