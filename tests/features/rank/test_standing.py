"""Rank intervals of simulated alternatives hold together, and are not much wider than they must."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.special import ndtri
from tests.features.rank.test_result import noisy, ranking
from tests.profiles import by_profile
from tests.rates import holds_rate

from nephoscope.core.model import Better, Estimate, MetricResult
from nephoscope.features.rank.many import of_many
from nephoscope.features.rank.standing import OwnErrors, PairErrors, Standing
from nephoscope.stats.statistics.moderation import moderated
from nephoscope.stats.statistics.values import Array
from nephoscope.stats.statistics.variation import UNKNOWN

N = 8


def lines(rng: np.random.Generator, costs: Array, noise: Array, drift: float) -> list[MetricResult]:
    """Eight rounds of each alternative, which share their drift."""
    shared = rng.normal(0, drift, N) if drift else np.zeros(N)
    result = []
    for cost, spread in zip(costs, noise, strict=True):
        values = tuple(np.exp(cost + shared + rng.normal(0, spread, N)).tolist())
        middle = Estimate(float(np.median(values)), None, None, 0.95, N, "ns", "median")
        rounds = tuple(range(1, N + 1)) if drift else ()
        result.append(
            MetricResult(
                "b", "m", "", {}, Better.LOWER, middle, UNKNOWN, trial_values=values, rounds=rounds
            )
        )
    return result


def names_of(costs: Sequence[float] | Array) -> tuple[str, ...]:
    return tuple(f"t{index}" for index in range(len(costs)))


def true_ranks(costs: Array) -> Array:
    return Standing(names_of(costs), costs, None, 0.95).ranks


@pytest.mark.parametrize("drift", [0.0, 0.05])
def test_the_rank_intervals_of_twenty_alternatives_hold_together(drift: float) -> None:
    """Noise differs by alternative. The price: pairs that are told apart, beside those of an
    oracle that knows every variance (Bonferroni with normal quantiles)."""
    k, held, apart, oracle = 20, [], 0.0, 0.0
    for seed in range(by_profile(quick=60, whole=300)):
        rng = np.random.default_rng(seed)
        costs, noise = rng.normal(0, 0.1, k), 0.03 * np.exp(rng.normal(0, 0.5, k))
        estimated, errors, _ = of_many(lines(rng, costs, noise, drift), 0.95)
        standing = Standing(names_of(costs), estimated, errors, 0.95)
        truth = true_ranks(costs)
        held.append(bool(np.all((standing.low <= truth) & (truth <= standing.high))))
        apart += float((k - 1 - (standing.high - standing.low)).sum()) / 2
        shift = np.abs(estimated[:, None] - estimated)
        exact = np.sqrt((noise[:, None] ** 2 + noise**2) / N)
        oracle += float((shift > -ndtri(standing.tail) * exact).sum()) / 2
    holds_rate(f"simultaneous rank intervals, drift {drift}", held, 0.95)
    assert apart / oracle > 0.75, f"{apart:.0f} pairs apart, {oracle:.0f} by the oracle"


def test_the_rank_intervals_of_compared_pairs_hold_together() -> None:
    levels = {"a": 1.0, "b": 1.0, "c": 1.03, "d": 1.3}
    held, last = [], []
    for seed in range(by_profile(quick=20, whole=60)):
        row = ranking(noisy(np.random.default_rng(seed), levels, "null")).rows[0]
        low = [cell.rank_low or 0 for cell in row.cells]
        high = [cell.rank_high or 0 for cell in row.cells]
        # Equal ones have both ranks: either may be first.
        held.append(low[0] == low[1] == 1 and min(high[:2]) >= 2 and low[2] <= 3 <= high[2])
        last.append((low[3], high[3]) == (4, 4))
    holds_rate("simultaneous rank intervals of pairs", held, 0.95)
    # The price: the allowance for dependence, which eight rounds of one setting cannot exclude.
    assert np.mean(last) > 0.75


def test_thousands_of_intervals_agree_with_pair_by_pair_counts() -> None:
    rng = np.random.default_rng(2)
    costs, error = rng.normal(0, 0.1, 300), rng.uniform(0.001, 0.03, 300)
    costs[7] = costs[11] = 0.05
    error[7] = error[11] = 0.004
    df = rng.choice([7.0, 15.0, 40.0], 300)
    df[7] = df[11]
    own = Standing(names_of(costs), costs, OwnErrors(error, df), 0.95)
    pairs = PairErrors(
        np.hypot(error[:, None], error), np.minimum(df[:, None], df), np.zeros((300, 300))
    )
    dense = Standing(names_of(costs), costs, pairs, 0.95)
    assert np.array_equal(own.low, dense.low)
    assert np.array_equal(own.high, dense.high)
    assert (own.low[7], own.high[7]) == (own.low[11], own.high[11]), "copies share their interval"
    assert np.all((own.low <= own.ranks) & (own.ranks <= own.high))


def test_probabilities_and_ratios_never_contradict_the_intervals() -> None:
    rng = np.random.default_rng(3)
    costs = rng.normal(0, 0.05, 60)
    errors = OwnErrors(rng.uniform(0.001, 0.03, 60), np.full(60, 9.0))
    standing = Standing(names_of(costs), costs, errors, 0.95, 8)
    drawn = standing.draws(1)
    for top in (1, 3):
        chances = standing.among_best(drawn, top)
        for chance, low, high in zip(chances, standing.low, standing.high, strict=True):
            assert chance is not None
            assert chance == 0 or low <= top
            assert chance == 1 or high > top
    for index in (0, int(standing.order[0])):
        for rival, ratio in enumerate(standing.ratios(index, "")):
            assert ratio.low is not None
            assert ratio.high is not None
            if ratio.low > 1:
                assert standing.low[rival] > 1
                assert standing.high[index] < 60
            shift = costs[rival] - costs[index]
            assert (ratio.low > 1 or ratio.high < 1) == bool(
                abs(shift) > standing.half(index)[rival]
            )


def test_an_alternative_without_repetitions_may_have_any_rank() -> None:
    rng = np.random.default_rng(4)
    made = lines(rng, np.linspace(0, 1, 20), np.full(20, 0.01), 0)
    made[3] = MetricResult(
        "b", "m", "", {}, Better.LOWER, made[3].estimate, UNKNOWN, trial_values=(1.1,)
    )
    costs, errors, _ = of_many(made, 0.95)
    standing = Standing(names_of(costs), costs, errors, 0.95)
    assert (standing.low[3], standing.high[3]) == (1, 20)
    assert standing.high[0] == 2, "one that may be anywhere may also be before the first"


@pytest.mark.parametrize(("spread", "least", "most"), [(0.0, 20, 1e9), (1.0, 1, 8)])
def test_variances_help_each_other_as_far_as_they_are_alike(
    spread: float, least: float, most: float
) -> None:
    """Prior degrees of freedom: many where true variances are equal, few where they differ."""
    rng = np.random.default_rng(5)
    true = np.exp(rng.normal(0, spread, 400))
    variances = true * rng.chisquare(7, 400) / 7
    moved, df = moderated(variances, np.full(400, 7.0))
    assert least < df[0] - 7 < most
    before, after = (np.mean((np.log(v) - np.log(true)) ** 2) for v in (variances, moved))
    assert after < before
    few = moderated(variances[:4], np.full(4, 7.0))
    assert np.array_equal(few[0], variances[:4])
