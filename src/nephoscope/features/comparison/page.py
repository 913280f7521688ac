"""Builds the section of a comparison: of two sides, or of several with one base."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nephoscope.core.grouping import group_by
from nephoscope.core.model import Estimate, factors_key
from nephoscope.features.comparison.compared import Compared
from nephoscope.features.comparison.headlines import of_word
from nephoscope.features.comparison.pair_section import (
    MAX_DIFFERENCES,
    change_cell,
    dot_plot,
    how_to_read,
    notes_of,
    of_two,
    side_text,
    sizes_cell,
    statistics_table,
    word_cell,
)
from nephoscope.features.comparison.result import ComparisonRules, Comparisons
from nephoscope.report import wording
from nephoscope.report.blocks import Block, Column, Heading, Section, Sentence, Table
from nephoscope.report.columns import fact_table, number, table, text
from nephoscope.stats.statistics.values import percent

MAX_ROWS = 60
"""Rows of a table that is not folded away."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A side in the rows of a result: the base, or one that is compared with it."""

    line: Compared
    is_base: bool


@dataclass(frozen=True, slots=True)
class _Fact:
    """A fact of the environment that differs: the text of A, and of each side that differs."""

    what: str
    a: str
    by_side: Mapping[str, str]


def section(
    comparisons: Comparisons, rules: ComparisonRules, direction: str, *, every: bool
) -> Section:
    """Returns the section of a comparison of two sides, or of several with a base.

    direction: which plain numbers are better, or ''. every: with all results and statistics open.
    """
    build = _of_several if len(comparisons.sides) > 1 else of_two
    return build(comparisons, rules, direction, every=every)


def _of_several(
    comparisons: Comparisons, rules: ComparisonRules, direction: str, *, every: bool
) -> Section:
    """Returns the section: for each result the base and every other side.

    direction: which plain numbers are better, or ''. every: with all results and statistics open.
    """
    lines = comparisons.comparisons
    main = [line for line in lines if line.is_headline]
    further = [line for line in lines if not line.is_headline]
    letters = {side: f"B{number}" for number, side in enumerate(comparisons.sides, 1)}
    design = [*dict.fromkeys(line.design for line in lines), f"margin {percent(rules.margin)}"]
    design += [f"{direction} is better"] if direction else []
    rows = [("A", wording.clean(lines[0].a))]
    rows += [(letter, wording.clean(side)) for side, letter in letters.items()]
    blocks: list[Block] = [Sentence(text, lead=True) for text in _outcomes(comparisons, letters)]
    blocks.append(fact_table([*rows, ("Design", "; ".join(design))], aligned=False))
    blocks += _tables(main, letters, "more headline results")
    blocks.append(Sentence(how_to_read(main, rules)))
    blocks += dot_plot(main, lambda line: f"{line.title}, {letters[line.b]}")
    if further:
        blocks.append(Heading("Other results"))
        blocks += [
            Sentence(
                f"{letters[side]} is worse in {len(of_word(own, 'worse'))} and better in "
                f"{len(of_word(own, 'better'))} of {wording.plural(len(own), 'other result')}."
            )
            for side, own in group_by(further, lambda line: line.b).items()
        ]
        blocks.append(_table(further, letters, "All other results", collapsed=not every))
    blocks += _environment(comparisons, letters, every=every)
    blocks += notes_of(comparisons, main[:MAX_ROWS], every=every)
    blocks.append(statistics_table(lines, collapsed=not every))
    return Section("comparison", f"Comparison of {len(letters)} sides with A", tuple(blocks))


def _outcomes(comparisons: Comparisons, letters: dict[str, str]) -> list[str]:
    return [
        wording.clean(re.sub(r"\bB\b", letters[side], sentence))
        for side, sentence in comparisons.conclusions.items()
    ]


def _tables(lines: Sequence[Compared], letters: dict[str, str], noun: str) -> list[Block]:
    kinds = _by_result(lines)
    count = max(1, MAX_ROWS // (1 + len(letters)))
    open_rows = [line for own in kinds[:count] for line in own]
    rest = [line for own in kinds[count:] for line in own]
    tables: list[Block] = [_table(open_rows, letters, "")]
    if rest:
        tables.append(_table(rest, letters, f"{len(kinds) - count} {noun}", collapsed=True))
    return tables


def _by_result(lines: Sequence[Compared]) -> list[list[Compared]]:
    groups = group_by(lines, lambda line: (line.benchmark, line.metric, factors_key(line.factors)))
    return list(groups.values())


def _table(
    lines: Sequence[Compared], letters: dict[str, str], caption: str, *, collapsed: bool = False
) -> Table:
    rows = [
        row
        for own in _by_result(lines)
        for row in (_Row(own[0], True), *(_Row(line, False) for line in own))
    ]
    return table(
        rows,
        text("result", lambda row: row.line.title),
        text("side", lambda row: "A" if row.is_base else letters[row.line.b]),
        number("value", lambda row: side_text(_estimate(row))),
        number("change from A", lambda row: None if row.is_base else change_cell(row.line)),
        text("is", lambda row: "base" if row.is_base else word_cell(row.line)),
        number("n", lambda row: None if row.is_base else sizes_cell(row.line)),
        caption=caption,
        collapsed=collapsed,
        grouped=1,
    )


def _estimate(row: _Row) -> Estimate:
    return row.line.estimate_a if row.is_base else row.line.estimate_b


def _environment(comparisons: Comparisons, letters: dict[str, str], *, every: bool) -> list[Block]:
    """The facts that differ, a row each, with the text of every side; of equal ones that of A."""
    by_fact = group_by(comparisons.differences, lambda difference: difference.what)
    facts = [
        _Fact(what, own[0].a, {difference.side: difference.b for difference in own})
        for what, own in by_fact.items()
    ]
    blocks: list[Block] = []
    if facts:
        count = len(facts) if every else MAX_DIFFERENCES
        blocks = [Heading("Environment"), _fact_rows(facts[:count], letters)]
        if facts[count:]:
            title = "More differences of environment"
            blocks.append(
                replace(_fact_rows(facts[count:], letters), caption=title, collapsed=True)
            )
    if comparisons.unknown:
        blocks.append(Sentence(comparisons.unknown))
    return blocks


def _fact_rows(facts: Sequence[_Fact], letters: dict[str, str]) -> Table:
    return table(
        facts,
        text("environment", lambda row: row.what),
        text("A", lambda row: row.a),
        *(_side_column(side, letter) for side, letter in letters.items()),
    )


def _side_column(side: str, letter: str) -> Column[_Fact]:
    return text(letter, lambda row: row.by_side.get(side, "as A"))
