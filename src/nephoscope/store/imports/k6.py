"""Summaries of k6: `--summary-export`, the data of `handleSummary`, the machine-readable one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nephoscope.core.model import Better
from nephoscope.store.imports.moments import moment_s
from nephoscope.store.imports.rows import (
    BYTES_PER_S,
    COUNT,
    MS,
    PER_S,
    PLAIN,
    ImportedFigures,
    Merge,
    mapping,
    mappings,
    number_or_none,
)
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import Unit

_BYTES = Unit("bytes", 1.0, Better.NONE)
_SHARE = Unit("ratio", 1.0, Better.NONE, share=True)
SHARE_OF_FAILURES = _SHARE._replace(better=Better.LOWER)
TIMES = ("http_req_", "ws_", "grpc_", "iteration_duration", "group_duration", "browser_")
FAILURES = ("http_req_failed", "browser_http_req_failed")
NO_TIMES = (*FAILURES, "browser_web_vital_cls")
"""Metrics with a prefix of times that are none."""
_KEYS = frozenset({"avg", "med", "min", "max", "count", "rate", "value", "passes", "fails"})
_HEADLINES = {
    ("http_reqs", "rate"),
    ("http_req_duration", "med"),
    ("http_req_duration", "p(95)"),
}
_MERGES = {
    "avg": Merge.WEIGHTED_MEAN,
    "min": Merge.MINIMUM,
    "max": Merge.MAXIMUM,
    "count": Merge.SUM,
}
_SUMMARY = "k6 reports a summary of a run: its single values, and with them their order, are lost."


def is_k6(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is a summary of k6, of any format."""
    if _is_machine_readable(document):
        return True
    metrics = document.get("metrics")
    if not isinstance(metrics, dict) or not metrics:
        return False
    return all(
        isinstance(metric, dict)
        and (_KEYS & metric.keys() or isinstance(metric.get("values"), dict))
        for metric in metrics.values()
    )


def _is_machine_readable(document: Mapping[str, Any]) -> bool:
    results, metadata = document.get("results"), document.get("metadata")
    listed = isinstance(results, dict) and isinstance(results.get("metrics"), list)
    return listed and isinstance(metadata, dict) and "k6_version" in metadata


class _Metric(NamedTuple):
    name: str
    contains: Any
    values: Mapping[str, Any]
    thresholds: Any


def read(source: Source) -> ImportedFigures:
    """Returns the metrics of a summary. ValueError for what is none."""
    document = source.document
    figures = ImportedFigures("k6", missing=[_SUMMARY])
    duration_s = at_s = None
    if _is_machine_readable(document):
        metrics, duration_s = list(_listed(document)), _duration_s(document)
        at_s = moment_s(document["metadata"].get("generated_at"))
        if at_s is not None and duration_s is not None:
            figures.span = (at_s - duration_s, at_s)
    else:
        metrics = list(_mapped(document))
    counts = {metric.name: number_or_none(metric.values.get("count")) for metric in metrics}
    failed: list[str] = []
    for metric in metrics:
        _add_metric(metric, counts, duration_s, at_s, figures)
        failed += _failed_thresholds(metric)
    if failed:
        figures.missing.append(f"Thresholds of k6 that were crossed: {', '.join(failed)}.")
    if isinstance(document.get("root_group"), dict):
        figures.missing.append("Of k6's checks, the total is imported, and not each single one.")
    return figures


def _listed(document: Mapping[str, Any]) -> Iterator[_Metric]:
    results = mapping(document["results"], "results")
    checks = results.get("checks")
    more = checks.get("metrics") or [] if isinstance(checks, dict) else []
    for metric in mappings([*results["metrics"], *more], "metrics"):
        values = {
            re.sub(r"^p([0-9.]+)$", r"p(\1)", key): value
            for key, value in mapping(metric.get("values"), "values").items()
        }
        name = str(metric.get("name"))
        yield _Metric(name, metric.get("contains"), values, metric.get("thresholds"))


def _mapped(document: Mapping[str, Any]) -> Iterator[_Metric]:
    for name, metric in mapping(document["metrics"], "metrics").items():
        metric = mapping(metric, name)
        values = mapping(metric.get("values", metric), name)
        yield _Metric(name, metric.get("contains"), values, metric.get("thresholds"))


def _duration_s(document: Mapping[str, Any]) -> float | None:
    config = document.get("config")
    return number_or_none(config.get("duration")) if isinstance(config, dict) else None


def _add_metric(
    metric: _Metric,
    counts: Mapping[str, float | None],
    duration_s: float | None,
    at_s: float | None,
    figures: ImportedFigures,
) -> None:
    base, keys = metric.name.partition("{")[0], metric.values.keys()
    of_rate = "passes" in keys or "matches" in keys
    is_gauge = "value" in keys and not of_rate
    of_time = metric.contains == "time" or (
        metric.contains is None and base.startswith(TIMES) and base not in NO_TIMES
    )
    weight = _weight(metric, base, counts)
    values = dict(metric.values)
    if keys >= {"count"} and "rate" not in keys and duration_s and number_or_none(values["count"]):
        values["rate"] = values["count"] / duration_s  # the new summary has the duration instead
    for key, value in values.items():
        if key == "thresholds":
            continue
        unit = _unit(base, key, MS if of_time else PLAIN, of_rate=of_rate)
        merge = _MERGES.get(key)
        if unit.share:
            merge = Merge.WEIGHTED_MEAN
        figures.add(
            *(f"Metric '{metric.name}'", "", f"{metric.name}.{key}", value, unit),
            headline=(metric.name, key) in _HEADLINES,
            merge=Merge.NONE if is_gauge else merge,
            weight=weight,
            at_s=at_s,
        )


def _weight(metric: _Metric, base: str, counts: Mapping[str, float | None]) -> float:
    """Returns of how many events a metric is a mean; 0 where the summary does not tell."""
    parts = [metric.values.get(key) for key in ("passes", "fails")]
    total = metric.values.get("total") or sum(v for v in parts if isinstance(v, int | float))
    if count := number_or_none(total):
        return count
    if base != metric.name:  # with tags: a part of the requests
        return 0.0
    counter = "iterations" if base == "iteration_duration" else "http_reqs"
    known = base.startswith("http_req_") or base == "iteration_duration"
    return (counts.get(counter) or 0.0) if known else 0.0


def _unit(name: str, key: str, unit: Unit, *, of_rate: bool) -> Unit:
    """Returns the unit of a figure. of_rate: of a metric of k6's type Rate, which is a share."""
    if name in ("data_sent", "data_received"):
        return {"rate": BYTES_PER_S}.get(key, _BYTES)
    if key in ("count", "passes", "fails", "matches", "total"):
        return COUNT
    if of_rate and key in ("rate", "value"):
        return SHARE_OF_FAILURES if name in FAILURES else _SHARE
    return PER_S if key == "rate" else unit


def _failed_thresholds(metric: _Metric) -> Iterator[str]:
    """Yields the thresholds that were crossed; the export has true for those, others {ok}."""
    stated = metric.thresholds
    pairs: list[tuple[str, Any]] = []
    if isinstance(stated, dict):
        pairs = list(stated.items())
    elif isinstance(stated, list):
        pairs = [
            (str(threshold.get("source", "")), threshold)
            for threshold in stated
            if isinstance(threshold, dict)
        ]
    for condition, state in pairs:
        if state is True or (isinstance(state, dict) and state.get("ok") is False):
            yield f"{metric.name} {condition}"
