"""No finding or verdict contradicts a figure of the same result, for results drawn at random."""

from __future__ import annotations

import random
import re

import pytest
from tests.profiles import by_profile
from tests.report.drawn_results import contradictions, draw

from nephoscope.core.model import Better, Estimate
from nephoscope.stats import attribution, compare
from nephoscope.stats.attribution import SlowdownCause
from nephoscope.stats.compare import TwoSampleComparison
from nephoscope.stats.interference import turned
from nephoscope.stats.verdicts import change, margin_bounds


def test_findings_agree_with_their_figures() -> None:
    seeds = range(by_profile(quick=60, whole=200))
    assert [text for seed in seeds for text in contradictions(draw(seed))] == []


@pytest.mark.slow
def test_findings_agree_with_their_figures_for_many_results() -> None:
    assert [text for seed in range(200, 1200) for text in contradictions(draw(seed))] == []


def compared(seed: int) -> TwoSampleComparison:
    """Two drawn samples, compared."""
    rng = random.Random(seed)
    n = rng.choice((3, 4, 6, 7, 10, 20))
    effect = rng.choice((1.0, 1.0, 1.005, 1.02, 1.03, 1.05, 1.5, 0.97, 0.7))
    noise = rng.choice((0.0, 0.003, 0.01, 0.05, 0.3))
    a = [100 * (1 + noise * rng.uniform(-1, 1)) for _ in range(n)]
    b = [100 * effect * (1 + noise * rng.uniform(-1, 1)) for _ in range(n)]
    function = rng.choice((compare.independent, compare.paired))
    return function(
        a,
        b,
        better=rng.choice(list(Better)),
        margin=rng.choice((0.01, 0.03, 0.1)),
        confidence=rng.choice((0.9, 0.95, 0.99)),
    )


def inside(estimate: Estimate | None, margin: float) -> bool:
    lower, upper = margin_bounds(margin)
    return (
        estimate is not None
        and estimate.low is not None
        and estimate.high is not None
        and lower <= estimate.low
        and estimate.high <= upper
    )


def beyond(estimate: Estimate | None, margin: float) -> int:
    """1 above the margin, -1 below it, 0 where the interval reaches into it."""
    lower, upper = margin_bounds(margin)
    if estimate is None or estimate.low is None or estimate.high is None:
        return 0
    return (estimate.low > upper) - (estimate.high < lower)


def check(found: TwoSampleComparison) -> None:
    word, sentence = found.verdict.word, found.verdict.sentence
    side = beyond(found.ratio, found.margin)
    if word in ("better", "worse"):
        assert side, "a difference lies wholly beyond the margin"
        assert (side > 0) == ((word == "better") == (found.better is Better.HIGHER))
    if word in ("equivalent", "different but negligible"):
        assert inside(found.equivalence, found.margin)
        differs = found.ratio is not None and (
            (found.ratio.low or 0) > 1 or (found.ratio.high or 2) < 1
        )
        assert differs == (word == "different but negligible")
    if sentence.startswith("No verdict"):
        assert f"{found.n_a} and {found.n_b} repetitions" in sentence
        return
    assert found.ratio is not None
    assert f"{change(found.ratio.value)} [" in sentence
    shown = re.findall(r"\[([^,\]]+), ([^\]]+)\] at ([\d.]+) %", sentence)
    assert shown, "an interval has its level"
    known = {
        (change(one.low or 0.0), change(one.high or 0.0), f"{100 * one.confidence:.6g}")
        for one in (found.ratio, found.equivalence)
        if one is not None
    }
    for low, high, level in shown:
        assert (low, high, f"{float(level):.6g}") in known, sentence
    (decided,) = found.verdict.estimates
    printed = (change(decided.low or 0.0), change(decided.high or 0.0))
    assert printed in [one[:2] for one in shown], "the interval that decided is printed"


def test_verdicts_agree_with_their_intervals() -> None:
    for seed in range(by_profile(quick=200, whole=800)):
        check(compared(seed))


def test_no_slowdown_is_said_of_narrow_intervals_only() -> None:
    for seed in range(200):
        found = compared(seed)
        factor, equivalence = (
            turned(one, found.better) for one in (found.ratio, found.equivalence)
        )
        if factor is None:
            continue
        word = attribution.attribute(
            factor, [], [], margin=found.margin, equivalence=equivalence
        ).word
        upper = margin_bounds(found.margin)[1]
        if word is SlowdownCause.NO_SLOWDOWN:
            assert equivalence is not None
            assert equivalence.high is not None
            assert equivalence.high <= upper
        if found.verdict.word == "equivalent":
            assert word is SlowdownCause.NO_SLOWDOWN
