"""Formats all metrics of a result as text tables, for `bench`."""

from __future__ import annotations

from collections.abc import Sequence

from nephoscope.cli.kit import output
from nephoscope.core import units
from nephoscope.core.grouping import group_by
from nephoscope.core.model import Factors, MetricResult, RunResult, Severity
from nephoscope.core.naming import common_factors
from nephoscope.core.setting_tree import tree_of
from nephoscope.report import wording

_STATED = frozenset({Severity.WARNING, Severity.NOTICE})
"""Severities of the findings that stand below the tables."""


def table(result: RunResult) -> str:
    """Returns a table for each benchmark and target, with settings as a tree; then the warnings."""
    blocks = group_by(result.metrics, lambda line: (line.benchmark, line.target))
    parts = [result.run.question]
    for (benchmark, target), own in blocks.items():
        common = common_factors([line.factors for line in own])
        parts.append(f"{_head(benchmark, common, target, result)}\n{_lines(own, common)}")
    parts.extend(_notes(result))
    parts.append(wording.run_line(result))
    return "\n\n".join(part for part in parts if part)


def _head(benchmark: str, factors: Factors, target: str, result: RunResult) -> str:
    levels = wording.factors_text(factors)
    where = f" on {target}" if len(result.run.targets) > 1 else ""
    return f"{benchmark}{f' ({levels})' if levels else ''}{where}"


def _lines(metrics: Sequence[MetricResult], common: Factors) -> str:
    rows: list[tuple[str, ...]] = []
    for metric, own in group_by(metrics, lambda line: line.metric).items():
        name = f"  {wording.metric_name(metric)}"
        if len(own) == 1:
            setting = wording.factors_text(own[0].factors, leave_out=common)
            rows.append((f"{name} ({setting})" if setting else name, *_cells(own[0])))
            continue
        rows.append((name, "", "", "", ""))
        for leaf in tree_of([line.factors for line in own]):
            cells = ("", "", "", "") if leaf.index is None else _cells(own[leaf.index])
            rows.append((f"    {leaf.label}", *cells))
    return output.table(("  METRIC", "MEDIAN", "INTERVAL", "N", "CV"), rows, right=(1, 2, 3))


def _cells(line: MetricResult) -> tuple[str, str, str, str]:
    estimate = line.estimate
    text = units.format_interval(estimate.value, estimate.low, estimate.high, estimate.unit)
    value, _, ends = text.partition(" [")
    interval = "none" if estimate.low is None or estimate.high is None else f"[{ends}"
    cells = (value, interval, str(estimate.n))
    if estimate.censored:
        cells = wording.estimate_cells(estimate)
    return (*cells, wording.consistency_text(line.consistency))


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
    return ["\n".join(output.wrapped(f"! {note}") for note in dict.fromkeys(notes))]
