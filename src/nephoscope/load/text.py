"""The result of `load` as text: rate, latency by percentile, errors, the generator itself."""

from __future__ import annotations

import textwrap

from nephoscope.commands import output
from nephoscope.load.result import Load
from nephoscope.load.section import errors_text, notes_of
from nephoscope.model import RunResult, Severity
from nephoscope.report import wording

_ROWS = (
    ("requests_per_s", "Requests per second"),
    ("latency_p50_ns", "Latency p50"),
    ("latency_p90_ns", "Latency p90"),
    ("latency_p99_ns", "Latency p99"),
    ("latency_p999_ns", "Latency p99.9"),
    ("service_time_p50_ns", "Service time p50"),
    ("service_time_p99_ns", "Service time p99"),
    ("first_byte_p50_ns", "First byte p50"),
    ("connect_p50_ns", "Connecting p50"),
    ("generator_cpus", "CPUs of the generator"),
)


def text(result: RunResult, url: str, head: str) -> str:
    """Returns the load, its table, the errors and the warnings."""
    metrics = {line.metric: line for line in result.metrics if not line.factors}
    rows = [
        (title, *wording.estimate_cells(metrics[metric].estimate))
        for metric, title in _ROWS
        if metric in metrics
    ]
    blocks = [f"{url}\n{textwrap.fill(head, output.width())}"]
    if rows:
        blocks.append(output.table(("", "MEDIAN", "INTERVAL", "N"), rows, right=(1, 2, 3)))
    blocks += [_errors(result), _notes(result)]
    blocks.append(wording.run_line(result))
    return "\n\n".join(block for block in blocks if block)


def _errors(result: RunResult) -> str:
    load = result.part(Load)
    line = load.lines[0] if load is not None else None
    if line is None:
        return ""
    return (
        f"{line.completed_count:,} valid responses of {line.sent_count:,} requests. "
        f"Errors: {errors_text(line.errors_count)}."
    )


def _notes(result: RunResult) -> str:
    sentences = [one.sentence for one in result.findings if one.severity is Severity.WARNING]
    load = result.part(Load)
    sentences += notes_of(load) if load is not None else []
    sentences += [text for text in result.refused if " latency_ns" in text]
    sentences += [f"{one.trial} {one.status.value}: {one.reasons[0]}" for one in result.invalid]
    return "\n".join(
        textwrap.fill(f"! {sentence}", output.width(), subsequent_indent="  ")
        for sentence in dict.fromkeys(sentences)
    )
