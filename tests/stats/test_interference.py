"""Factors: published tables, made truths, and how often the intervals cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.profiles import by_profile
from tests.rates import allowance

from nephoscope.core.model import Better, Estimate
from nephoscope.stats import interference
from nephoscope.stats.interference import Triple, around
from nephoscope.stats.statistics.means import Summary, fieller, summary
from nephoscope.stats.statistics.values import Refused

BASELINE = (0.688, 0.688, 0.687)
"""Delgado 2010, Table 3.4: mean round trips of three sets of 3,000 pings, ms."""


def close(under: Summary, over: Summary, *truth: float) -> None:
    # The published figures have five digits.
    found = (over.mean / under.mean, *(fieller(under, over) or ()))
    assert found == pytest.approx(truth, rel=1e-5)


def test_processor_table_of_delgado() -> None:
    quiet, loaded = Summary(1716.48, 5.39, 100), Summary(1754.90, 41.47, 100)
    close(quiet, loaded, 1.02238, 1.01755, 1.02722)
    below, above = quiet.s / quiet.mean, loaded.s / loaded.mean
    found = interference.variation_ratio(below, quiet.n, above, loaded.n, 0.95)
    assert found.value == pytest.approx(7.5254, 1e-5)


def test_memory_table_of_delgado_is_one_of_rates() -> None:
    quiet, loaded = Summary(3711.70, 13.83, 100), Summary(3540.68, 321.69, 100)
    close(loaded, quiet, 1.04830, 1.02972, 1.06756)


@pytest.mark.parametrize(
    ("sets", "truth"),
    [
        ((0.847, 0.851, 0.847), (1.23364, 1.22578, 1.24151)),
        ((0.924, 0.900, 0.919), (1.32962, 1.28398, 1.37527)),
    ],
)
def test_network_table_of_delgado_with_the_set_as_unit(
    sets: tuple[float, ...], truth: tuple[float, ...]
) -> None:
    close(summary(BASELINE), summary(sets), *truth)


def test_pings_as_independent_would_be_falsely_narrow() -> None:
    # 9,000 pings of deviation 0.043 ms in quiet; in the sets at 45 Mbit/s 0.220, 0.167 and 0.099.
    loaded = Summary(0.914333, math.sqrt((0.220**2 + 0.167**2 + 0.099**2) / 3), 9000)
    quiet = Summary(0.687667, 0.0433, 9000)
    narrow = fieller(quiet, loaded)
    assert narrow is not None
    # With the set as unit the interval is 0.0913 wide; a tenth of that would be believed wrongly.
    assert narrow[1] - narrow[0] < 0.2 * (1.37527 - 1.28398)


def test_a_straight_drift_cancels_within_a_triple() -> None:
    before, after = 100.0, 100.0 * 1.21
    loaded = 100.0 * 1.1 * 1.5  # on a drift that is straight on logarithms
    one = around(1, loaded, before, after)
    logs = interference.log_factors([one], Better.LOWER)
    assert math.exp(logs[0]) == pytest.approx(1.5)


def test_one_neighbour_is_enough_and_none_is_refused() -> None:
    assert around(1, 2.0, None, 1.0).baseline == 1
    assert around(1, 2.0, 4.0, None).baseline == 4
    with pytest.raises(Refused, match="no baseline trial"):
        around(7, 2.0, None, None)


def triples(rng: np.random.Generator, rounds: int, factor: float, noise: float) -> list[Triple]:
    """Times with a common drift of each round, independent noise of each trial."""
    out = []
    for number in range(rounds):
        level = 100 * math.exp(rng.normal(0, 0.3))
        before, loaded, after = level * np.exp(rng.normal(0, noise, 3))
        out.append(around(number, factor * loaded, before, after))
    return out


def rates(of: list[Triple]) -> list[Triple]:
    """The same as rates."""
    return [around(t.round, 1 / t.loaded, 1 / (t.before or 1), 1 / (t.after or 1)) for t in of]


def test_times_and_rates_give_the_same_factor() -> None:
    made = triples(np.random.default_rng(1), 12, 1.3, 0.02)
    for of_time, of_rate in zip(
        _both(made, Better.LOWER), _both(rates(made), Better.HIGHER), strict=True
    ):
        assert of_time.value == pytest.approx(of_rate.value)
        assert of_time.low == pytest.approx(of_rate.low)
        assert of_time.high == pytest.approx(of_rate.high)


def _both(made: list[Triple], better: Better) -> list[Estimate]:
    ratio = interference.turned(interference.factor(made, better=better).ratio, better)
    assert ratio is not None
    return [ratio, interference.factor_of_means(made, better=better)]


@pytest.mark.parametrize("rounds", [10, 20])
def test_factors_cover(rounds: int) -> None:
    # 800 runs: standard error of 0.95 is 0.0077, so that two points either way are 2.6 of them. At
    # 10 rounds the factor by ranks allows for dependence that these do not have: 0.98 (page 74).
    rng = np.random.default_rng(rounds)
    hits = np.zeros(2)
    runs = by_profile(quick=100, whole=800)
    for _ in range(runs):
        made = triples(rng, rounds, 1.2, 0.05)
        for at, found in enumerate(_both(made, Better.LOWER)):
            # No interval: there are not enough rounds for one.
            hits[at] += found.low is None or found.low <= 1.2 <= (found.high or math.inf)
    more = allowance(runs, 800)
    assert 0.93 - more <= hits[0] / runs <= (0.99 if rounds == 10 else 0.97) + more
    assert 0.93 - more <= hits[1] / runs <= 0.97 + more


def test_pairs_are_used_by_the_factor_of_means() -> None:
    # Rounds differ by 30 %, trials of a round by 1 %: unpaired, the interval would span 30 %.
    made = triples(np.random.default_rng(3), 15, 1.2, 0.01)
    found = interference.factor_of_means(made, better=Better.LOWER)
    assert found.half_width_ratio is not None
    assert found.half_width_ratio < 0.02
    assert found.low is not None
    assert found.low > 1.1


def test_values_without_a_ratio_are_refused() -> None:
    made = [Triple(1, 0.0, 1.0), Triple(2, 1.0, 1.0)]
    with pytest.raises(Refused, match="zero, negative"):
        interference.factor_of_means(made, better=Better.LOWER)


# Percentiles -------------------------------------------------------------------------------------


def requests(
    rng: np.random.Generator, scale: float, count: int = 200
) -> tuple[list[float], list[int]]:
    values = np.round(scale * rng.exponential(1.0, count), 3)
    distinct, counts = np.unique(values, return_counts=True)
    return distinct.tolist(), counts.tolist()


def test_the_tail_is_that_of_merged_histograms_and_never_an_average() -> None:
    # Five rounds whose own p99 is 10, one whose own p99 is 500: averaged, p99 would be 91.67.
    common = ([10.0, 500.0], [199, 1])
    odd = ([10.0, 500.0], [190, 10])
    rounds = [(([10.0], [200]), common)] * 5 + [(([10.0], [200]), odd)]
    found = interference.factor_of_percentile(rounds, 0.99)
    assert found.value == 50  # 15 of 1,200 requests take 500, more than a hundredth
    assert found.low == 1
    assert "merged histograms" in found.method
    assert found.n == 6


def test_the_tails_factor_covers() -> None:
    # 200 runs of 12 rounds, 200 exponential requests in each: scale 1.5 moves every percentile by
    # 1.5. The bootstrap of a tail is rough: 0.95 with a standard error of 0.015, and 3 points less.
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        rounds = [(requests(rng, 1.0), requests(rng, 1.5)) for _ in range(12)]
        found = interference.factor_of_percentile(rounds, 0.99, resamples=499)
        hits += found.low is not None and found.low <= 1.5 <= (found.high or math.inf)
    assert 0.90 <= hits / 200 <= 1.0


def test_too_few_requests_or_rounds_have_no_tail() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(Refused, match="rounds"):
        interference.factor_of_percentile([(requests(rng, 1), requests(rng, 1))] * 5, 0.99)
    few = requests(rng, 1, 20)
    with pytest.raises(Refused, match="quiet requests"):
        interference.factor_of_percentile([(few, few)] * 6, 0.99)


# Variation ---------------------------------------------------------------------------------------


def test_variation_factor_of_made_values_covers() -> None:
    # Vangel's intervals are near exact for normal values: 0.95 with a standard error of 0.01.
    rng = np.random.default_rng(8)
    hits, robust, runs = 0, 0, by_profile(quick=100, whole=500)
    for _ in range(runs):
        quiet, loaded = rng.normal(100, 1, 15), rng.normal(120, 1.2 * 3, 15)
        found = interference.variation_factor(quiet, loaded, rounds=15)
        assert found.cv is not None
        assert found.robust is not None
        hits += _covers(found.cv, 3.0)
        robust += _covers(found.robust, 3.0)
    more = allowance(runs, 500)
    assert 0.92 - more <= hits / runs <= 0.985 + more
    # The robust one rests on medians of 15 deviations, with tails moved out for few trials.
    assert robust / runs >= 0.93 - more


def _covers(found: Estimate, truth: float) -> bool:
    low, high = found.low or 0.0, found.high if found.high is not None else math.inf
    return low <= truth <= high


def test_a_quiet_that_does_not_vary_has_no_variation_factor() -> None:
    found = interference.variation_factor([5.0] * 10, list(range(1, 11)), rounds=10)
    assert found.cv is None
    assert found.robust is None
    assert "does not vary" in found.why
