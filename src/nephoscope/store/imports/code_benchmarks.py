"""Results of the benchmark libraries of C++ (Google Benchmark) and Python (pytest-benchmark)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nephoscope.core.model import Better
from nephoscope.store.imports.moments import moment_s
from nephoscope.store.imports.rows import (
    BYTES_PER_S,
    MS,
    NS,
    PER_S,
    SECONDS,
    US,
    ImportedFigures,
    items,
    mapping,
    texts,
)
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import Unit

_TIME_UNITS = {"ns": NS, "us": US, "ms": MS, "s": SECONDS}
_OF_GOOGLE = frozenset(
    {
        *("name", "run_name", "run_type", "family_index", "per_family_instance_index"),
        *("repetitions", "repetition_index", "threads", "iterations", "label"),
        *("real_time", "cpu_time", "time_unit", "items_per_second", "bytes_per_second"),
        *("aggregate_name", "aggregate_unit", "error_occurred", "error_message"),
        *("skipped", "skip_message"),
    }
)


def is_google_benchmark(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is a result of Google Benchmark."""
    return isinstance(document.get("context"), dict) and any(
        "real_time" in benchmark or "run_type" in benchmark for benchmark in _benchmarks(document)
    )


def is_pytest_benchmark(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is a result of pytest-benchmark."""
    return any(
        isinstance(benchmark.get("stats"), dict) for benchmark in _benchmarks(document)
    ) and bool({"machine_info", "commit_info", "datetime"} & document.keys())


def _benchmarks(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = document.get("benchmarks")
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def read_google_benchmark(source: Source) -> ImportedFigures:
    """Returns the repetitions of each benchmark. ValueError for what is no such result."""
    document = source.document
    context = mapping(document["context"], "context")
    at_s = moment_s(context.get("date"))
    figures = ImportedFigures("Google Benchmark")
    figures.missing.append(
        "Google Benchmark runs the repetitions of a benchmark one after the other: a slow change "
        "of the machine looks like a difference between benchmarks."
    )
    if context.get("cpu_scaling_enabled") is True:
        figures.missing.append("CPU frequency scaling was enabled while the benchmarks ran.")
    entries = items(document["benchmarks"], "benchmarks")
    measured = {
        str(benchmark.get("run_name", benchmark.get("name")))
        for benchmark in _benchmarks(document)
        if benchmark.get("run_type", "iteration") == "iteration"
    }
    aggregates = 0
    for position, entry in enumerate(entries, start=1):
        entry = mapping(entry, f"benchmarks.{position}")
        name = str(entry.get("run_name", entry.get("name")))
        place = f"Benchmark '{entry.get('name')!s:.80}'"
        if entry.get("error_occurred") or entry.get("skipped"):
            words = entry.get("error_message") or entry.get("skip_message") or "no reason stated"
            figures.left_out.append(f"{place}: it failed or was skipped ({words!s:.100})")
        elif entry.get("run_type", "iteration") == "iteration":
            _add_iterations(figures, place, name, entry, at_s, "")
        elif name not in measured and entry.get("aggregate_name") in ("mean", "median"):
            _add_iterations(figures, place, name, entry, at_s, f"_{entry['aggregate_name']}")
        else:
            aggregates += 1
    if aggregates:
        figures.missing.append(
            f"{aggregates} aggregates (such as stddev, cv, BigO) are not imported: they are "
            "computed from repetitions here."
        )
    return figures


def _add_iterations(
    figures: ImportedFigures,
    place: str,
    name: str,
    entry: Mapping[str, Any],
    at_s: float | None,
    suffix: str,
) -> None:
    unit = _TIME_UNITS.get(str(entry.get("time_unit", "ns")))
    if unit is None:
        figures.left_out.append(f"{place}: unknown time unit '{entry['time_unit']!s:.20}'")
        return
    common = {"factors": {"name": name}, "at_s": at_s}
    for key, metric in (("real_time", "real"), ("cpu_time", "cpu")):
        metric = f"{metric}{suffix}_ns"
        figures.add(place, "", metric, entry.get(key), unit, headline=key == "real_time", **common)
    for key, metric, rate in (
        ("items_per_second", "items_per_s", PER_S),
        ("bytes_per_second", "bytes_per_s", BYTES_PER_S),
    ):
        if key in entry:
            figures.add(place, "", f"{metric}{suffix}", entry[key], rate, **common)
    for key, value in entry.items():  # counters of the user's own
        if key not in _OF_GOOGLE and isinstance(value, int | float):
            figures.add(
                place, "", f"{key}{suffix}", value, Unit("none", 1.0, Better.NONE), **common
            )


def read_pytest_benchmark(source: Source) -> ImportedFigures:
    """Returns the rounds of each benchmark, or their statistics where the rounds are missing."""
    document = source.document
    at_s = moment_s(document.get("datetime"))
    figures = ImportedFigures("pytest-benchmark")
    figures.missing.append(
        "pytest-benchmark runs the rounds of a benchmark one after the other: a slow change of the "
        "machine looks like a difference between benchmarks."
    )
    summaries = 0
    for position, entry in enumerate(items(document["benchmarks"], "benchmarks"), start=1):
        name = entry.get("fullname") or entry.get("name") if isinstance(entry, dict) else None
        place = f"Benchmark '{name!s:.80}'" if name else f"Benchmark {position}"
        try:
            summaries += _add_rounds(figures, place, mapping(entry, "benchmarks"), at_s)
        except ValueError as error:
            figures.left_out.append(f"{place}: {error}")
    if summaries:
        figures.missing.append(
            f"{summaries} benchmarks have no single rounds in the file: each statistic is one "
            "value. Save with --benchmark-save-data."
        )
    return figures


def _add_rounds(
    figures: ImportedFigures, place: str, entry: Mapping[str, Any], at_s: float | None
) -> int:
    """Adds the rounds; returns 1 where the file has a summary only."""
    stats = mapping(entry.get("stats"), "stats")
    factors = {"name": str(entry.get("fullname") or entry.get("name"))}
    params = entry.get("params")
    factors |= texts(params) if isinstance(params, dict) else {}
    common = {"factors": factors, "at_s": at_s}
    if "data" in stats:
        for index, seconds in enumerate(items(stats["data"], "data"), start=1):
            where = f"Round {index} of {place[0].lower()}{place[1:]}"
            figures.add(where, "", "wall_ns", seconds, SECONDS, headline=True, **common)
        return 0
    for key in ("median", "mean", "min", "max"):
        metric = f"wall_{key}_ns"
        figures.add(place, "", metric, stats.get(key), SECONDS, headline=key == "median", **common)
    return 1
