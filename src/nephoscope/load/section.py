"""Requests and errors of the generators of a run, by setting."""

from __future__ import annotations

from collections.abc import Mapping

from nephoscope.load.result import Load, LoadCounts
from nephoscope.model import RunResult, level_name
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Heading, Item, Items, Section, Sentence, Table


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
    blocks: list[Block] = [Sentence("Counts over all valid trials, warm-up included.")]
    blocks.append(Table(head, rows))
    notes = notes_of(load)
    if notes:
        blocks += [Heading("Notes"), Items(tuple(Item(wording.clean(note)) for note in notes))]
    return Section("load", "Load", tuple(blocks))


def errors_text(errors: Mapping[str, int]) -> str:
    """Returns 'none', or '12 timeout, 3 refused'."""
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(errors.items())) or "none"


def notes_of(load: Load) -> list[str]:
    """What trials state about themselves, each sentence with the number of trials."""
    return [
        f"{sentence} ({wording.plural(count, 'trial')} of {line.trials})"
        for line in load.lines
        for sentence, count in line.notes.items()
    ]


def _name(line: LoadCounts) -> str:
    levels = ", ".join(f"{name}={level_name(level)}" for name, level in line.factors.items())
    return f"{line.benchmark} on {line.target}{f' ({levels})' if levels else ''}"
