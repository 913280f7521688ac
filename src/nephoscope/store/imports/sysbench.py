"""Reports of sysbench 0.4 to 1.1: one, or several one after the other, as repetitions.

PerfKit Benchmarker writes the CPU on which a report was measured before it (`CPU 2 sysbench 1.0`):
those reports are of different CPUs, and no repetitions.
"""

from __future__ import annotations

import re

from nephoscope.store.imports.rows import BYTES_PER_S, MS, PER_S, ImportedFigures
from nephoscope.store.imports.source import Source

_BEGINNING = re.compile(r"^(?:CPU ([0-9]+) )?sysbench v?([0-9]+\.[0-9]+)", re.MULTILINE)
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_MIB_PER_S = BYTES_PER_S._replace(factor=2.0**20)
_GIB_PER_S = BYTES_PER_S._replace(factor=2.0**30)
_KIB_PER_S = BYTES_PER_S._replace(factor=2.0**10)

_TESTS = (
    (("CPU speed:", "CPU performance benchmark"), "cpu"),
    (("memory speed test", "memory operations speed test"), "memory"),
    (("File operations:", "Extra file open flags", "Operations performed:  "), "fileio"),
    (("SQL statistics:", "OLTP test statistics"), "oltp"),
    (("threads test", "thread subsystem performance"), "threads"),
    (("mutex performance test", "mutex"), "mutex"),
)
_FIGURES = (
    # Metric, unit, what stands around the number, headline.
    ("events_per_s", PER_S, rf"^ *events per second: +{_NUMBER}$", True),
    ("operations_per_s", PER_S, rf"^Total operations: [0-9]+ \( *{_NUMBER} per second\)$", False),
    ("operations_per_s", PER_S, rf"^Operations performed: [0-9]+ \( *{_NUMBER} ops/sec\)$", False),
    # Version 0.4 writes MB for 1,048,576 bytes.
    ("transfer_bytes_per_s", _MIB_PER_S, rf"Mi?B transferred \({_NUMBER} Mi?B/sec\)$", True),
    ("reads_per_s", PER_S, rf"^ *reads/s: +{_NUMBER}$", True),
    ("writes_per_s", PER_S, rf"^ *writes/s: +{_NUMBER}$", True),
    ("syncs_per_s", PER_S, rf"^ *fsyncs/s: +{_NUMBER}$", False),
    ("read_bytes_per_s", _MIB_PER_S, rf"^ *read, MiB/s: +{_NUMBER}$", False),
    ("written_bytes_per_s", _MIB_PER_S, rf"^ *written, MiB/s: +{_NUMBER}$", False),
    ("requests_per_s", PER_S, rf"^ *{_NUMBER} Requests/sec executed$", True),
    ("transfer_bytes_per_s", _GIB_PER_S, rf"Total transferred \S+ +\({_NUMBER}Gb/sec\)$", False),
    ("transfer_bytes_per_s", _MIB_PER_S, rf"Total transferred \S+ +\({_NUMBER}Mb/sec\)$", False),
    ("transfer_bytes_per_s", _KIB_PER_S, rf"Total transferred \S+ +\({_NUMBER}Kb/sec\)$", False),
    (
        "transactions_per_s",
        PER_S,
        rf"^ *transactions: +[0-9]+ +\({_NUMBER} per sec\.\)$",
        True,
    ),
    (
        "queries_per_s",
        PER_S,
        rf"^ *(?:queries|read/write requests): +[0-9]+ +\({_NUMBER} per sec\.\)$",
        False,
    ),
    ("latency_mean_ns", MS, rf"^ *avg: +{_NUMBER}(?:ms)?$", False),
    ("latency_max_ns", MS, rf"^ *max: +{_NUMBER}(?:ms)?$", False),
)
_PERCENTILE = re.compile(
    rf"^ *(?:approx\. +)?([0-9]+)(?:st|nd|rd|th)? percentile: +{_NUMBER}(?:ms)?$", re.MULTILINE
)
_WITHOUT_RATE = frozenset({"cpu", "threads", "mutex", "other"})
"""Tests of which versions before 1.0 state events and time, and no rate."""
_END = re.compile(r"^ *execution time \(avg/stddev\): ", re.MULTILINE)
_TOTAL_S = re.compile(rf"^ *total time: +{_NUMBER}s$", re.MULTILINE)
_EVENTS = re.compile(rf"^ *total number of events: +{_NUMBER}$", re.MULTILINE)
_MISSING = (
    "sysbench's latencies have a resolution of 10 µs, and its percentiles come from a histogram "
    "whose bins are 1.8 % wide; its minimum, its sum and its fairness of threads are not imported."
)


def is_sysbench(text: str) -> bool:
    """States whether a text has a report of sysbench."""
    match = _BEGINNING.search(text[:100_000])
    return match is not None and (
        "Number of threads:" in text or "FATAL:" in text or len(text) < 200
    )


def read(source: Source) -> ImportedFigures:
    """Returns the figures of every report in a file; one that was cut off is left out."""
    text = source.text
    starts = list(_BEGINNING.finditer(text))
    ends = [*(match.start() for match in starts[1:]), len(text)]
    figures = ImportedFigures("sysbench", missing=[_MISSING])
    for index, (match, end) in enumerate(zip(starts, ends, strict=True), start=1):
        factors = {"cpu": match.group(1)} if match.group(1) else {}
        _add_report(figures, text[match.start() : end], f"Report {index}", factors)
    return figures


def _add_report(figures: ImportedFigures, text: str, place: str, factors: dict[str, str]) -> None:
    if "FATAL:" in text:
        line = next(line for line in text.splitlines() if "FATAL:" in line)
        figures.left_out.append(f"{place}: it has the error '{line.strip()[:200]}'")
        return
    if not _END.search(text):
        figures.left_out.append(f"{place}: it was cut off")
        return
    test = next((name for words, name in _TESTS if any(word in text for word in words)), "other")
    threads = re.search(r"^Number of threads: ([0-9]+)$", text, re.MULTILINE)
    factors = {**factors, "threads": threads.group(1)} if threads else factors
    seen: set[str] = set()
    if test in _WITHOUT_RATE and not re.search(_FIGURES[0][2], text, re.MULTILINE):
        _add_rate(figures, text, place, test, factors)
    for metric, unit, pattern, headline in _FIGURES:
        match = re.search(pattern, text, re.MULTILINE)
        # A time of 0 is below the resolution.
        if match and metric not in seen and (unit is not MS or float(match.group(1))):
            seen.add(metric)
            value = float(match.group(1))
            figures.add(place, test, metric, value, unit, factors=factors, headline=headline)
    for rank, value in _PERCENTILE.findall(text):
        if float(value):
            metric = f"latency_p{rank}_ns"
            figures.add(place, test, metric, float(value), MS, factors=factors)


def _add_rate(
    figures: ImportedFigures, text: str, place: str, test: str, factors: dict[str, str]
) -> None:
    """Adds events per second of versions that state events and time only."""
    total, events = _TOTAL_S.search(text), _EVENTS.search(text)
    if total is None or events is None or not float(total.group(1)):
        return
    rate = float(events.group(1)) / float(total.group(1))
    figures.add(place, test, "events_per_s", rate, PER_S, factors=factors, headline=True)
    words = "This version of sysbench states no rate: its events are divided by its total time."
    if words not in figures.missing:
        figures.missing.append(words)
