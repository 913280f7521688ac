"""Results of fortio: `-json FILE`, also those of Nighthawk in fortio's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from nephoscope.store.imports.moments import moment_s
from nephoscope.store.imports.rows import (
    NS,
    SECONDS,
    ImportedFigures,
    ImportedHistogram,
    Merge,
    mapping,
    mappings,
    number,
    number_or_none,
)
from nephoscope.store.imports.source import Source

_BUCKETS = (
    "fortio reports the counts of buckets: percentiles are the upper ends of buckets, where fortio "
    "itself interpolates within them."
)
_VALID = ("2", "3", "SERVING", "OK")
"""Beginnings of the return codes of valid responses: HTTP below 400, gRPC, TCP and UDP."""
_SERVING = "1"
"""The same of gRPC in older versions."""


def is_fortio(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is a result of fortio."""
    histogram = document.get("DurationHistogram")
    return isinstance(histogram, dict) and "Data" in histogram and "ActualQPS" in document


def read(source: Source) -> ImportedFigures:
    """Returns rate, histogram and counts by outcome. ValueError for what is no result."""
    document = source.document
    figures = ImportedFigures("fortio", missing=[_BUCKETS])
    names = {"url": "URL", "rate": "RequestedQPS", "duration": "RequestedDuration"}
    figures.settings = {
        name: str(document[key]) for name, key in names.items() if document.get(key) is not None
    }
    at_s = moment_s(document.get("StartTime"))
    elapsed_ns = number_or_none(document.get("ActualDuration"))
    if at_s is not None and elapsed_ns is not None:
        figures.span = (at_s, at_s + elapsed_ns / 1e9)
    durations = mapping(document["DurationHistogram"], "DurationHistogram")
    buckets: Counter[float] = Counter()
    for bucket in mappings(durations.get("Data"), "Data"):
        end_ns = round(number(bucket.get("End"), "End") * 1e9)
        buckets[end_ns] += round(number(bucket.get("Count"), "Count"))
    histogram = ImportedHistogram(buckets)
    if histogram.total:
        figures.add_histogram(
            "The result", "", "latency_ns", histogram, NS, headline=True, at_s=at_s
        )
    common: dict[str, Any] = {"at_s": at_s}
    for key, metric, merge in (
        ("Avg", "latency_mean_ns", Merge.WEIGHTED_MEAN),
        ("Min", "latency_min_ns", Merge.MINIMUM),
        ("Max", "latency_max_ns", Merge.MAXIMUM),
    ):
        if durations.get(key):
            figures.add(
                *("The result", "", metric, durations[key], SECONDS),
                merge=merge,
                weight=float(histogram.total),
                **common,
            )
    figures.add_rate("The result", document.get("ActualQPS"), {}, at_s)
    codes = document.get("RetCodes")
    if isinstance(codes, dict) and codes:
        by_code = {str(code): round(number(count, "RetCodes")) for code, count in codes.items()}
        is_grpc = str(document.get("RunType")).startswith("GRPC")
        valid = sum(
            count
            for code, count in by_code.items()
            if code.startswith(_VALID) or (is_grpc and code == _SERVING)
        )
        counts = {
            "sent_count": histogram.total,
            "completed_count": valid,
            "errors_count": sum(by_code.values()) - valid,
        }
        figures.add_counts("The result", "", counts, {}, at_s)
    return figures
