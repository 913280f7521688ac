"""The rules of reproduction on cases whose answer is known."""

from __future__ import annotations

import pytest

from nephoscope.features.studies.comparison import rules
from nephoscope.features.studies.comparison.rules import Mark, Range


@pytest.mark.parametrize(
    ("ours", "margin", "neutral", "mark"),
    [
        (Range(74.0, 76.0), 0.02, None, Mark.IN_NUMBER),  # inside 73.5 to 76.5
        (Range(73.6, 76.4), 0.02, None, Mark.IN_NUMBER),
        (Range(73.0, 75.5), 0.02, None, Mark.IN_NUMBER),  # crosses the edge, holds 75, is narrow
        (Range(72.0, 78.0), 0.02, None, Mark.NOT_COMPARABLE),  # holds 75, and is too wide
        (Range(72.0, 74.0), 0.02, None, Mark.NOT_COMPARABLE),  # across the edge, without 75
        (Range(71.2, 71.6), 0.02, None, Mark.CONTRADICTED),
        (Range(71.2, 71.6), 0.02, 100, Mark.IN_KIND),  # below 100 as theirs is
        (Range(101.0, 102.0), 0.02, 100, Mark.CONTRADICTED),  # on the other side of 100
        (Range(99.0, 101.0), 0.02, 100, Mark.CONTRADICTED),  # holds 100: no direction
    ],
)
def test_in_number(ours: Range, margin: float, neutral: float | None, mark: Mark) -> None:
    assert rules.in_number(75.0, None, ours, margin=margin, neutral=neutral)[0] is mark


def test_their_own_interval_widens_the_margin() -> None:
    ours = Range(1.05, 1.06)
    alone = rules.in_number(1.02, None, ours, margin=0.01, neutral=None)[0]
    beside = rules.in_number(1.02, Range(0.98, 1.07), ours, margin=0.01, neutral=None)[0]
    assert (alone, beside) == (Mark.CONTRADICTED, Mark.IN_NUMBER)


@pytest.mark.parametrize(
    ("theirs", "ours", "negligible", "mark"),
    [
        (1.02, Range(1.30, 1.50), None, Mark.IN_KIND),  # another size, the same direction
        (1.02, Range(1.001, 1.002), None, Mark.IN_KIND),
        (1.02, Range(0.90, 0.95), None, Mark.CONTRADICTED),
        (1.02, Range(0.99, 1.03), None, Mark.NOT_COMPARABLE),
        (1.02, Range(0.999, 1.001), None, Mark.NOT_COMPARABLE),
        (1.02, Range(0.999, 1.001), 0.01, Mark.CONTRADICTED),  # no effect that matters here
        (1.005, Range(0.999, 1.001), 0.01, Mark.NOT_COMPARABLE),  # theirs does not matter either
        (0.95, Range(0.80, 0.90), None, Mark.IN_KIND),
        (1.00, Range(1.10, 1.20), None, Mark.NOT_COMPARABLE),  # they saw none
    ],
)
def test_in_kind(theirs: float, ours: Range, negligible: float | None, mark: Mark) -> None:
    assert rules.in_kind(theirs, ours, neutral=1.0, negligible=negligible)[0] is mark


@pytest.mark.parametrize(
    ("steps", "mark", "word"),
    [
        ([Range(1.1, 1.2), Range(1.5, 1.6)], Mark.IN_KIND, "each"),
        ([Range(1.1, 1.2), Range(0.9, 1.1)], Mark.NOT_COMPARABLE, "b and c"),
        ([Range(0.9, 1.1), Range(0.8, 0.9)], Mark.CONTRADICTED, "b is below c"),
    ],
)
def test_in_order(steps: list[Range], mark: Mark, word: str) -> None:
    found, reason = rules.in_order(("a", "b", "c"), steps)
    assert found is mark
    assert word in reason


@pytest.mark.parametrize("reason_of", ["number", "kind"])
def test_undecided_is_told_as_too_wide(reason_of: str) -> None:
    wide = Range(0.5, 2.0)
    if reason_of == "number":
        mark, reason = rules.in_number(1.1, None, wide, margin=0.05, neutral=None)
    else:
        mark, reason = rules.in_kind(1.1, wide, neutral=1.0, negligible=None)
    assert mark is Mark.NOT_COMPARABLE
    assert "too wide" in reason
