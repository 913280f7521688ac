"""How many interleaved runs would decide, and how long they take."""

from __future__ import annotations

import pytest

from nephoscope.core.model import Better, Estimate, Verdict
from nephoscope.features.comparison.compared import Compared
from nephoscope.features.comparison.effort import MOST_RUNS, effort, repeats_effort, runs_needed
from nephoscope.stats.compare import TwoSampleComparison


def ratio(value: float, half: float) -> Estimate:
    """A ratio with an interval of so many times either way."""
    return Estimate(value, value / (1 + half), value * (1 + half), 0.95, 10, "ratio", "made")


def line(
    value: float, half: float, *, word: str = "inconclusive", headline: bool = True
) -> Compared:
    judged = ratio(value, 4 * half)
    comparison = TwoSampleComparison(
        False,
        Better.LOWER,
        0.03,
        10,
        10,
        Verdict(word, "", (judged,)),  # type: ignore[arg-type]
        judged,
        None,
        None,
        ratio_t=ratio(value, half),
    )
    one = Estimate(1.0, None, None, 0.95, 10, "ns", "median")
    return Compared(
        "null", "null_ns", {}, "a", "b", "separate runs", comparison, "null", one, one, headline
    )


@pytest.mark.parametrize(
    ("value", "half", "runs"),
    [
        (1.20, 0.05, 1),  # half an interval of 4.9 % against the 15 % beyond the margin
        (1.20, 0.30, 3),  # 26.2 % against 15.3 %: 2.95
        (1 / 1.2, 0.30, 3),
        (1.00, 0.04, 2),  # 90 %: 3.29 % against 2.96 %, 1.24
        (1.03, 0.10, MOST_RUNS + 1),
    ],
)
def test_the_interval_of_one_run_gives_the_number_of_runs(
    value: float, half: float, runs: int
) -> None:
    assert runs_needed((ratio(value, 0.5),), ratio(value, half), 0.03) == runs


def test_without_an_interval_inside_the_runs_nothing_is_told() -> None:
    none = Estimate(1.2, None, None, 0.95, 2, "ratio", "made")
    assert runs_needed((ratio(1.2, 0.5),), none, 0.03) is None
    assert runs_needed((), ratio(1.2, 0.5), 0.03) is None
    decided = [line(1.2, 0.01, word="worse"), line(1.2, 0.3, headline=False)]
    assert effort(decided, 0.03, 60) == ""


def test_one_sentence_tells_runs_and_time() -> None:
    assert effort([line(1.2, 0.3)], 0.03, 80) == (
        "About 3 interleaved runs of both sides (4 min) would decide it, if the differences are as "
        "large as they look."
    )
    several = [line(1.2, 0.3), line(1.2, 0.05), line(1.03, 0.1)]
    assert "3 interleaved runs of both sides would decide 2 of the 3" in effort(several, 0.03, 0)
    assert effort([line(1.03, 0.1)], 0.03, 2) == (
        "Not even 20 interleaved runs of both sides (40 s) would decide it: the difference seen is "
        "too close to the margin for the noise inside the runs."
    )
    assert repeats_effort(30) == "These 3 runs take about 22 min with the pauses."
    assert repeats_effort(0) == ""
