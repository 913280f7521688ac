"""A confidence sequence holds after every value at once, not only after one number of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.rates import holds_rate

from nephoscope.core.model import Better
from nephoscope.stats import anytime, compare
from nephoscope.stats.statistics.values import Array

FIRST, LAST, RUNS = 10, 300, 1000
OUTLIERS = (0.02, 0.96, 0.02)
Noise = Callable[[np.random.Generator], Array]

# Logarithms of the ratios of two alike sides are symmetric, whatever the sides are.
NOISES: dict[str, Noise] = {
    "normal": lambda rng: rng.normal(0, 1, LAST),
    "heavy tails": lambda rng: rng.standard_t(3, LAST),
    "log-normal": lambda rng: rng.lognormal(0, 1, LAST) - rng.lognormal(0, 1, LAST),
    "outliers": lambda rng: rng.normal(0, 1, LAST) + rng.choice([-20, 0, 20], LAST, p=OUTLIERS),
    "whole numbers": lambda rng: np.round(rng.normal(0, 1, LAST)),
}


def ends(values: Array) -> tuple[Array, Array]:
    """Returns the interval after FIRST, FIRST + 1, … LAST values."""
    n = np.arange(1, values.size + 1)
    mean = np.cumsum(values) / n
    squares = np.maximum(np.cumsum(values**2) - n * mean**2, 0)
    half = np.array([anytime.half_width_of(int(k), 0.95) for k in n[FIRST - 1 :]])
    half *= np.sqrt(squares / np.maximum(n - 1, 1) / n)[FIRST - 1 :]
    return mean[FIRST - 1 :] - half, mean[FIRST - 1 :] + half


@pytest.mark.parametrize("name", NOISES)
def test_all_intervals_of_a_series_hold_the_truth(name: str) -> None:
    """Stated are 95 %; Student's t at each n would miss in every third series."""
    rng, held = np.random.default_rng(5), []
    for _ in range(RUNS):
        low, high = ends(NOISES[name](rng))
        held.append(bool(np.all((low <= 0) & (high >= 0))))
    holds_rate(name, held, 0.95)


def test_the_interval_is_where_the_mixture_reaches_the_error_rate() -> None:
    for n, confidence in ((6, 0.9), (10, 0.95), (200, 0.99)):
        t2 = anytime.half_width_of(n, confidence) ** 2
        shrinkage = anytime.PRIOR_N / (n + anytime.PRIOR_N)
        ratio = (t2 + n - 1) / (shrinkage * t2 + n - 1)
        assert math.sqrt(shrinkage) * ratio ** (n / 2) == pytest.approx(1 / (1 - confidence))


def test_few_values_have_no_interval_and_it_narrows() -> None:
    assert anytime.mean_shift(np.array([1.0]), 0.95).low is None
    assert anytime.mean_shift(np.array([1.0, 2.0]), 0.95).low is None
    widths = [anytime.half_width_of(n, 0.95) / math.sqrt(n) for n in (6, 10, 20, 50, 100, 1000)]
    assert widths == sorted(widths, reverse=True)


def test_a_standard_deviation_takes_a_dozen_values() -> None:
    rng, needed = np.random.default_rng(6), []
    for _ in range(300):
        low, _ = ends(rng.normal(1, 1, LAST))
        needed.append(FIRST + int(np.argmax(low > 0)))
    assert np.median(needed) <= 13


def test_a_comparison_states_which_interval_it_has() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.lognormal(0, 0.03, (2, 20))
    classical, sequence = (
        compare.paired(a, 1.2 * b, better=Better.LOWER, is_anytime=is_anytime)
        for is_anytime in (False, True)
    )
    for found, method in ((classical, "Hodges-Lehmann"), (sequence, "confidence sequence")):
        assert found.verdict.word == "worse"
        assert found.ratio is not None
        assert found.difference is not None
        assert method in found.ratio.method
        assert method in found.difference.method
    assert classical.p_ratio is not None
    assert sequence.p_ratio is not None
    assert classical.p_ratio < sequence.p_ratio < 0.05
