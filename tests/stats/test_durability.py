"""Loss rates against closed forms, and their coverage on planted losses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nephoscope.stats.durability import annual_loss, object_years_needed


def test_no_loss_bounds_the_rate_by_three_over_the_object_years() -> None:
    loss = annual_loss(0, 1000.0, 100)
    assert loss is not None
    assert (loss.value, loss.low, loss.n) == (0.0, 0.0, 100)
    # -ln 0.05 = 2.9957, of which the rule of three is the rounded form.
    assert loss.high == pytest.approx(-math.expm1(-2.995732 / 1000), rel=1e-6)


def test_losses_have_the_exact_poisson_interval() -> None:
    loss = annual_loss(2, 50.0, 100)
    assert loss is not None
    assert loss.low is not None
    assert loss.high is not None
    assert loss.value == pytest.approx(1 - math.exp(-0.04))
    # Garwood's bounds of a count of 2: 0.2422 and 7.2247.
    assert loss.low == pytest.approx(1 - math.exp(-0.24221 / 50), rel=1e-4)
    assert loss.high == pytest.approx(1 - math.exp(-7.22469 / 50), rel=1e-4)


def test_nothing_is_stated_before_time_was_observed() -> None:
    assert annual_loss(0, 0.0, 100) is None


def test_eleven_nines_take_three_hundred_billion_object_years() -> None:
    assert object_years_needed(1e-11) == pytest.approx(2.995732e11, rel=1e-4)


def test_intervals_cover_the_planted_rate() -> None:
    """Exact intervals cover at least their confidence; 1,000 sets of 100 objects over 2 years."""
    annual, rng = 0.02, np.random.default_rng(7)
    rate = -math.log1p(-annual)
    covered = 0
    for _ in range(1000):
        lives = np.minimum(rng.exponential(1 / rate, 100), 2.0)
        loss = annual_loss(int((lives < 2.0).sum()), float(lives.sum()), 100)
        assert loss is not None
        low, high = loss.low or 0.0, loss.high or 0.0
        covered += low <= annual <= high
    # 95 % less three standard errors of a rate of 1,000.
    assert covered >= 930
