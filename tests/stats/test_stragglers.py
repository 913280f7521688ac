"""The straggler law: exact for means that obey it, covered for drawn ones, refused for too few."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.statistics.values import Refused
from nephoscope.stats.stragglers import harmonic_number, straggler_law


def test_harmonic_numbers() -> None:
    assert [harmonic_number(n) for n in (1, 2, 4)] == pytest.approx([1, 1.5, 25 / 12])


def test_means_that_obey_the_law_are_recovered() -> None:
    workers = [2, 2, 4, 4, 8, 8]
    law = straggler_law(workers, [100 + 10 * harmonic_number(n) for n in workers], unit="ns")
    assert law.fixed.value == pytest.approx(100)
    assert law.delay.value == pytest.approx(10)
    assert law.delay.low == pytest.approx(law.delay.high)
    assert law.misfit_ratio == pytest.approx(0, abs=1e-9)
    assert law.slowest(16) == pytest.approx(100 + 10 * harmonic_number(16))


def test_intervals_cover_the_delay_of_drawn_maxima() -> None:
    rng = np.random.default_rng(5)
    workers = np.repeat([2, 4, 8], 6)
    covered = 0
    for _ in range(300):
        # The mean of 50 steps, each with the slowest of n exponential delays of mean 10.
        means = [100 + rng.exponential(10, (50, n)).max(axis=1).mean() for n in workers]
        law = straggler_law(workers.tolist(), means, unit="ns")
        assert law.delay.low is not None
        assert law.delay.high is not None
        covered += law.delay.low <= 10 <= law.delay.high
    # 95 % of 300 with four standard errors of 3.8.
    assert covered >= 270


def test_the_fixed_time_is_not_negative() -> None:
    workers = [2, 2, 4, 4, 8, 8]
    noise = (-2, 1.5, -1, 1, -0.5, 1.5)
    drawn = [10 * harmonic_number(n) + own for n, own in zip(workers, noise, strict=True)]
    law = straggler_law(workers, drawn, unit="ns")
    assert law.fixed.value == law.fixed.low == 0
    assert law.fixed.high is not None
    assert law.fixed.high > 0
    assert law.delay.value == pytest.approx(10, rel=0.05)
    with pytest.raises(Refused, match="no fixed time is left"):
        straggler_law(workers, [20 * harmonic_number(n) - 20 for n in workers], unit="ns")


def test_the_delay_is_not_negative() -> None:
    law = straggler_law([2, 2, 4, 4, 8, 8], [103, 97, 104, 96, 99, 95], unit="ns")
    assert (law.delay.value, law.delay.low, law.fixed.value) == (0, 0, 99)
    assert law.delay.high is not None
    assert law.delay.high > 0
    assert law.fixed.low is not None
    assert law.fixed.high is not None
    assert law.fixed.low < 99 < law.fixed.high
    with pytest.raises(Refused, match="faster among more workers"):
        straggler_law([2, 2, 4, 4, 8, 8], [101, 99, 85, 87, 70, 69], unit="ns")


def test_a_law_of_other_delays_states_its_misfit() -> None:
    # The slowest of workers that take the same time grows by nothing, then by a step.
    law = straggler_law([2, 4, 8], [100, 100, 200], unit="ns")
    assert law.misfit_ratio > 0.1


@pytest.mark.parametrize("workers", [[2, 4], [4, 4, 4]])
def test_too_few_are_refused(workers: list[int]) -> None:
    with pytest.raises(Refused):
        straggler_law(workers, [1.0] * len(workers), unit="ns")
