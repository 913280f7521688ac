"""The distribution functions of our own, held against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from nephoscope.stats.statistics import distributions
from nephoscope.stats.statistics.estimates import rank_bounds


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 9, 10, 29, 30, 99, 1000])
@pytest.mark.parametrize("p", [0.5, 0.75, 0.95, 0.975, 0.995, 0.9995, 1 - 1e-6])
def test_quantiles_of_student(df: int, p: float) -> None:
    expected = special.stdtrit(df, p)
    assert distributions.student_quantile(df, p) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("z", [-8.0, -3.0, -1.96, 0.0, 0.5, 4.0])
def test_the_normal_distribution(z: float) -> None:
    p = distributions.normal_cdf(z)
    assert p == pytest.approx(special.ndtr(z), rel=1e-13)
    assert distributions.normal_quantile(p) == pytest.approx(special.ndtri(p), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 10, 100, 3688, 100_000, 10**7])
@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.9, 0.999])
def test_masses_of_the_binomial_distribution(n: int, q: float) -> None:
    first, mass = distributions.binomial_mass(n, q)
    expected = stats.binom.pmf(np.arange(first, first + mass.size), n, q)
    assert mass == pytest.approx(expected, rel=1e-7, abs=1e-30)


def test_beta_binomial_counts() -> None:
    inflation = np.array([1.0, 1.5, 4.0])
    got = distributions.beta_binomial_cumulative(20, 0.9, inflation)
    k = np.arange(21)
    assert got[0] == pytest.approx(stats.binom.cdf(k, 20, 0.9), rel=1e-9)
    for row, raised in zip(got[1:], inflation[1:], strict=True):
        size = 19 / (raised - 1) - 1
        assert row == pytest.approx(stats.betabinom.cdf(k, 20, 0.9 * size, 0.1 * size), rel=1e-9)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_ranks_are_those_of_the_exact_law(q: float, confidence: float) -> None:
    """A rank is one further where its probability is nearer to the limit than either computes."""
    tail = (1 - confidence) / 2
    for n in [*range(1, 120), 368, 1000, 3688, 123_457]:
        low, high, coverage = rank_bounds(n, q, confidence)
        assert low == 0 or special.bdtr(low - 1, n, q) <= tail * (1 + 1e-12)
        assert low == n or special.bdtr(low, n, q) > tail * (1 - 1e-12)
        assert high == n + 1 or special.bdtrc(high - 1, n, q) <= tail * (1 + 1e-12)
        assert high == 1 or special.bdtrc(high - 2, n, q) > tail * (1 - 1e-12)
        above = special.bdtr(high - 1, n, q) if high <= n else 1.0
        below = special.bdtr(low - 1, n, q) if low else 0.0
        # SciPy itself is wrong by 3e-11 at the largest n.
        assert coverage == pytest.approx(above - below, abs=1e-10)
