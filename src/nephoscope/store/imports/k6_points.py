"""Single points of k6: `--out json=FILE` and `--out csv=FILE`, which hold every value."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nephoscope.core.reading import jsontext, textfile
from nephoscope.store.imports.k6 import FAILURES, NO_TIMES, SHARE_OF_FAILURES, TIMES
from nephoscope.store.imports.moments import moment_s
from nephoscope.store.imports.rows import (
    COUNT,
    MS,
    PER_S,
    ImportedFigures,
    ImportedHistogram,
    Merge,
    mapping,
    number,
)
from nephoscope.store.imports.source import Source

CSV_HEAD = "metric_name,timestamp,metric_value"
_TREND, _COUNTER, _RATE = "trend", "counter", "rate"
_COUNTERS = frozenset({"http_reqs", "iterations", "dropped_iterations"})
_REQUESTS, _DURATION, _FAILED = "http_reqs", "http_req_duration", "http_req_failed"
_LEFT_OUT_LINES = 20


class _Point(NamedTuple):
    metric: str
    at_s: float | None
    value: float


def is_csv(text: str) -> bool:
    """States whether a text is k6's output of points as CSV."""
    return text.lstrip().startswith(CSV_HEAD)


def is_json(text: str) -> bool:
    """States whether a text is k6's output of points as lines of JSON."""
    first = text.lstrip()[:4000].splitlines()[:1]
    try:
        value = jsontext.parse(first[0]) if first else None
    except ValueError:
        return False
    return (
        isinstance(value, dict)
        and value.get("type") in ("Metric", "Point")
        and isinstance(value.get("metric"), str)
        and isinstance(value.get("data"), dict)
    )


def read(source: Source) -> ImportedFigures:
    """Returns the histogram of each time, and counts by outcome. ValueError for what is none."""
    figures = ImportedFigures("k6")
    kinds: dict[str, str] = {}
    lines = (
        _of_csv(source, figures) if is_csv(source.text) else _of_json(source.text, figures, kinds)
    )
    sums = _PointSums.of(lines, kinds)
    figures.span = sums.span
    at_s = figures.span[0] if figures.span else None
    for metric, values in sorted(sums.trends.items()):
        figures.add_histogram(
            *(f"Metric '{metric}'", "", metric, ImportedHistogram(dict(values)), MS),
            headline=metric == _DURATION,
            at_s=at_s,
        )
    for metric in sorted(sums.totals):
        _add_total(figures, metric, sums, at_s)
    _add_counts(figures, sums, at_s)
    return figures


@dataclass(slots=True)
class _PointSums:
    """Points put together: values of trends with their counts, sums and numbers of the others."""

    trends: dict[str, Counter[float]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    points: Counter[str] = field(default_factory=Counter)
    span: tuple[float, float] | None = None

    @classmethod
    def of(cls, points: Iterable[_Point], kinds: Mapping[str, str]) -> _PointSums:
        sums = cls()
        begins, ends = math.inf, 0.0
        for point in points:
            kind = kinds.get(point.metric) or _kind_of(point.metric)
            if kind == _TREND:
                sums.trends.setdefault(point.metric, Counter())[point.value] += 1
            elif kind in (_COUNTER, _RATE):
                sums.totals[point.metric] = sums.totals.get(point.metric, 0.0) + point.value
                sums.points[point.metric] += 1
            if point.at_s is not None and kind:
                begins, ends = min(begins, point.at_s), max(ends, point.at_s)
        if begins < ends:
            sums.span = (begins, ends)
        return sums


def _add_total(figures: ImportedFigures, metric: str, sums: _PointSums, at_s: float | None) -> None:
    """Adds a counter with its rate, or the share of failed requests."""
    place, total = f"Metric '{metric}'", sums.totals[metric]
    if metric in _COUNTERS:
        figures.add(place, "", f"{metric}.count", total, COUNT, at_s=at_s)
        if sums.span is not None:
            rate = total / (sums.span[1] - sums.span[0])
            is_main = metric == _REQUESTS
            figures.add(place, "", f"{metric}.rate", rate, PER_S, at_s=at_s, headline=is_main)
    elif metric in FAILURES:
        figures.add(
            *(place, "", f"{metric}.rate", total / sums.points[metric], SHARE_OF_FAILURES),
            merge=Merge.WEIGHTED_MEAN,
            weight=float(sums.points[metric]),
            at_s=at_s,
        )


def _add_counts(figures: ImportedFigures, sums: _PointSums, at_s: float | None) -> None:
    """Adds the requests sent, answered and failed; those without a duration are missing."""
    totals, trends = sums.totals, sums.trends
    if _REQUESTS not in totals or _DURATION not in trends or _FAILED not in totals:
        return
    failed = round(totals[_FAILED])
    counts = {
        "sent_count": round(totals[_REQUESTS]),
        "completed_count": trends[_DURATION].total() - failed,
        "errors_count": failed,
    }
    figures.add_counts("The points", "", counts, {}, at_s)


def _kind_of(metric: str) -> str:
    """Returns the type of a metric of k6 itself, which its CSV does not state."""
    if metric in FAILURES or metric == "checks":
        return _RATE
    if metric in _COUNTERS:
        return _COUNTER
    return _TREND if metric.startswith(TIMES) and metric not in NO_TIMES else ""


def _of_json(text: str, figures: ImportedFigures, kinds: dict[str, str]) -> Iterator[_Point]:
    """Yields the points; notes which metrics are times in `kinds`."""
    for number_, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = mapping(jsontext.parse(line), "line")
            data = mapping(value.get("data"), "data")
            if value.get("type") == "Metric":
                kinds[str(value.get("metric"))] = _declared(data)
            elif value.get("type") == "Point":
                figure = number(data.get("value"), "value")
                yield _Point(str(value.get("metric")), moment_s(data.get("time")), figure)
        except ValueError as error:
            _leave_out(figures, number_, str(error))


def _declared(data: Mapping[str, Any]) -> str:
    kind = str(data.get("type"))
    # A trend of another content, such as bytes, has no place among times.
    return "other" if kind == _TREND and data.get("contains") != "time" else kind


def _of_csv(source: Source, figures: ImportedFigures) -> Iterator[_Point]:
    for number_, row in textfile.csv_rows(source.text, str(source.path)):
        if number_ == 1 or not row:
            continue
        try:
            if len(row) < 3:
                raise ValueError("it is cut off")
            at_s = float(row[1]) if row[1].replace(".", "", 1).isdigit() else moment_s(row[1])
            yield _Point(row[0], at_s, number(float(row[2]), "metric_value"))
        except ValueError as error:
            _leave_out(figures, number_, str(error))


def _leave_out(figures: ImportedFigures, line: int, reason: str) -> None:
    if len(figures.left_out) < _LEFT_OUT_LINES:
        figures.left_out.append(f"Line {line}: {reason}")
