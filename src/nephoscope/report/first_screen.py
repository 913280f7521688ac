"""Prints a result on one screen: machine, headline results, main findings, next step."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from nephoscope.core.model import BUSY_MACHINE, RunResult, RunSummary
from nephoscope.report import summary, terminal_output, wording
from nephoscope.report.blocks import Block, Item, Items, Section, Sentence
from nephoscope.report.sections import findings
from nephoscope.store import Store

MAX_LINES = 27

_ALL = summary.MAX_TILES
_SIZES = (
    *((count, _ALL, 3) for count in (5, 4, 3, 2)),
    (1, _ALL, 2),
    *((1, figures, 1) for figures in (6, 4, 3)),
)
"""Findings, headline results, and sentences of the answer and on machines that are shown: the first
that fit are taken."""


def render(title: str, result: RunResult, *, colour: bool, width: int) -> str:
    """Returns the text; the findings are as many as MAX_LINES have room for, at least one."""
    text = ""
    for count, figures, machines in _SIZES:
        section = Section("summary", "Summary", _blocks(result, count, figures, machines))
        text = terminal_output.render(title, [section], colour=colour, width=width)
        if text.count("\n") <= MAX_LINES:
            break
    return text


def _blocks(result: RunResult, count: int, figures: int, machines: int) -> Sequence[Block]:
    blocks = summary.opening(result, machines, machines, figures)
    blocks += _findings(result, count)
    blocks.append(Sentence(summary.next_step(result)))
    blocks.append(Sentence(summary.coverage(result)))
    if result.run.id:
        blocks.append(Sentence(f"All results: `{_command(result.run)}`"))
    return blocks


def _command(run: RunSummary) -> str:
    """Returns the command that prints the whole report."""
    words = f"nephoscope show {wording.clean(run.id)} --full-report"
    is_default = not run.store or run.store == Store().address
    return words if is_default else f"{words} --store {shlex.quote(run.store)}"


def _findings(result: RunResult, limit: int) -> list[Block]:
    """Returns the gravest findings without their evidence."""
    # The summary above begins with the one on a busy machine.
    every = [finding for finding in findings.merged(result) if finding.id != BUSY_MACHINE]
    if not every:
        return [Sentence(f"No anomalies found in {wording.plural(len(result.metrics), 'metric')}.")]
    items = [
        Item(wording.clean(finding.sentence), finding.severity.value) for finding in every[:limit]
    ]
    more = len(every) - limit
    rest = [Item(f"{wording.plural(more, 'more finding')} in the full report")] if more > 0 else []
    return [Items((*items, *rest))]
