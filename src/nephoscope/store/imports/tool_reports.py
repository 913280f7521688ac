"""Reports of tools that have an adapter: its parser reads what the tool printed.

A report is recognised by marks of its own text; what the parser refuses is no report that can be
used. Metrics, units and directions are those of the adapter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from nephoscope.catalog import MetricSpec
from nephoscope.catalog.adapters import ADAPTERS, Output, ToolError
from nephoscope.core.model import Sample, Shape
from nephoscope.store.imports.rows import ImportedFigures, Merge
from nephoscope.store.imports.units import Unit

MARKS: Mapping[str, tuple[str, ...]] = {
    "h2load": (r"^finished in [0-9.a-z]+, [0-9.]+ req/s",),
    "httperf": (r"^httperf --",),
    "siege": (r'^\{?[ \t]*"transactions":', r'"longest_transaction":'),
    "7zip": (r"^7-Zip ", r"^Avr:"),
    "openssl": (r"^\+F:[0-9]+:",),
    "mbw": (r"^(?:AVG|[0-9]+)[ \t]+Method: \S+[ \t]+Elapsed:",),
    "c-ray": (r"^Rendering took: [0-9]+ seconds",),
    "cyclictest": (r"^T: *[0-9]+ \( *[0-9]+\) P: *[0-9]+ I:",),
    "hackbench": (r"^Running in (?:process|threaded) mode with [0-9]+ groups",),
    "ramspeed": (r"^RAMspeed",),
    "dbench": (r"^dbench version ",),
    "blogbench": (r"^Final score for writes",),
    "john": (r"^Benchmarking: .*\.\.\. DONE",),
    "dd": (r"^[0-9]+\+[0-9]+ records out",),
    "iozone": (r"Iozone: Performance Test of File I/O",),
    "bonnie": (r"^1\.9[0-9],[0-9.a-z]+,",),
    "sockperf.tcp": (r"^sockperf\[CLIENT\]", r"# TCP$"),
    "sockperf.udp": (r"^sockperf\[CLIENT\]", r"# UDP$"),
    "ping": (r"^PING \S{1,255} ?\(.{0,255}?bytes of data",),
    "perf.pipe": (r"Running '?sched/pipe'? benchmark",),
    "perf.messaging": (r"Running '?sched/messaging'? benchmark",),
    "nuttcp": (r"^ *megabytes=",),
}
"""Name of an adapter -> patterns that all match in a report of its tool.

They are searched one by one, so that the time grows with the size of the text only.
"""
_HEAD = 1_000_000


def is_report(name: str, text: str) -> bool:
    """States whether a text has the marks of a report of an adapter's tool."""
    head = text[:_HEAD]
    return all(re.search(mark, head, re.MULTILINE) for mark in MARKS[name])


def read_with(name: str, text: str) -> ImportedFigures:
    """Returns the figures of a report of an adapter's tool. ValueError as for `read`."""
    adapter = ADAPTERS[name]
    figures = ImportedFigures(adapter.spec.tool or name)
    metrics = adapter.spec.metrics
    add_samples(figures, "The report", parsed(name, text), metrics)
    if any(metric.shape is Shape.HISTOGRAM for metric in metrics):
        figures.missing.append(
            "Single values, which depend on one another, are not imported; `nephoscope network "
            "series` reads round trips."
        )
    return figures


def parsed(name: str, text: str) -> list[Sample]:
    """Returns the samples of a report. ValueError with the parser's words."""
    adapter = ADAPTERS[name]
    text = text if text.endswith("\n") else f"{text}\n"
    try:
        return adapter.parse(Output(text))
    except ToolError as on_stdout:
        try:  # some tools report on standard error, which a file does not tell apart
            return adapter.parse(Output("", text))
        except ToolError:
            raise ValueError(str(on_stdout).rstrip(".")) from None


def add_samples(
    figures: ImportedFigures,
    place: str,
    samples: Sequence[Sample],
    metrics: Sequence[MetricSpec],
    factors: Mapping[str, str] | None = None,
) -> None:
    """Adds samples of an adapter with the units and directions of their metrics."""
    known = {metric.id: metric for metric in metrics}
    for sample in samples:
        metric = known.get(sample.metric)
        if metric is None or metric.shape is not Shape.SCALAR:
            continue
        merge = None
        if metric.id.endswith("_max_ns"):
            merge = Merge.MAXIMUM
        elif metric.id.endswith("_min_ns"):
            merge = Merge.MINIMUM
        figures.add(
            *(place, "", metric.id, sample.value),
            Unit(metric.unit, 1.0, metric.better, metric.share),
            factors={**(factors or {}), **{key: str(v) for key, v in sample.factors.items()}},
            headline=metric.headline,
            merge=merge,
        )
