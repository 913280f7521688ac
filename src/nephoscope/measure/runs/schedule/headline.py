"""The one value a trial contributes to each headline series: what the stopping rule looks at."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from nephoscope.catalog import BenchmarkSpec
from nephoscope.core.model import Sample, Shape, factors_key

SeriesKey = tuple[str, str]
"""Metric and canonical text of the factors."""

Row = tuple[str, str, float, int]
"""Metric, canonical text of the factors, value, count: of a sample or of a line in the store."""


def headline_metrics(spec: BenchmarkSpec, chosen: Sequence[str]) -> dict[str, Shape]:
    """Metrics on which repetition stops; scalars and histograms only, since a time line or a
    document has no one value a trial."""
    return {
        metric.id: metric.shape
        for metric in spec.metrics
        if (metric.id in chosen if chosen else metric.headline)
        and metric.shape in (Shape.SCALAR, Shape.HISTOGRAM)
    }


def rows_of_samples(samples: Iterable[Sample], factors: Mapping[str, Any]) -> list[Row]:
    """Rows of samples that come from a target; factors: those of their trial."""
    plain = factors_key(factors)
    return [
        (
            s.metric,
            factors_key({**factors, **s.factors}) if s.factors else plain,
            s.value,
            s.count,
        )
        for s in samples
    ]


def rows_of_table(table: Any) -> list[Row]:
    """Rows of a stored trial (pyarrow table): the same as those of its samples were.

    Rows of loads and hooks are left out; nothing stops or goes on because of them.
    """
    from nephoscope.store.trialfile import is_auxiliary

    columns = ("metric", "factors", "value", "count")
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    return [row for row in rows if not is_auxiliary(row[1])]


def headline_values(rows: Iterable[Row], metrics: Mapping[str, Shape]) -> dict[SeriesKey, float]:
    """One value a series: the median of scalars, the nearest-rank median of a histogram."""
    by_series: dict[SeriesKey, list[tuple[float, int]]] = {}
    for metric, factors, value, count in rows:
        if metric in metrics:
            by_series.setdefault((metric, factors), []).append((value, count))
    return {
        key: histogram_median(pairs)
        if metrics[key[0]] is Shape.HISTOGRAM
        else statistics.median(value for value, _ in pairs)
        for key, pairs in sorted(by_series.items())
    }


def histogram_median(pairs: Iterable[tuple[float, int]]) -> float:
    """Returns the nearest-rank median of values with their counts."""
    ordered = sorted(pairs)
    ends = list(accumulate(count for _, count in ordered))
    return ordered[bisect_left(ends, (ends[-1] + 1) // 2)][0]
