"""The result of `load` as text: rate, latency by percentile, errors, the generator itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nephoscope.cli.kit import output
from nephoscope.core.model import RunResult, Severity
from nephoscope.features.load import generator_table, sentences
from nephoscope.features.load.result import LoadAnalysis, LoadCounts
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
    counts = _counts(result)
    verdict = sentences.overload(counts) if counts else ""
    blocks = [f"{url}\n{output.wrapped(head, rest='')}"]
    blocks.append(output.wrapped(verdict, rest=""))
    if rows:
        blocks.append(output.table(("", "MEDIAN", "INTERVAL", "N"), rows, right=(1, 2, 3)))
    if counts:
        conclusions = [sentences.became(counts), sentences.bounds(counts)]
        blocks.append(output.wrapped(" ".join(filter(None, conclusions)), rest=""))
    blocks += accounts(result)
    blocks += [_notes(result, verdict), wording.run_line(result)]
    return "\n\n".join(block for block in blocks if block)


def accounts(result: RunResult) -> list[str]:
    """Returns the counts of generators that shared the load, that they add up, and who failed."""
    load = result.part(LoadAnalysis)
    blocks: list[str] = []
    for shared in load.shared if load is not None else ():
        listing = generator_table.listing(shared)
        right = [place for place, column in enumerate(listing.columns) if column.numeric]
        heads = [column.title.upper() for column in listing.columns]
        rows = [tuple(map(str, row)) for row in listing.rows]
        blocks.append(output.table(heads, rows, right=right))
        sentence = " ".join((sentences.conservation(shared), sentences.starts(shared)))
        blocks.append(output.wrapped(sentence.strip(), rest=""))
        blocks.append(_as_notes(sentences.limits(shared)))
    return [block for block in blocks if block]


def _counts(result: RunResult) -> LoadCounts | None:
    load = result.part(LoadAnalysis)
    return load.lines[0] if load is not None and load.lines else None


def _notes(result: RunResult, lead: str) -> str:
    """Warnings, notes and excluded trials. lead: the sentence that stands above already."""
    notes = [
        finding.sentence for finding in result.findings if finding.severity is Severity.WARNING
    ]
    load = result.part(LoadAnalysis)
    notes += sentences.notes_of(load) if load is not None else []
    latency = re.compile(r"^\S+ latency( \(|:)")  # `line_name` of latency_ns
    notes += [text for text in result.refused if latency.match(text)]
    notes += wording.exclusions_by_reason(result)
    return _as_notes([note for note in dict.fromkeys(notes) if note != lead])


def _as_notes(notes: Sequence[str]) -> str:
    return "\n".join(output.wrapped(f"! {note}") for note in notes)
