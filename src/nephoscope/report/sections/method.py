"""Builds the section on method: everything needed to repeat and to judge the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from nephoscope import catalog
from nephoscope.core import units
from nephoscope.core.model import MetricResult, RunResult, RunSummary
from nephoscope.report import selection, wording
from nephoscope.report.blocks import Block, Section, Table, items
from nephoscope.report.columns import fact_table, table, text


def build(result: RunResult) -> Section:
    """Facts of the run, notes on the data, warnings, and what each metric means."""
    blocks: list[Block] = [fact_table(_facts(result), aligned=False)]
    counts = Counter(result.refused)  # one setting of many targets has one sentence
    lines = [f"{text} ({n} times)" if n > 1 else text for text, n in counts.items()]
    blocks += items(lines, title="Notes on the data")
    warnings = _warnings(result)
    if warnings:
        blocks += items(wording.by_kind(warnings), title="Warnings")
        pairs = table(
            warnings,
            text("metric", lambda pair: pair[0]),
            text("warning", lambda pair: pair[1]),
            caption="All warnings",
            collapsed=True,
        )
        blocks.append(pairs)
    if result.metrics:
        blocks.append(_meanings(result.metrics))
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
        ("Targets", wording.named(run.targets)),
        ("Started", run.started_at),
        ("Finished", run.finished_at or "not finished"),
        ("State", f"{run.state} (partial)" if run.partial else run.state),
        ("Replay", run.recorded),
        ("Rounds", run.rounds),
        ("Trials", ", ".join(f"{count} {name}" for name, count in asdict(run.trials).items())),
        ("Repetitions", _repetitions(result)),
        ("Confidence", units.format_value(run.confidence, "ratio")),
        ("Margin", units.format_value(run.margin, "ratio")),
        ("Time", _time(run)),
        ("Precision", _precision(result)),
        ("Order", "random order within rounds (seeded); each round measures every setting once"),
        ("Stored in", run.path or run.store),
        ("Copied from", ", then ".join(run.merged_from)),
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


def _meanings(metrics: Sequence[MetricResult]) -> Table:
    first = {(metric.benchmark, metric.metric): metric for metric in reversed(metrics)}
    return table(
        [metric for metric in metrics if first[metric.benchmark, metric.metric] is metric],
        text("metric", lambda metric: f"{metric.benchmark} {metric.metric}"),
        text("meaning", lambda metric: _doc(metric.benchmark, metric.metric)),
        text("method", lambda metric: metric.estimate.method),
        caption="Definitions of metrics",
        collapsed=True,
    )


def _doc(benchmark: str, metric: str) -> str:
    """The catalogue's sentence; '–' for what is not native, such as imported metrics."""
    spec = catalog.load().benchmarks.get(benchmark)
    for own in spec.metrics if spec else ():
        stem, _, unit = own.id.rpartition("_")
        if metric == own.id or (metric.startswith(f"{stem}_p") and metric.endswith(f"_{unit}")):
            return wording.clean(own.doc)
    return "–"
