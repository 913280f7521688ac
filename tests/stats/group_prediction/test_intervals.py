"""Intervals for a group that was never seen: coverage in planted worlds, refusals, reasons."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.group_prediction.intervals import errors_without, forecast
from nephoscope.stats.group_prediction.model import GroupedProcess, StandardRows
from nephoscope.stats.statistics.values import Refused

from .worlds import world


def test_a_left_out_group_is_covered_and_the_checks_say_how_well() -> None:
    rng = np.random.default_rng(5)
    features, values, groups = world(rng, 7, 50)
    known, new = groups != "group-6", groups == "group-6"
    made = forecast(
        features[known],
        values[known],
        {"provider": groups[known], "model": [f"m{place % 9}" for place in range(known.sum())]},
        features[new],
    )
    inside = (made.low <= values[new]) & (values[new] <= made.high)
    # 50 rows of one group share its shift: no sharper bound holds for one group.
    assert inside[made.is_near].mean() > 0.7
    assert set(made.checks) == {"provider", "model"}
    assert [check.rows for check in made.checks["provider"]] == [50] * 6
    assert np.mean([check.coverage for check in made.checks["provider"]]) >= 0.88
    assert made.checks["provider"][0].error < 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("between", "noise"), [(0.02, 0.1), (0.1, 0.05)])
def test_new_groups_are_covered_as_often_as_promised(between: float, noise: float) -> None:
    """Of 100 worlds with seven groups, one of them new."""
    shares, widths = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        features, values, groups = world(rng, 7, 40, between=between, noise=noise)
        known, new = groups != "group-6", groups == "group-6"
        made = forecast(features[known], values[known], {"provider": groups[known]}, features[new])
        near = made.is_near
        inside = (made.low <= values[new]) & (values[new] <= made.high)
        shares.append(float(inside[near].mean()))
        widths.append(float(np.median((made.high / made.value)[near] - 1)))
    # Three standard errors of a mean of 100 worlds, whose shares vary by about 0.15.
    assert 0.855 <= np.mean(shares) <= 0.96, np.mean(shares)
    # No wider than twice what the planted spread needs.
    needed = 1.645 * np.hypot(between, noise)
    assert np.median(widths) < np.expm1(2 * needed)


def test_rows_unlike_all_others_get_no_prediction() -> None:
    features, values, groups = world(np.random.default_rng(6), 5, 40)
    made = forecast(
        features, values, {"provider": groups}, np.vstack([features[:3] * 0, features[:1] + 9])
    )
    assert made.is_near.tolist() == [True, True, True, False]
    assert np.isnan(made.value[3])
    assert np.isfinite(made.value[:3]).all()


def test_intervals_widen_faster_than_the_deviation() -> None:
    features, values, groups = world(np.random.default_rng(10), 5, 40)
    rows = np.vstack([np.zeros(4), 0.8 * features[np.argmax((features**2).sum(axis=1))]])
    made = forecast(features, values, {"provider": groups}, rows)
    assert made.is_near.all()
    half = np.log(made.high / made.value)
    process = GroupedProcess(
        StandardRows(features), np.log(values), groups, np.ones(200), made.shape
    )
    near, far = process.predict(rows).deviation
    assert far > 1.05 * near
    assert half[1] / half[0] == pytest.approx((far / near) ** 1.5, rel=1e-6)


def test_what_carries_a_prediction_is_what_it_was_made_of() -> None:
    features, values, groups = world(np.random.default_rng(7), 6, 50)
    made = forecast(features, values, {"provider": groups}, features[:1])
    factors = errors_without(
        features, values, groups, {"first": [0], "second": [1], "none": [2, 3]}, made.shape
    )
    assert factors["first"] > factors["second"] > 1.2
    assert factors["none"] == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize(
    ("groups", "rows", "words"),
    [(2, 30, "needs 3"), (5, 4, "are too few; a prediction needs 30")],
)
def test_too_little_is_refused(groups: int, rows: int, words: str) -> None:
    features, values, names = world(np.random.default_rng(8), groups, rows)
    with pytest.raises(Refused, match=words):
        forecast(features, values, {"provider": names}, features[:1])


def test_what_is_no_number_is_refused() -> None:
    features, values, groups = world(np.random.default_rng(9), 4, 20)
    holed = features.copy()
    holed[3, 1] = np.nan
    with pytest.raises(Refused, match="A feature is missing"):
        forecast(holed, values, {"provider": groups}, features[:1])
    with pytest.raises(Refused, match="not a number above 0"):
        forecast(features, values * 0, {"provider": groups}, features[:1])
