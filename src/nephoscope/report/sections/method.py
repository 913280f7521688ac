"""Builds the section on method: everything needed to repeat and to judge the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from nephoscope import catalog
from nephoscope.core import units
from nephoscope.core.model import RunResult, RunSummary
from nephoscope.report import selection, wording
from nephoscope.report.blocks import Block, Column, Section, Table, items

_FACTS = Column.texts("", "")


def build(result: RunResult) -> Section:
    """Facts of the run, notes on the data, warnings, and what each metric means."""
    blocks: list[Block] = [Table(_FACTS, tuple(_facts(result)))]
    counts = Counter(result.refused)  # one setting of many targets has one sentence
    lines = [f"{text} ({n} times)" if n > 1 else text for text, n in counts.items()]
    blocks += items(lines, title="Notes on the data")
    warnings = _warnings(result)
    if warnings:
        blocks += items(wording.by_kind(warnings), title="Warnings")
        pair = Column.texts("metric", "warning")
        blocks.append(Table(pair, tuple(warnings), "All warnings", collapsed=True))
    meanings = _meanings(result)
    if meanings:
        head = Column.texts("metric", "meaning", "method")
        blocks.append(Table(head, tuple(meanings), "Definitions of metrics", collapsed=True))
    return Section("method", "Method", tuple(blocks))


def _facts(result: RunResult) -> list[tuple[str, str]]:
    run = result.run
    versions = [("nephoscope", run.nephoscope), ("probe", run.probe)]
    rows = [
        ("Question", run.question),
        ("Plan", run.plan),
        ("Run", run.id),
        ("Seed", run.seed),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions if version)),
        ("Targets", wording.joined(run.targets)),
        ("Started", run.started_at),
        ("Finished", run.finished_at or "not finished"),
        ("State", run.state),
        ("Rounds", run.rounds),
        ("Trials", ", ".join(f"{count} {name}" for name, count in asdict(run.trials).items())),
        ("Repetitions", _repetitions(result)),
        ("Confidence", units.format_value(run.confidence, "ratio")),
        ("Margin", units.format_value(run.margin, "ratio")),
        ("Time", _time(run)),
        ("Precision", _precision(result)),
        ("Order", "random order within rounds (seeded); each round measures every setting once"),
        ("Stored in", run.path or run.store),
    ]
    return [(name, wording.clean(value)) for name, value in rows if value not in (None, "")]


def _repetitions(result: RunResult) -> str:
    counts = sorted({metric.estimate.n for metric in result.metrics})
    if not counts:
        return ""
    return f"n = {counts[0]}" if len(counts) == 1 else f"n from {counts[0]} to {counts[-1]}"


def _time(run: RunSummary) -> str:
    text = "" if run.spent_s is None else units.format_duration(run.spent_s)
    if run.budget_s is not None:
        of = f"budget of {units.format_duration(run.budget_s)}"
        text = f"{text}, {of}" if text else of
    return text


def _precision(result: RunResult) -> str:
    wide = len(result.run.not_converged)
    parts = [wording.precision_text(result.run.precision)]
    if result.run.converged:
        parts.append("Every headline metric reached the requested precision.")
    else:
        parts.append(f"{wording.plural(wide, 'headline result')} missed the requested precision.")
    return " ".join(part for part in parts if part)


def _warnings(result: RunResult) -> list[tuple[str, str]]:
    """(metric with its setting, warning), and why an interval is missing."""
    out = []
    for metric in selection.natural_order(result.metrics):
        name = wording.full_name(metric.benchmark, metric.metric)
        setting = wording.factors_text(metric.factors)
        notes = [metric.estimate.note] if metric.estimate.note else []
        out += [
            (f"{name}: {setting}" if setting else name, wording.clean(warning))
            for warning in dict.fromkeys((*metric.warnings, *notes))
        ]
    return out


def _meanings(result: RunResult) -> list[tuple[str, str, str]]:
    rows: dict[tuple[str, str], tuple[str, str, str]] = {}
    for metric in result.metrics:
        key = (metric.benchmark, metric.metric)
        if key not in rows:
            doc = _doc(*key)
            name = f"{metric.benchmark} {metric.metric}"
            rows[key] = (wording.clean(name), doc, wording.clean(metric.estimate.method))
    return list(rows.values())


def _doc(benchmark: str, metric: str) -> str:
    """The catalogue's sentence; '–' for what is not native, such as imported metrics."""
    spec = catalog.load().benchmarks.get(benchmark)
    for own in spec.metrics if spec else ():
        stem, _, unit = own.id.rpartition("_")
        if metric == own.id or (metric.startswith(f"{stem}_p") and metric.endswith(f"_{unit}")):
            return wording.clean(own.doc)
    return "–"
