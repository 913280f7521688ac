"""Reports of tools that have an adapter: its parser reads what the tool printed.

A report is recognised by marks of its own text; what the parser refuses is no report that can be
used. Metrics, units and directions are those of the adapter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from nephoscope.adapters import ADAPTERS, Output, ToolError
from nephoscope.catalog import MetricSpec
from nephoscope.model import Sample, Shape
from nephoscope.store.imports.rows import Figures, Merge
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import Unit

MARKS: Mapping[str, str] = {
    "h2load": r"^finished in [0-9.a-z]+, [0-9.]+ req/s",
    "httperf": r"^httperf --",
    "siege": r'^\{?\s*"transactions":(?s:.*?)"longest_transaction"',
    "7zip": r"^7-Zip (?s:.*?)^Avr:",
    "openssl": r"^\+F:[0-9]+:",
    "mbw": r"^(?:AVG|[0-9]+)\s+Method: \S+\s+Elapsed:",
    "c-ray": r"^Rendering took: [0-9]+ seconds",
    "cyclictest": r"^T: *[0-9]+ \( *[0-9]+\) P: *[0-9]+ I:",
    "hackbench": r"^Running in (?:process|threaded) mode with [0-9]+ groups",
    "ramspeed": r"^RAMspeed",
    "dbench": r"^dbench version ",
    "blogbench": r"^Final score for writes",
    "john": r"^Benchmarking: .*\.\.\. DONE",
    "dd": r"^[0-9]+\+[0-9]+ records out",
    "iozone": r"Iozone: Performance Test of File I/O",
    "bonnie": r"^1\.9[0-9],[0-9.a-z]+,",
    "sockperf.tcp": r"^sockperf\[CLIENT\](?s:.*)# TCP",
    "sockperf.udp": r"^sockperf\[CLIENT\](?s:.*)# UDP",
    "ping": r"^PING \S+ ?\(.*bytes of data",
    "perf.pipe": r"Running '?sched/pipe'? benchmark",
    "perf.messaging": r"Running '?sched/messaging'? benchmark",
    "nuttcp": r"^ *(?:megabytes=|[0-9.]+ MB / +[0-9.]+ sec)",
}
"""Name of an adapter -> what only a report of its tool has."""


def marked(text: str) -> str:
    """Returns the adapter whose report a text is; '' for none."""
    head = text[:1_000_000]
    return next((name for name, mark in MARKS.items() if re.search(mark, head, re.MULTILINE)), "")


def read(source: Source) -> Figures:
    """Returns the figures of a report. ValueError with the parser's words for a broken one."""
    name = marked(source.text)
    return read_with(name, source.text)


def read_with(name: str, text: str) -> Figures:
    """Returns the figures of a report of an adapter's tool. ValueError as for `read`."""
    adapter = ADAPTERS[name]
    figures = Figures(adapter.spec.tool or name)
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
    figures: Figures,
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
