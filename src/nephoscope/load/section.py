"""Counts and measurements of the request generators of a run, as a section of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nephoscope.load import charts, tools
from nephoscope.load.result import Load, LoadCounts
from nephoscope.model import RunResult
from nephoscope.naming import level_name
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Section, Sentence, Table, items


def build(result: RunResult) -> Section | None:
    """Requests sent and answered, failed ones by kind, and what the trials state."""
    load = result.part(Load)
    if load is None:
        return None
    head = (
        Column("load"),
        *Column.numbers("trials", "requests sent", "valid responses"),
        Column("errors"),
    )
    rows = tuple(
        (
            wording.clean(_name(line)),
            str(line.trials),
            f"{line.sent_count:,}",
            f"{line.completed_count:,}",
            wording.clean(errors_text(line.errors_count)),
        )
        for line in load.lines
    )
    blocks: list[Block] = [*charts.by_load(result), *charts.by_configuration(result)]
    blocks += tools.build(result)
    blocks += [Sentence("Counts over all valid trials, warm-up included."), Table(head, rows)]
    blocks += items(notes_of(load), title="Notes")
    return Section("load", "Load", tuple(blocks))


def answer(result: RunResult) -> list[str]:
    """Returns how many requests had a valid response, and which errors the others had."""
    load = result.part(Load)
    if load is None:
        return []
    errors: Counter[str] = Counter()
    for line in load.lines:
        errors.update(line.errors_count)
    sent = sum(line.sent_count for line in load.lines)
    completed = sum(line.completed_count for line in load.lines)
    return [
        wording.clean(
            f"{completed:,} valid responses of {sent:,} requests; errors: {errors_text(errors)}."
        )
    ]


def errors_text(errors: Mapping[str, int]) -> str:
    """Returns 'none', or '12 timeout, 3 refused'."""
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(errors.items())) or "none"


def notes_of(load: Load) -> list[str]:
    """Returns what trials state about themselves, each sentence with the number of trials."""
    return [
        f"{sentence} ({wording.plural(count, 'trial')} of {line.trials})"
        for line in load.lines
        for sentence, count in line.notes.items()
    ]


def _name(line: LoadCounts) -> str:
    levels = ", ".join(f"{name}={level_name(level)}" for name, level in line.factors.items())
    return f"{line.benchmark} on {line.target}{f' ({levels})' if levels else ''}"
