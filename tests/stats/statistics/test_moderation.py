"""Variances of many series help one another as far as they are alike, and no further."""

from __future__ import annotations

import numpy as np
import pytest

from nephoscope.stats.statistics.moderation import LEAST_SERIES, moderated

DF = 7


def drawn(true: np.ndarray, seed: int = 1) -> np.ndarray:  # type: ignore[type-arg]
    """Variances of samples of eight values with these true variances."""
    return true * np.random.default_rng(seed).chisquare(DF, true.size) / DF


def test_equal_variances_are_pooled() -> None:
    variances = drawn(np.full(2000, 4.0))
    moved, df = moderated(variances, np.full(2000, float(DF)))
    assert np.std(moved) < 0.35 * np.std(variances)
    assert np.mean(moved) == pytest.approx(4.0, rel=0.05)
    assert df.min() > 3 * DF


def test_variances_that_differ_much_are_hardly_moved() -> None:
    true = np.exp(np.random.default_rng(2).normal(0, 3, 2000))
    variances = drawn(true)
    moved, df = moderated(variances, np.full(2000, float(DF)))
    assert np.median(np.abs(np.log(moved / variances))) < 0.15
    assert df.max() < 1.3 * DF


def test_few_series_show_nothing_of_each_other() -> None:
    variances, df = drawn(np.ones(LEAST_SERIES - 1)), np.full(LEAST_SERIES - 1, float(DF))
    assert moderated(variances, df) == (pytest.approx(variances), pytest.approx(df))


def test_a_series_without_repetitions_stays_as_it_is() -> None:
    variances, df = drawn(np.ones(50)), np.full(50, float(DF))
    variances[3], df[3] = 0.0, 0.0
    moved, moved_df = moderated(variances, df)
    assert moved[3] == 0.0
    assert moved_df[3] == 0.0
