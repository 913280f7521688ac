"""Builds the section on method: everything needed to repeat and to judge the run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope import catalog, units
from nephoscope.errors import NephoscopeError
from nephoscope.model import RunResult
from nephoscope.report import selection, wording
from nephoscope.report.blocks import Block, Column, Heading, Item, Items, Section, Table

_FACTS = (Column(""), Column(""))


def build(result: RunResult) -> Section:
    """Facts of the run, refused statistics, warnings, and what each metric means."""
    blocks: list[Block] = [Table(_FACTS, tuple(_facts(result)))]
    if result.refused:
        blocks += [Heading("Unavailable statistics"), _list(result.refused)]
    warnings = _warnings(result)
    if warnings:
        blocks += [Heading("Warnings (marked * above)"), _list(_by_kind(warnings))]
        pair = (Column("metric"), Column("warning"))
        blocks.append(Table(pair, tuple(warnings), "All warnings", collapsed=True))
    meanings = _meanings(result)
    if meanings:
        head = (Column("metric"), Column("meaning"), Column("method"))
        blocks.append(Table(head, tuple(meanings), "Definitions of metrics", collapsed=True))
    return Section("method", "Method", tuple(blocks))


def _list(lines: tuple[str, ...] | list[str]) -> Items:
    return Items(tuple(Item(wording.clean(line)) for line in lines))


def _facts(result: RunResult) -> list[tuple[str, str]]:
    run = result.run
    rows = [
        ("Question", run.get("question")),
        ("Plan", run.get("plan")),
        ("Run", run.get("id")),
        ("Seed", run.get("seed")),
        ("Versions", _versions(run)),
        ("Targets", wording.joined(_names(run.get("targets")))),
        ("Started", run.get("started_at")),
        ("Finished", run.get("finished_at") or "not finished"),
        ("State", run.get("state")),
        ("Rounds", run.get("rounds")),
        ("Trials", _trials(run.get("trials"))),
        ("Repetitions", _repetitions(result)),
        ("Confidence", _ratio(run.get("confidence"))),
        ("Margin", _ratio(run.get("margin"))),
        ("Time", _time(run)),
        ("Precision", _precision(result)),
        ("Order", "random order within rounds (seeded); each round measures every setting once"),
        ("Stored in", run.get("path") or run.get("store")),
    ]
    return [(name, wording.clean(value)) for name, value in rows if value not in (None, "")]


def _names(targets: Any) -> list[str]:
    """Names of targets, given as names, as mappings with a name, or as one mapping by name."""
    if isinstance(targets, Mapping):
        return [str(name) for name in targets]
    if not isinstance(targets, list | tuple):
        return []
    return [str(t.get("name", "?")) if isinstance(t, Mapping) else str(t) for t in targets]


def _versions(run: Mapping[str, Any]) -> str:
    parts = [("nephoscope", run.get("nephoscope")), ("probe", run.get("probe"))]
    return ", ".join(f"{name} {version}" for name, version in parts if version)


def _trials(trials: Any) -> str:
    if not isinstance(trials, Mapping):
        return ""
    return ", ".join(f"{count} {name}" for name, count in trials.items())


def _repetitions(result: RunResult) -> str:
    counts = sorted({metric.estimate.n for metric in result.metrics})
    if not counts:
        return ""
    return f"n = {counts[0]}" if len(counts) == 1 else f"n from {counts[0]} to {counts[-1]}"


def _ratio(value: Any) -> str:
    return units.format_value(value, "ratio") if isinstance(value, int | float) else ""


def _time(run: Mapping[str, Any]) -> str:
    spent, budget = run.get("spent_s"), run.get("budget_s")
    text = f"{units.format_duration(spent)}" if isinstance(spent, int | float) else ""
    if isinstance(budget, int | float):
        of = f"budget of {units.format_duration(budget)}"
        text = f"{text}, {of}" if text else of
    return text


def _precision(result: RunResult) -> str:
    converged = result.run.get("converged")
    wide = len(result.run.get("not_converged") or ())
    parts = [wording.precision_text(result.metrics)]
    if converged is True:
        parts.append("Every headline metric reached the requested precision.")
    elif converged is False:
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


def _by_kind(warnings: Sequence[tuple[str, str]]) -> list[str]:
    """One line for warnings that differ in their numbers only, with an example."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, warning in warnings:
        kinds.setdefault(re.sub(r"\d[\d.,]*", "#", warning), []).append((name, warning))
    lines = []
    for own in kinds.values():
        name, warning = own[0]
        more = f", and {len(own) - 1} more of this kind" if len(own) > 1 else ""
        lines.append(f"{warning} ({name}{more})")
    return lines


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
    try:
        known = {one.id: one.doc for one in catalog.load().benchmark(benchmark).metrics}
    except NephoscopeError:
        return "–"
    for name, doc in known.items():
        stem, _, unit = name.rpartition("_")
        if metric == name or (metric.startswith(f"{stem}_p") and metric.endswith(f"_{unit}")):
            return wording.clean(doc)
    return "–"
