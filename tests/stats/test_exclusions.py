"""Comparisons of lines with excluded trials: what was planted is never contradicted."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from nephoscope.core.model import Better, Consistency, Estimate, Exclusions, MetricResult
from nephoscope.stats import compare, exclusions
from nephoscope.stats.compare import TwoSampleComparison

THROTTLED = "throttled by a CPU quota"
NAMES = ("whole", "capped")


def line(
    values: Sequence[float],
    excluded: Sequence[int] = (),
    *,
    slow: Sequence[int] = (),
    better: Better = Better.HIGHER,
    cause: str = THROTTLED,
) -> MetricResult:
    """Rounds 1, 2, …; those in `excluded` do not count, and those in `slow` have no value."""
    rounds = range(1, len(values) + 1)
    kept = {r: v for r, v in zip(rounds, values, strict=True) if r not in {*excluded, *slow}}
    known = {r: v for r, v in zip(rounds, values, strict=True) if r not in slow}
    count = len(excluded) + len(slow)
    return MetricResult(
        "cpu.hash", "hash_per_s", "t", {}, better,
        Estimate(1.0, None, None, 0.95, len(kept), "per_s", "median"),
        Consistency(None, None, None, None, None, "unknown"),
        trial_values=tuple(kept.values()),
        rounds=tuple(kept),
        exclusions=Exclusions(
            {cause: count}, len(values), tuple(known.values()), tuple(known), tuple(slow)
        ) if count else Exclusions(),
    )  # fmt: skip


def pairing(a: MetricResult, b: MetricResult) -> TwoSampleComparison:
    return compare.paired(*compare.shared_rounds(a, b), better=a.better, names=NAMES)


def compared(a: MetricResult, b: MetricResult) -> TwoSampleComparison:
    return exclusions.bounded(pairing(a, b), a, b, pairing, NAMES)


def rates(level: float, n: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [level * math.exp(rng.gauss(0, 0.005)) for _ in range(n)]


def test_survivors_of_the_slower_machine_do_not_win() -> None:
    # Ten of sixteen trials of the capped machine are throttled to half; the others got a burst.
    whole = line(rates(310, 16, 1))
    values = rates(340, 16, 2)
    throttled = [2, 3, 4, 6, 7, 9, 10, 12, 14, 15]
    for number in throttled:
        values[number - 1] *= 0.5
    capped = line(values, throttled)
    assert pairing(whole, capped).verdict.word == "better", "the survivors alone say so"
    assert compared(whole, capped).verdict.word == "inconclusive"
    more = line(values * 2, [n + 16 * k for k in (0, 1) for n in throttled])
    twice = line(rates(310, 32, 3))
    assert pairing(twice, more).verdict.word == "better", "the survivors alone say so"
    found = compared(twice, more)
    assert found.verdict.word == "inconclusive"
    assert "20 of 32 trials of capped were excluded (throttled by a CPU quota)" in (
        found.verdict.sentence
    )
    assert found.verdict.sentence.startswith("No verdict")
    low, high = ends(found)
    assert low < 0.6 < 1.05 < high


def test_a_verdict_stands_where_it_holds_without_and_with_the_excluded_trials() -> None:
    whole = line(rates(310, 20, 1))
    values = rates(200, 20, 2)
    values[3] *= 0.5
    found = compared(whole, line(values, [4]))
    assert found.verdict.word == "worse"
    assert "1 of 20 trials of capped was excluded" in found.verdict.sentence
    assert "without and with these trials" in found.verdict.sentence


@pytest.mark.parametrize(("better", "word"), [(Better.HIGHER, "worse"), (Better.LOWER, "worse")])
def test_trials_over_their_time_limit_are_slower_than_all(better: Better, word: str) -> None:
    level = 0.8 if better is Better.HIGHER else 1.25
    whole = line(rates(100, 30, 1), better=better)
    capped = line(rates(100 * level, 30, 2), slow=[5, 9, 11], better=better, cause="slow")
    found = compared(whole, capped)
    assert found.verdict.word == word
    # The same on the other side: whether the rest is faster, nobody knows.
    other = line(rates(100 / level, 30, 2), slow=range(3, 20), better=better, cause="slow")
    assert pairing(whole, other).verdict.word == "better"
    assert compared(whole, other).verdict.word == "inconclusive"


def test_equal_shares_of_equal_causes_change_nothing() -> None:
    a, b = (line(rates(level, 20, level), [3, 7]) for level in (100, 200))
    assert exclusions.imbalance(a, b, NAMES) == ""
    assert compared(a, b) == pairing(a, b)
    other = replace(b, exclusions=replace(b.exclusions, by_cause={"sent late": 2}))
    assert "2 of 20 of" in exclusions.imbalance(a, other, NAMES)


def test_without_exclusions_nothing_is_stated() -> None:
    a, b = line([1.0] * 8), line([2.0] * 8)
    assert exclusions.imbalance(a, b, NAMES) == ""
    assert exclusions.as_measured(a) is a
    assert exclusions.warnings(["", ""]) == []
    (warning,) = exclusions.warnings(["a", "b", "a", "c", "d"])
    assert warning.startswith("a; b; c; and 1 more.")


def ends(comparison: TwoSampleComparison) -> tuple[float, float]:
    assert comparison.ratio is not None
    assert comparison.ratio.low is not None
    assert comparison.ratio.high is not None
    return comparison.ratio.low, comparison.ratio.high


def test_exclusions_by_chance_cost_little_width() -> None:
    """Of equal machines: never a false verdict, and intervals grow by less than a half."""
    rng = random.Random(5)
    growth = []
    for seed in range(20):
        a, b = line(rates(100, 30, seed)), rates(100, 30, 1000 + seed)
        found = compared(a, line(b, sorted(rng.sample(range(1, 31), 4))))
        assert found.verdict.word in ("equivalent", "inconclusive", "different but negligible")
        low, high = ends(pairing(a, line(b)))
        bound_low, bound_high = ends(found)
        growth.append((bound_high - bound_low) / (high - low))
    assert sorted(growth)[10] < 1.5
