import math

import pytest

from nephoscope.core.model import Better
from nephoscope.stats import verdicts
from nephoscope.stats.statistics.values import Refused
from nephoscope.stats.verdicts import Band


@pytest.mark.parametrize(
    ("band", "equivalence", "lower_is_better", "higher_is_better"),
    [
        (Band(1.04, 1.08), Band(1.05, 1.07), "worse", "better"),
        (Band(0.90, 0.96), Band(0.91, 0.95), "better", "worse"),
        (Band(0.99, 1.02), Band(0.992, 1.015), "equivalent", "equivalent"),
        (Band(1.005, 1.02), Band(1.006, 1.018), *["different but negligible"] * 2),
        (Band(1.01, 1.05), Band(1.015, 1.045), "inconclusive", "inconclusive"),
        (Band(0.9, 1.1), Band(0.92, 1.08), "inconclusive", "inconclusive"),
        (Band(1.0, 1.0), Band(1.0, 1.0), "equivalent", "equivalent"),
        (Band(1.5, math.inf), Band(1.6, math.inf), "worse", "better"),
        (verdicts.NO_BAND, verdicts.NO_BAND, "inconclusive", "inconclusive"),
        # The 95 % interval sticks out, the equivalence test does not.
        (Band(0.995, 1.031), Band(0.998, 1.029), "equivalent", "equivalent"),
    ],
)
def test_words(band, equivalence, lower_is_better, higher_is_better):
    assert verdicts.judge(band, equivalence, Better.LOWER, 0.03) == lower_is_better
    assert verdicts.judge(band, equivalence, Better.HIGHER, 0.03) == higher_is_better


def test_no_direction_no_better():
    word = verdicts.judge(Band(2, 3), Band(2, 3), Better.NONE, 0.03)
    assert word == "inconclusive"
    sentence = verdicts.say(word, 2.5, Band(2, 3), Band(2, 3), 0.03, 0.95)
    assert sentence == (
        "B differs from A by ×2.5 [×2, ×3] at 95 %; of this metric neither direction is better."
    )


def test_margin_is_the_same_from_either_side():
    low, high = verdicts.margin_bounds(0.03)
    assert low * high == pytest.approx(1)
    for bad in (-0.1, 1, 3):
        with pytest.raises(Refused, match="no meaning"):
            verdicts.margin_bounds(bad)


@pytest.mark.parametrize(
    ("word", "band", "part"),
    [
        ("worse", Band(1.04, 1.08), "B is worse than A: +6 % [+4 %, +8 %] at 95 %"),
        # The interval that decided, with its level, and not the wider one that does not fit.
        ("equivalent", Band(0.976, 1.0413), "[-0.5 %, +2 %] at 90 %, inside the margin of ±3 %"),
        (
            "different but negligible",
            Band(1.01, 1.02),
            "[+1 %, +2 %] at 95 %, but by less than the margin of ±3 %: [-0.5 %, +2 %] at 90 %.",
        ),
        ("inconclusive", Band(1.01, 1.05), "stays open"),
        ("inconclusive", Band(0.9, 1.1), "Undecided"),
    ],
)
def test_sentences_carry_their_figures(word, band, part):
    assert part in verdicts.say(word, 1.06, band, Band(0.995, 1.02), 0.03, 0.95)


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.06, "+6 %"), (0.9, "-10 %"), (2.5, "×2.5"), (0.4, "×0.4"), (1, "+0 %")]
)
def test_change(ratio, text):
    assert verdicts.change(ratio) == text
