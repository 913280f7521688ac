"""Formats all metrics of a result as text tables, for `bench`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from nephoscope.cli.kit import output
from nephoscope.core import units
from nephoscope.core.model import Factors, MetricResult, RunResult, Severity
from nephoscope.report import wording

_STATED = frozenset({Severity.WARNING, Severity.NOTICE})
"""Severities of the findings that stand below the tables."""


def table(result: RunResult) -> str:
    """Returns a table for each setting, followed by the warnings."""
    blocks: dict[str, list[MetricResult]] = {}
    for line in result.metrics:
        blocks.setdefault(_head(line.benchmark, line.factors, line.target, result), []).append(line)
    parts = [
        result.run.question,
        *(f"{head}\n{_lines(metrics)}" for head, metrics in blocks.items()),
    ]
    parts.extend(_notes(result))
    parts.append(wording.run_line(result))
    return "\n\n".join(part for part in parts if part)


def _head(benchmark: str, factors: Factors, target: str, result: RunResult) -> str:
    levels = wording.factors_text(factors)
    where = f" on {target}" if len(result.run.targets) > 1 else ""
    return f"{benchmark}{f' ({levels})' if levels else ''}{where}"


def _lines(metrics: Sequence[MetricResult]) -> str:
    rows = []
    for line in metrics:
        estimate = line.estimate
        text = units.format_interval(estimate.value, estimate.low, estimate.high, estimate.unit)
        value, _, ends = text.partition(" [")
        name = f"  {wording.metric_name(line.metric)}"
        interval = "none" if estimate.low is None or estimate.high is None else f"[{ends}"
        cells = (value, interval, str(estimate.n))
        if estimate.censored:
            cells = wording.estimate_cells(estimate)
        consistency = wording.consistency_text(line.consistency)
        rows.append((name, *cells, consistency))
    return output.table(
        ("  METRIC", "MEDIAN", "INTERVAL", "N", "CONSISTENCY"), rows, right=(1, 2, 3)
    )


def _notes(result: RunResult) -> list[str]:
    """Findings, warnings of metrics, notes on the data, excluded trials: a sentence each."""
    notes = [finding.sentence for finding in result.findings if finding.severity in _STATED]
    notes += wording.by_kind(
        [
            (wording.metric_name(line.metric), note)
            for line in result.metrics
            for note in (*line.warnings, line.estimate.note)
            if note
        ]
    )
    notes += [f"Note: {sentence}" for sentence in result.refused]
    notes += wording.exclusions_by_reason(result)
    return [
        "\n".join(
            textwrap.fill(f"! {note}", output.width(), subsequent_indent="  ")
            for note in dict.fromkeys(notes)
        )
    ]
