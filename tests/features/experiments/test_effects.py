"""Main effects: what the test puts into each cell has to come out, whatever rounds drift."""

from __future__ import annotations

import itertools

import pytest

from nephoscope.core.model import Better
from nephoscope.features.experiments.effects import DesignCell, contrasts
from nephoscope.stats.statistics.values import Refused

ROUNDS = range(1, 9)


def cells(drop: set[tuple[str, int]] = frozenset()) -> list[DesignCell]:  # type: ignore[assignment]
    """Value = drift of the round x effect of a x effect of b x a little that differs by round."""
    out = []
    for a, b in itertools.product("xyz", (1, 2)):
        effect = {"x": 1.0, "y": 2.0, "z": 0.5}[a] * {1: 1.0, 2: 1.1}[b]
        values = {
            r: effect * 3.0**r * (1 + 0.001 * ((r * 7 + ord(a) + b) % 5))
            for r in ROUNDS
            if (a, r) not in drop
        }
        out.append(DesignCell({"a": a, "b": b}, values))
    return out


def test_effects_are_ratios_to_the_reference() -> None:
    found = [one.effect(better=Better.LOWER) for one in contrasts(cells(), "a", "x")]
    told = {one.level: one.comparison.ratio for one in found}
    assert told["y"] is not None
    assert told["z"] is not None
    assert told["y"].value == pytest.approx(2.0, rel=0.005)
    assert told["z"].value == pytest.approx(0.5, rel=0.005)
    assert [one.comparison.verdict.word for one in found] == ["worse", "better"]
    assert [one.cells for one in found] == [2, 2]
    (other,) = [one.effect(better=Better.HIGHER) for one in contrasts(cells(), "b", 1)]
    assert other.comparison.ratio is not None
    assert other.comparison.ratio.value == pytest.approx(1.1, rel=0.005)
    assert (other.cells, other.comparison.verdict.word) == (3, "better")


def test_a_round_that_one_cell_lacks_is_left_out_of_all() -> None:
    found = contrasts(cells({("z", 3)}), "b", 1)
    assert [(one.rounds_left_out, one.of_level.size) for one in found] == [(1, 7)]


def test_what_has_no_effect_to_tell_is_refused() -> None:
    with pytest.raises(Refused, match="no level other"):
        contrasts(cells()[:2], "a", "x")
    with pytest.raises(Refused, match="unbalanced"):
        contrasts(cells()[:-1], "a", "x")
    with pytest.raises(Refused, match="No round"):
        contrasts([*cells()[:5], DesignCell({"a": "z", "b": 2}, {})], "a", "x")
    zero = DesignCell({"a": "z", "b": 2}, dict.fromkeys(ROUNDS, 0.0))
    with pytest.raises(Refused, match="zero, negative"):
        contrasts([*cells()[:5], zero], "a", "x")
