"""Reports of sysbench: one, or several one after the other, as repetitions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nephoscope.model import Better
from nephoscope.store.imports.rows import Figures, Row, Source
from nephoscope.store.imports.units import Unit

_BEGINNING = re.compile(r"^sysbench [0-9]+\.", re.MULTILINE)
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_PER_S = Unit("per_s", 1.0, Better.HIGHER)
_MIB_PER_S = Unit("bytes_per_s", 2.0**20, Better.HIGHER)
_MS = Unit("ns", 1e6, Better.LOWER)

_TESTS = (
    ("CPU speed:", "cpu"),
    ("Running memory speed test", "memory"),
    ("File operations:", "fileio"),
    ("SQL statistics:", "oltp"),
    ("threads", "other"),
)
_FIGURES = (
    # Metric, unit, what stands around the number, headline.
    ("events_per_s", _PER_S, rf"^ *events per second: +{_NUMBER}$", True),
    ("operations_per_s", _PER_S, rf"^Total operations: [0-9]+ \( *{_NUMBER} per second\)$", False),
    ("transfer_bytes_per_s", _MIB_PER_S, rf"MiB transferred \({_NUMBER} MiB/sec\)$", True),
    ("reads_per_s", _PER_S, rf"^ *reads/s: +{_NUMBER}$", True),
    ("writes_per_s", _PER_S, rf"^ *writes/s: +{_NUMBER}$", True),
    ("syncs_per_s", _PER_S, rf"^ *fsyncs/s: +{_NUMBER}$", False),
    ("read_bytes_per_s", _MIB_PER_S, rf"^ *read, MiB/s: +{_NUMBER}$", False),
    ("written_bytes_per_s", _MIB_PER_S, rf"^ *written, MiB/s: +{_NUMBER}$", False),
    (
        "transactions_per_s",
        _PER_S,
        rf"^ *transactions: +[0-9]+ +\({_NUMBER} per sec\.\)$",
        True,
    ),
    ("queries_per_s", _PER_S, rf"^ *queries: +[0-9]+ +\({_NUMBER} per sec\.\)$", False),
    ("latency_mean_ns", _MS, rf"^ *avg: +{_NUMBER}$", False),
    ("latency_max_ns", _MS, rf"^ *max: +{_NUMBER}$", False),
)
_PERCENTILE = re.compile(rf"^ *([0-9]+)(?:st|nd|rd|th) percentile: +{_NUMBER}$", re.MULTILINE)
_END = re.compile(r"^ *execution time \(avg/stddev\): ", re.MULTILINE)
_MISSING = (
    "sysbench's latencies have a resolution of 10 µs, and its percentiles come from a histogram "
    "whose bins are 1.8 % wide."
)


def read(source: Source) -> Figures:
    """Returns the figures of every report in a file. ValueError for one that was cut off."""
    text = source.text.replace("\r\n", "\n")
    starts = [match.start() for match in _BEGINNING.finditer(text)]
    ends = [*starts[1:], len(text)]
    rows: list[Row] = []
    for index, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        rows += _report(text[start:end], f"Report {index}")
    return Figures("sysbench", rows, (_MISSING,))


def _report(text: str, place: str) -> Iterator[Row]:
    if "FATAL:" in text:
        line = next(line for line in text.splitlines() if "FATAL:" in line)
        raise ValueError(f"{place.lower()} has the error '{line.strip()[:200]}'")
    if not _END.search(text):
        raise ValueError(f"{place.lower()} was cut off")
    test = next((name for words, name in _TESTS if words in text), "other")
    threads = re.search(r"^Number of threads: ([0-9]+)$", text, re.MULTILINE)
    factors = {"threads": threads.group(1)} if threads else {}
    for metric, unit, pattern, headline in _FIGURES:
        match = re.search(pattern, text, re.MULTILINE)
        # A time of 0 is below the resolution.
        if match and (unit is not _MS or float(match.group(1))):
            value = float(match.group(1))
            yield Row(place, test, metric, value, unit, factors, headline=headline)
    for rank, value in _PERCENTILE.findall(text):
        if float(value):
            yield Row(place, test, f"latency_p{rank}_ns", float(value), _MS, factors)
