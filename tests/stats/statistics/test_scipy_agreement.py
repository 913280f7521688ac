"""Tests of our own give SciPy's results: see docs/decisions/0021-rank-tests-of-our-own.md."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nephoscope.features.isolation import dose_response
from nephoscope.stats.statistics import bootstrap, means, proportions, ranks

EXACT = {"rel": 1e-9, "abs": 1e-12}


def samples(seed: int, m: int, n: int, *, ties: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(10, 2, m), rng.normal(11, 3, n)
    return (np.round(a), np.round(b)) if ties else (a, b)


@pytest.mark.parametrize(("m", "n"), [(2, 3), (4, 4), (7, 12), (20, 20), (40, 35)])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_mann_whitney(m: int, n: int, ties: bool, seed: int) -> None:
    a, b = samples(seed, m, n, ties=ties)
    has_ties = len(set(a) | set(b)) < m + n
    method = "exact" if m * n <= ranks.EXACT_PAIRS and not has_ties else "asymptotic"
    ours = ranks.mann_whitney(a, b)
    for p, alternative in (
        (ours.p, "two-sided"),
        (ours.p_greater, "greater"),
        (ours.p_less, "less"),
    ):
        theirs = stats.mannwhitneyu(b, a, alternative=alternative, method=method)
        assert ours.statistic == theirs.statistic
        assert p == pytest.approx(theirs.pvalue, **EXACT)


@pytest.mark.parametrize("n", [3, 6, 9])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_signed_rank_is_exact_with_ties_too(n: int, ties: bool, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(1, 2, n)
    if ties:
        differences = np.where(np.round(differences) == 0, 1.0, np.round(differences))
    ours = ranks.signed_rank(differences)
    # Every assignment of signs: what SciPy needs 2^n sums for is one convolution per rank here.
    every = stats.PermutationMethod(n_resamples=2**n)
    for p, alternative in ((ours.p_greater, "greater"), (ours.p_less, "less")):
        theirs = stats.wilcoxon(differences, alternative=alternative, method=every)
        assert p == pytest.approx(theirs.pvalue, **EXACT)


@pytest.mark.parametrize("n", [20, 50])
def test_signed_rank_of_many_pairs(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.5, 2, n)
    ours = ranks.signed_rank(differences)
    theirs = stats.wilcoxon(differences, method="exact")
    assert ours.p == pytest.approx(theirs.pvalue, **EXACT)


@pytest.mark.parametrize("ties", [False, True])
def test_brunner_munzel_and_welch(ties: bool) -> None:
    a, b = samples(5, 12, 17, ties=ties)
    theirs = stats.brunnermunzel(a, b)
    assert ranks.brunner_munzel(a, b) == pytest.approx(theirs.pvalue, **EXACT)
    ours = means.welch(means.summary(a), means.summary(b))
    welch = stats.ttest_ind(b, a, equal_var=False)
    assert (ours.t, ours.df, ours.p) == pytest.approx(
        (welch.statistic, welch.df, welch.pvalue), rel=1e-9
    )


@pytest.mark.parametrize(("hits", "tries"), [(0, 5), (3, 10), (77, 77), (412, 1000)])
def test_wilson(hits: int, tries: int) -> None:
    ours = proportions.wilson(hits, tries)
    theirs = stats.binomtest(hits, tries).proportion_ci(method="wilson")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), **EXACT)


def test_page_without_ties() -> None:
    rows = np.random.default_rng(3).normal(np.arange(4), 2, (6, 4))
    ours = dose_response.page(rows)
    theirs = stats.page_trend_test(rows, method="exact")
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.p_rises == pytest.approx(theirs.pvalue, **EXACT)


def test_bca_within_the_noise_of_resampling() -> None:
    values = np.random.default_rng(9).lognormal(0, 1, 40)
    ours = bootstrap.bca(
        values, lambda rows: np.mean(rows, axis=-1), confidence=0.95, seed=1, resamples=20_000
    )
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(2)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.03 * width)
