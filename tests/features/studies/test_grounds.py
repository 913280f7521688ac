"""The ground of every comparison: declared, like for like, and circular ones outside all counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.features.studies.test_side_by_side import COMPLETE

from nephoscope.features.studies.catalogue import load_all
from nephoscope.features.studies.comparison import conclusions, rules
from nephoscope.features.studies.comparison.published import ReferenceFigure
from nephoscope.features.studies.comparison.rules import REPRODUCED, Mark, Range
from nephoscope.features.studies.comparison.side_by_side import ComparisonOutcome
from nephoscope.features.studies.definition.layouts import TableLayout
from nephoscope.features.studies.definition.selectors import Cell, MeasuredFigure, MetricSelection
from nephoscope.features.studies.definition.study import (
    CIRCULAR,
    IN_NUMBER,
    Conclusion,
    Part,
    Study,
    StudyComparison,
)

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "studies.md"


def comparisons() -> Iterator[tuple[str, Part, StudyComparison]]:
    for study in load_all():
        for part in study.definition.parts:
            for entry in part.comparisons:
                yield f"{study.name}/{part.name}/{entry.id}", part, entry


def test_a_comparison_without_a_ground_is_refused() -> None:
    without = {key: value for key, value in COMPLETE.items() if key != "ground"}
    with pytest.raises(ValidationError, match="ground"):
        StudyComparison.model_validate(without)
    for unknown in ("in number", ""):
        with pytest.raises(ValidationError, match="same mechanism"):
            StudyComparison.model_validate({**COMPLETE, "ground": unknown})


def test_the_guide_states_how_many_comparisons_have_each_ground() -> None:
    counts = Counter(entry.ground for _, _, entry in comparisons())
    stated = {
        name: int(number)
        for name, number in re.findall(r"\| \*\*([a-z ]+)\*\* \|.*\| (\d+) \|", GUIDE.read_text())
    }
    assert stated == dict(counts)


@pytest.mark.parametrize("words", [r"\b(inferred|infers|chosen|fitted)\b", r"\bis set\b"])
def test_what_was_inferred_or_set_here_counts_as_no_reproduction(words: str) -> None:
    wrong = [
        name
        for name, _, entry in comparisons()
        if entry.ground in IN_NUMBER and re.search(words, f"{entry.why} {entry.margin_why}")
    ]
    assert not wrong, f"{words}: {wrong}"


def sides(entry: StudyComparison) -> Iterator[tuple[Cell, MetricSelection | None]]:
    """Each published number of a comparison with the selection that answers it."""
    measured = entry.measured
    if measured is None:
        return
    if entry.published.cell:
        yield entry.published.cell, None
    for cells, side in (
        (entry.published.numerator, measured.numerator),
        (entry.published.denominator, measured.denominator),
    ):
        for cell in cells or ():
            yield cell, side


def differs(
    layout: TableLayout, cell: Cell, figure: MeasuredFigure, side: MetricSelection | None
) -> str:
    """What a comparison measures otherwise than the table does at the same published number."""
    row, column = layout.rows.get(cell[0]), layout.columns.get(cell[1])
    own_target = (side.target if side else "") or figure.target
    if row is None or column is None or not own_target:
        return ""
    target = column.target or row.target or layout.measured.target
    return f"{cell} is {target} in the table and {own_target} here" if target != own_target else ""


def test_comparisons_and_tables_answer_a_published_number_by_the_same_target() -> None:
    """Two sites over the American one are not two sites over the European one."""
    checked, wrong = 0, []
    for name, part, entry in comparisons():
        for layout in part.tables:
            if layout.table != entry.published.table or entry.measured is None:
                continue
            for cell, side in sides(entry):
                checked += 1
                if text := differs(layout, cell, entry.measured, side):
                    wrong.append(f"{name}: {text}")
    assert checked >= 20
    assert not wrong, wrong


def test_like_for_like_finds_another_denominator() -> None:
    part = next(
        part for name, part, entry in comparisons() if name == "delgado-2010/consistent/asia-two"
    )
    entry = next(entry for entry in part.comparisons if entry.id == "asia-two")
    assert entry.measured is not None
    other = entry.measured.model_copy(update={"denominator": MetricSelection(target="eu")})
    (layout,) = part.tables
    cell = entry.published.denominator[0] if entry.published.denominator else ("", "")
    assert "is us in the table and eu here" in differs(layout, cell, other, other.denominator)


@pytest.mark.parametrize("mark", [Mark.FITTED, Mark.SET])
def test_circular_figures_are_outside_the_counts(mark: Mark) -> None:
    assert mark.value in CIRCULAR
    assert mark not in REPRODUCED
    inside = rules.in_number(75.0, None, Range(74.9, 75.1), margin=0.02, neutral=None)
    outside = rules.in_number(75.0, None, Range(60.0, 61.0), margin=0.02, neutral=None)
    wide = rules.in_number(75.0, None, Range(60.0, 90.0), margin=0.02, neutral=None)
    assert rules.circular(mark, inside)[0] is mark
    found, reason = rules.circular(mark, outside)
    assert found is mark
    assert "beyond" in reason
    assert rules.circular(mark, wide)[0] is Mark.NOT_COMPARABLE


def test_a_conclusion_on_a_fitted_figure_is_not_reproduced() -> None:
    study = Study.model_construct(
        conclusions=(Conclusion(id="c", claim="c", comparisons=("p/a", "p/b"), why="w"),)
    )
    figure = ReferenceFigure.__new__(ReferenceFigure)
    outcomes = [
        ComparisonOutcome("p", "a", "", "same mechanism", "", Mark.IN_NUMBER, "", figure),
        ComparisonOutcome("p", "b", "", "fitted", "", Mark.FITTED, "", figure),
    ]
    (concluded,) = conclusions.conclude(study, outcomes)
    assert concluded.mark is Mark.NOT_COMPARABLE
    assert "fitted or set here: p/b" in concluded.sentence


@pytest.mark.parametrize(
    ("side", "ours", "mark"),
    [
        ("at least", Range(7.4, 7.8), Mark.CONTRADICTED),
        ("at least", Range(17.4, 20), Mark.IN_KIND),
        ("at least", Range(16, 20), Mark.NOT_COMPARABLE),
        ("at most", Range(7.4, 7.8), Mark.IN_KIND),
        ("at most", Range(18, 20), Mark.CONTRADICTED),
    ],
)
def test_a_bound_that_is_missed_is_contradicted(side: str, ours: Range, mark: Mark) -> None:
    assert rules.by_bound(17.4, side, ours)[0] is mark


def test_the_break_even_is_a_bound() -> None:
    (entry,) = [
        entry for name, _, entry in comparisons() if name == "zhuang-2012/selection/break-even"
    ]
    assert entry.published.bound == "at least"
