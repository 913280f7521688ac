"""One trial of several generators: their histograms added bucket by bucket, their counts summed.

The probe counts every latency in buckets whose limits depend on the value alone, so that the sum
of the counts is the histogram that one generator with all requests would have. A percentile of
it is that of all requests; nothing is averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from nephoscope.core.model import TrialRecord
from nephoscope.core.shared_load import merged_name, sharing_targets
from nephoscope.store.trial_rows import TrialHistogram, TrialMetric, TrialValue

if TYPE_CHECKING:
    from nephoscope.store.run import StoredRun

_Row = TypeVar("_Row", bound=TrialMetric)

_SUMMED_UNITS = frozenset({"per_s", "bytes_per_s", "bits_per_s", "count", "cpus"})
_LARGEST = frozenset({"late_sends_ratio", "generator_busy_ratio", "generator_wait_ratio"})
"""Of the generator that was the most likely limit."""
_SMALLEST = frozenset({"pace_ratio"})
WEIGHTS = {"error_ratio": "due_count", "generator_cpu_ns": "requests_per_s"}
"""Metric -> the metric that is its denominator, so that the weighted mean is that of the whole."""

_Alternative = tuple[int, int, int]
"""Setting, round and repeat index of trials that started together."""


class SharedLoads:
    """The shared loads of a run.

    is_counted: whether the analysis asks for a trial. A round counts where it does for all of its
    generators: without one of them the server had less load than the others' results state.
    """

    def __init__(self, run: StoredRun, is_counted: Callable[[TrialRecord], bool]) -> None:
        self._targets = {
            int(setting["index"]): targets
            for setting in run.manifest.settings
            if (targets := sharing_targets(setting))
        }
        counted: dict[_Alternative, set[str]] = {}
        for record in run.records() if self._targets else ():
            if record.key.setting in self._targets and is_counted(record):
                key = record.key
                counted.setdefault((key.setting, key.round, key.repeat_index), set()).add(
                    key.target
                )
        self._whole = {
            alternative
            for alternative, names in counted.items()
            if names >= set(self._targets[alternative[0]])
        }

    def __bool__(self) -> bool:
        return bool(self._targets)

    def values(self, rows: Iterable[TrialValue]) -> list[TrialValue]:
        """Returns the rows, those of generators merged into one row for each of their trials."""
        plain, groups = self._groups(rows)
        by_metric = {
            (alternative, row.metric, row.target): row.value
            for (alternative, *_), own in groups.items()
            for row in own
        }
        for (alternative, metric, _), own in groups.items():
            targets = self._targets[alternative[0]]
            name = WEIGHTS.get(metric, "")
            weights = [by_metric.get((alternative, name, row.target), 0.0) for row in own]
            value = _merged_value(own, weights, len(targets))
            if value is not None:
                plain.append(replace(_first(own, targets), value=value))
        return plain

    def histograms(self, rows: Iterable[TrialHistogram]) -> list[TrialHistogram]:
        """Returns the rows, those of generators merged into one row for each of their trials."""
        from nephoscope.stats.statistics import histograms

        plain, groups = self._groups(rows)
        for (alternative, *_), own in groups.items():
            values, counts = histograms.merge([(row.values, row.counts) for row in own])
            first = _first(own, self._targets[alternative[0]])
            plain.append(replace(first, values=values, counts=counts))
        return plain

    def _groups(
        self, rows: Iterable[_Row]
    ) -> tuple[list[_Row], Mapping[tuple[_Alternative, str, str], list[_Row]]]:
        """Returns the rows of no generator, and those of whole trials by trial, metric, factors."""
        from nephoscope.store.trialfile import is_auxiliary, key_of

        plain: list[_Row] = []
        groups: dict[tuple[_Alternative, str, str], list[_Row]] = {}
        for row in rows:
            key = key_of(row.trial)
            targets = self._targets.get(key.setting, ()) if key is not None else ()
            if key is None or row.target not in targets or is_auxiliary(row.factors):
                plain.append(row)
                continue
            alternative = (key.setting, key.round, key.repeat_index)
            if alternative in self._whole:
                groups.setdefault((alternative, row.metric, row.factors), []).append(row)
        return plain, groups


def _first(rows: Sequence[_Row], targets: Sequence[str]) -> _Row:
    """Returns the row of the first generator that has one, under the name of all of them."""
    row = min(rows, key=lambda row: targets.index(row.target))
    return replace(row, target=merged_name(targets))


def _merged_value(
    rows: Sequence[TrialValue], weights: Sequence[float], generators: int
) -> float | None:
    """Returns the value of all generators together; None where theirs do not tell it."""
    values = [row.value for row in rows]
    metric, unit = rows[0].metric, rows[0].unit
    if unit == "count":  # a kind of error that one generator did not see
        return sum(values)
    if len(values) < generators:
        return None
    if metric in _LARGEST:
        return max(values)
    if metric in _SMALLEST:
        return min(values)
    if metric in WEIGHTS and sum(weights) > 0:
        pairs = zip(values, weights, strict=True)
        return sum(value * weight for value, weight in pairs) / sum(weights)
    return sum(values) if unit in _SUMMED_UNITS else None
