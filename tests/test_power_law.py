"""Fits of costs: the exponent that was planted, and a store that does not follow."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from _power_law import fitted

SIZES = np.repeat([1e6, 1e7, 1e8], 5)


def costs(seed: int, noise: float = 0.05) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    randomness = np.random.default_rng(seed)
    return np.asarray(2e-7 * SIZES**0.97 * randomness.lognormal(0, noise, SIZES.size))


def test_a_law_without_noise_is_exact() -> None:
    fit = fitted(list(SIZES), list(costs(1, 0.0)), (1e9, 2e-7 * 1e9**0.97))
    assert fit["exponent"] == pytest.approx([0.97] * 3, abs=1e-6)
    assert fit["factor"] == pytest.approx(2e-7, rel=1e-6)
    assert fit["per_1e9"] == pytest.approx([2e-7 * 1e9**0.97] * 3, rel=1e-6)
    assert fit["check"]["ratio"] == pytest.approx(1, rel=1e-6)


def test_intervals_hold_exponent_and_new_stores_as_often_as_they_say() -> None:
    """400 laws: 95 % ± 4 standard errors of a share (1.1 %)."""
    truth = 2e-7 * 1e9**0.97
    exponents = inside = 0
    for seed in range(400):
        store = truth * np.random.default_rng(seed + 10_000).lognormal(0, 0.05)
        fit = fitted(list(SIZES), list(costs(seed)), (1e9, store))
        exponents += fit["exponent"][1] <= 0.97 <= fit["exponent"][2]
        inside += fit["check"]["is_inside"]
    assert 0.906 <= exponents / 400 <= 0.994
    assert 0.906 <= inside / 400 <= 0.994


def test_a_store_that_does_not_follow_is_outside() -> None:
    fit = fitted(list(SIZES), list(costs(1)), (1e9, 2 * 2e-7 * 1e9**0.97))
    assert not fit["check"]["is_inside"]
    assert fit["check"]["ratio"] == pytest.approx(2, rel=0.1)
