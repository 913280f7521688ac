"""Shares, relative speeds and expectations of a census, held to known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.core.model import Better, Estimate
from nephoscope.features.census import analysis
from nephoscope.stats.statistics.values import Refused

M1_LARGE = {"E5430": 17, "E5507": 40, "E5645": 42, "2218HE": 1}


def ratio(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, low, high, 0.95, 10, "none", "made")


def test_shares_are_those_of_the_studys_m1_large() -> None:
    found = {one.model: one.share for one in analysis.shares(M1_LARGE)}
    # Wilson 1927 at 95 %, computed by hand for 40, 42 and 17 of 100.
    for model, low, high in (
        ("E5507", 0.309, 0.498),
        ("E5645", 0.328, 0.518),
        ("E5430", 0.109, 0.255),
    ):
        assert found[model].low == pytest.approx(low, abs=5e-4)
        assert found[model].high == pytest.approx(high, abs=5e-4)
        assert found[model].n == 100


def test_shares_stand_the_most_frequent_first() -> None:
    assert [one.model for one in analysis.shares(M1_LARGE)] == ["E5645", "E5507", "E5430", "2218HE"]


def test_shares_of_nothing_are_refused() -> None:
    with pytest.raises(Refused, match="at least one machine"):
        analysis.shares({})


@given(st.dictionaries(st.text(min_size=1), st.integers(1, 500), min_size=1, max_size=8))
def test_shares_sum_to_one_and_lie_in_their_intervals(counts: dict[str, int]) -> None:
    found = analysis.shares(counts)
    assert sum(one.share.value for one in found) == pytest.approx(1)
    for one in found:
        assert one.share.low is not None
        assert one.share.high is not None
        assert 0 <= one.share.low <= one.share.value <= one.share.high <= 1


def test_unseen_models_have_the_rule_of_three() -> None:
    assert analysis.unseen(1) == pytest.approx(0.95)
    assert analysis.unseen(100) == pytest.approx(1 - 0.05**0.01)
    assert analysis.unseen(300) == pytest.approx(3 / 300, rel=0.01)
    with pytest.raises(Refused):
        analysis.unseen(0)


def machines(level: float, number: int, spread: float = 0.0) -> dict[str, dict[str, list[float]]]:
    """So many machines with a run each, spread evenly around the level on the logarithm."""
    steps = np.linspace(-spread, spread, number) if number > 1 else [0.0]
    return {f"m{i}": {"run": [level * math.exp(step)] * 3} for i, step in enumerate(steps)}


def test_speed_is_the_ratio_of_geometric_means_over_machines() -> None:
    found = analysis.speeds(
        {"slow": machines(100, 4, 0.01), "fast": machines(125, 5, 0.02)}, Better.HIGHER
    )
    assert [one.model for one in found] == ["fast", "slow"]
    fast, slow = found
    assert fast.ratio.value == pytest.approx(1.25)
    assert fast.ratio.low is not None
    assert fast.ratio.low < 1.25 < (fast.ratio.high or 0)
    assert (fast.unit, fast.machines, fast.trials) == ("machines", 5, 15)
    assert slow.ratio.value == 1
    assert slow.ratio.low is None


def test_times_are_inverted_so_that_above_one_is_faster() -> None:
    found = analysis.speeds(
        {"slow": machines(10, 3, 0.01), "fast": machines(8, 3, 0.01)}, Better.LOWER
    )
    assert found[0].model == "fast"
    assert found[0].ratio.value == pytest.approx(10 / 8)


def test_a_machine_that_was_measured_often_counts_once() -> None:
    """Ninety trials of one machine must not outvote three other machines."""
    once = {f"m{i}": {"run": [value]} for i, value in enumerate((100.0, 101.0, 102.0, 110.0))}
    often = {**once, "m3": {f"run{r}": [110.0] * 30 for r in range(3)}}
    slow = machines(50, 3, 0.01)
    first = analysis.speeds({"x": once, "slow": slow}, Better.HIGHER)[0]
    second = analysis.speeds({"x": often, "slow": slow}, Better.HIGHER)[0]
    assert first.ratio == second.ratio
    assert second.trials == 93


@pytest.mark.parametrize(
    ("fast", "unit", "note"),
    [
        ({"m": {"r1": [10.0], "r2": [11.0]}}, "runs", "one machine"),
        ({"m": {"r1": [10.0, 11.0, 10.5]}}, "trials", "one run of one machine"),
    ],
)
def test_less_than_two_machines_fall_back_and_say_so(
    fast: dict[str, dict[str, list[float]]], unit: str, note: str
) -> None:
    found = analysis.speeds({"fast": fast, "slow": machines(5, 4, 0.01)}, Better.HIGHER)[0]
    assert found.unit == unit
    assert note in found.note
    assert found.ratio.low is not None


def test_one_value_alone_has_no_interval() -> None:
    found = analysis.speeds({"a": {"m": {"r": [10.0]}}, "b": machines(5, 4)}, Better.HIGHER)[0]
    assert found.ratio.low is None
    assert "no interval" in found.ratio.note


def test_models_that_cannot_be_told_apart_are_said_to_be_so() -> None:
    found = analysis.speeds({"a": machines(10, 4, 0.2), "b": machines(9.9, 4, 0.2)}, Better.HIGHER)
    assert "not distinguishable" in found[0].note


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_values_without_a_logarithm_are_refused(bad: float) -> None:
    with pytest.raises(Refused):
        analysis.speeds({"a": {"m": {"r": [bad]}}, "b": machines(5, 2)}, Better.HIGHER)


def test_no_direction_no_speed() -> None:
    with pytest.raises(Refused, match="direction"):
        analysis.speeds({"a": machines(5, 2)}, Better.NONE)


def test_interval_of_a_speed_covers_the_truth() -> None:
    """500 censuses of 6 machines against 4 with a known ratio; 95 % must hold it.

    Binomial: 0.95 of 500 lies within 3.5 standard errors in [0.916, 0.984].
    """
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(500):
        slow = {f"m{i}": {"r": [v]} for i, v in enumerate(np.exp(rng.normal(0, 0.05, 4)))}
        fast = {f"m{i}": {"r": [1.3 * v]} for i, v in enumerate(np.exp(rng.normal(0, 0.05, 6)))}
        one = next(
            s for s in analysis.speeds({"s": slow, "f": fast}, Better.HIGHER) if s.model == "f"
        )
        held += one.ratio.low is not None and one.ratio.low <= 1.3 <= (one.ratio.high or 0)
    assert 0.916 <= held / 500 <= 0.984


def test_expected_speed_is_the_mean_over_the_mix() -> None:
    known = {"E5507": ratio(1), "E5430": ratio(1.1), "E5645": ratio(1.4)}
    found = analysis.expected(M1_LARGE, known)
    # The study's own example with its shares made whole: (40 + 17 * 1.1 + 42 * 1.4) / 99.
    assert found.mean.value == pytest.approx((40 + 17 * 1.1 + 42 * 1.4) / 99)
    assert found.mean.n == 99
    assert found.left_out == ("2218HE",)
    assert found.mean.low is not None
    # Standard error of the mean over the mix, from the shares alone.
    p = np.array([40, 17, 42]) / 99
    x = np.array([1, 1.1, 1.4])
    error = math.sqrt((p @ x**2 - (p @ x) ** 2) / 100)
    assert ((found.mean.high or 0) - found.mean.low) / 2 == pytest.approx(1.96 * error, rel=0.05)


def test_uncertain_speeds_widen_the_expectation() -> None:
    counts = {"a": 500, "b": 500}
    sure = analysis.expected(counts, {"a": ratio(1), "b": ratio(1.5)}).mean
    unsure = analysis.expected(counts, {"a": ratio(1), "b": ratio(1.5, 1.2, 1.9)}).mean
    assert sure.note == "taken as exact: b"
    assert unsure.note == ""
    assert (unsure.high or 0) - (unsure.low or 0) > 3 * ((sure.high or 0) - (sure.low or 0))


def test_chances_are_shares_of_machines_at_least_so_fast() -> None:
    known = {"E5507": ratio(1), "E5430": ratio(1.1), "E5645": ratio(1.4)}
    found = analysis.expected(M1_LARGE, known, at_least=[1.2, 2.0])
    chance = {one.at_least: (one.share.value, one.models) for one in found.chances}
    assert chance[1.1] == (pytest.approx(59 / 99), ("E5430", "E5645"))
    assert chance[1.2] == (pytest.approx(42 / 99), ("E5645",))
    assert chance[2.0] == (0.0, ())
    none = next(one for one in found.chances if one.at_least == 2.0)
    assert none.share.high is not None
    assert none.share.high > 0.03  # none of 99 is not never


def test_one_model_has_no_mix() -> None:
    found = analysis.expected({"a": 3}, {"a": ratio(1)})
    assert found.mean.low is None
    assert "one model" in found.mean.note


def test_nothing_measured_is_refused() -> None:
    with pytest.raises(Refused, match="None of the counted models"):
        analysis.expected({"a": 3}, {"b": ratio(1)})


def test_the_same_seed_gives_the_same_interval() -> None:
    known = {"E5507": ratio(1), "E5645": ratio(1.4, 1.3, 1.5)}
    assert analysis.expected(M1_LARGE, known, seed=3) == analysis.expected(M1_LARGE, known, seed=3)
