"""Interval logs of HdrHistogram (.hlog), as jHiccup, cassandra-stress, YCSB and others write."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nephoscope.store.imports import hdr
from nephoscope.store.imports.hdr import HdrHistogram
from nephoscope.store.imports.rows import NS, ImportedFigures, ImportedHistogram
from nephoscope.store.imports.source import Source

VALUE_UNITS: Mapping[str, float] = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Unit of the values of a log -> nanoseconds; no log states it."""
_LINE = re.compile(
    r"(?:Tag=(?P<tag>[^,\s]{1,100}),)?(?P<start>[0-9.]{1,20}),(?P<length>[0-9.]{1,20}),"
    r"[0-9.eE+-]{1,30},(?P<histogram>HIST[A-Za-z0-9+/=]+)"
)
_START = re.compile(r"^#\[(?:StartTime|BaseTime): ([0-9.]{1,20})", re.MULTILINE)
_MARK = re.compile(r"^#\[Histogram log format version ", re.MULTILINE)
_MONTH_S = 31 * 86_400.0
"""Times of intervals below count from the base time, others from 1970."""


def is_hdr_log(text: str) -> bool:
    """States whether a text is an interval log."""
    head = text[:100_000]
    return bool(_MARK.search(head)) or '"Interval_Compressed_Histogram"' in head


def read(source: Source) -> ImportedFigures:
    """Returns the histogram of all intervals, one for each tag. ValueError without a unit."""
    factor = VALUE_UNITS.get(source.value_unit)
    if factor is None:
        raise ValueError(
            "no log of HdrHistogram states the unit of its values; add --value-unit with one of "
            f"{', '.join(VALUE_UNITS)}"
        )
    figures = ImportedFigures("HdrHistogram")
    base = _START.search(source.text)
    base_s = float(base.group(1)) if base else 0.0
    histograms: dict[str, list[HdrHistogram]] = {}
    begins: list[float] = []
    ends: list[float] = []
    for number, line in enumerate(source.text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith(("#", '"')):
            continue
        match = _LINE.fullmatch(line)
        try:
            if match is None:
                raise ValueError("it is no interval")
            histogram = hdr.decode(match["histogram"])
            start_s = float(match["start"])
            start_s += base_s if start_s < _MONTH_S else 0.0
            length_s = float(match["length"])
        except ValueError as error:
            figures.left_out.append(f"Line {number}: {error}")
            continue
        histograms.setdefault(match["tag"] or "", []).append(histogram)
        begins.append(start_s)
        ends.append(start_s + length_s)
    if begins and min(begins) > _MONTH_S:
        figures.span = (min(begins), max(ends))
    at_s = figures.span[0] if figures.span else None
    seconds = max(ends) - min(begins) if begins else 0.0
    for tag, own in histograms.items():
        factors = {"tag": tag} if tag else {}
        whole = hdr.added(own)
        place = f"Tag {tag}" if tag else "The log"
        imported = ImportedHistogram(
            {value * factor: count for value, count in whole.counts.items()},
            whole.precision,
            factor,
        )
        if not imported.total:
            figures.left_out.append(f"{place}: its histograms are empty")
            continue
        figures.add_histogram(
            place, "", "latency_ns", imported, NS, factors=factors, headline=True, at_s=at_s
        )
        figures.add_counts(place, "", {"completed_count": imported.total}, factors, at_s)
        if seconds > 0:
            figures.add_rate(place, imported.total / seconds, factors, at_s)
    return figures
