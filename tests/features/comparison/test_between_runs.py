import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import by_profile
from tests.rates import holds_rate
from tests.stats.test_compare import drift

from nephoscope.core.model import Better
from nephoscope.features.comparison import between_runs
from nephoscope.features.comparison.prior import Prior, priors
from nephoscope.stats.compare import independent
from nephoscope.stats.statistics.values import Refused

VERDICTS = {"better", "worse"}
PRIOR = Prior(0.03, 3, "the tests' own")
NARROW = Prior(0.0001, 3, "the tests' own")


@pytest.mark.parametrize(("of_a", "of_b"), [(1, 0), (1, 1), (3, 3)])
def test_with_history_equal_machines_rarely_get_a_verdict(of_a, of_b):
    # Runs differ by 10 %, repetitions by 2 %: without the variance between runs nearly every
    # comparison would claim a difference. Margin 0, so the margin does not help.
    # 0.05 plus two standard errors.
    rng = np.random.default_rng(of_a + of_b)
    comparisons = by_profile(quick=40, whole=300)
    claimed, naive = 0, 0
    for _ in range(comparisons):
        a, b, *others = np.exp(
            rng.normal(0, 0.1, (2 + of_a + of_b, 1)) + rng.normal(0, 0.02, (2 + of_a + of_b, 20))
        )
        history = [float(np.median(run)) for run in others]
        got = between_runs.separate_runs(
            a,
            b,
            history[:of_a],
            history[of_a:],
            prior=Prior(0.1, 3),
            better=Better.LOWER,
            margin=0,
        )
        claimed += got.verdict.word in VERDICTS
        naive += independent(a, b, better=Better.LOWER, margin=0).verdict.word in VERDICTS
        assert "not interleaved" in got.warnings[0]
    assert naive / comparisons > 0.7
    assert claimed / comparisons <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / comparisons)


def test_with_history_a_real_difference_is_found():
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(100):
        runs = np.exp(rng.normal(0, 0.01, (8, 1)) + rng.normal(0, 0.01, (8, 20)))
        history = [float(np.median(run)) for run in runs[2:]]
        got = between_runs.separate_runs(
            runs[0],
            1.2 * runs[1],
            history[:3],
            [1.2 * h for h in history[3:]],
            prior=PRIOR,
            better=Better.LOWER,
        )
        found += got.verdict.word == "worse"
    assert found > 95


@pytest.mark.parametrize("rho", [0.5, 0.9, 0.98])
def test_drift_inside_the_runs_is_taken_into_the_interval(rho):
    # Two halves of one drifting series: nothing differs. 0.05 plus two standard errors.
    pairs = by_profile(quick=40, whole=200)
    rows = drift(np.random.default_rng(5), pairs, 40, rho=rho)
    found = [
        between_runs.separate_runs(r[:20], r[20:], prior=NARROW, better=Better.LOWER) for r in rows
    ]
    claimed = np.mean([c.verdict.word in VERDICTS for c in found])
    assert claimed <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / pairs)
    assert all("not interleaved" in c.warnings[0] for c in found)
    # Where the drift leaves no interval at all, that is what is said instead.
    assert all("assumed" in c.warnings[1] or c.ratio.low is None for c in found)
    assert np.mean(["assumed" in c.warnings[1] for c in found]) > 0.25


def test_without_history_equivalence_is_never_claimed():
    a, b = np.random.default_rng(6).normal(100, 0.1, (2, 30))
    assert independent(a, b, better=Better.LOWER).verdict.word == "equivalent"
    got = between_runs.separate_runs(a, b, prior=NARROW, better=Better.LOWER)
    assert got.verdict.word == "inconclusive"
    assert "looks like A" in got.verdict.sentence
    known = between_runs.separate_runs(
        a, b, [100.0, 100.02], [99.98], prior=NARROW, better=Better.LOWER
    )
    assert known.verdict.word in {"equivalent", "different but negligible"}


def test_without_history_only_a_difference_beyond_the_assumed_variation_is_called():
    a, b = np.random.default_rng(7).normal(100, 0.5, (2, 20))
    got = between_runs.separate_runs(
        a, 1.5 * b, prior=PRIOR, better=Better.HIGHER, names=("old", "new")
    )
    assert got.verdict.word == "better"
    assert "new is better than old" in got.verdict.sentence
    assert "assuming a variation from run to run of 3 %" in got.verdict.sentence
    assert got.p == got.p_between_runs
    # The repetitions alone would call 8 % worse; t with 3 degrees of freedom allows 14 % by chance.
    assert independent(a, 1.08 * b, better=Better.LOWER).verdict.word == "worse"
    got = between_runs.separate_runs(a, 1.08 * b, prior=PRIOR, better=Better.LOWER)
    assert got.verdict.word == "inconclusive"
    assert got.ratio.high / got.ratio.value == pytest.approx(math.exp(3.1824 * 0.03 * 2**0.5), 1e-3)
    assert got.p > 0.05


def test_short_runs_take_the_assumed_variation_too():
    a, b = [100, 101, 99, 100, 102], [110, 111, 109, 110, 112]
    assert independent(a, b, better=Better.LOWER).verdict.word == "worse"
    got = between_runs.separate_runs(a, b, prior=PRIOR, better=Better.LOWER)
    assert got.verdict.word == "inconclusive"
    assert "assumed" in got.warnings[1]


def test_the_history_of_one_machine_is_counted_once_and_replaces_the_prior():
    a, b = np.random.default_rng(8).normal(100, 0.1, (2, 20))
    history = [97.0, 99.0, 100.0, 101.0, 103.0]
    got = between_runs.separate_runs(
        a, b, history, history, prior=PRIOR, same_machine=True, better=Better.LOWER
    )
    sd = np.std(np.log(history), ddof=1)
    assert got.ratio.high / got.ratio.value == pytest.approx(math.exp(2.7764 * sd * 2**0.5), 1e-4)
    assert "from 5 earlier runs." in got.warnings[1]
    blended = between_runs.separate_runs(
        a, b, history[:3], history[:3], prior=PRIOR, same_machine=True, better=Better.LOWER
    )
    assert (
        "from 3 earlier runs and 3 % assumed (weight 3 runs; the tests' own)"
        in (blended.warnings[1])
    )
    one = between_runs.separate_runs(
        a, b, [100.0], [100.0], prior=PRIOR, same_machine=True, better=Better.LOWER
    )
    assert "earlier" not in one.warnings[1]


@pytest.mark.parametrize(
    "repetitions", [100, pytest.param(2000, marks=pytest.mark.slow, id="whole")]
)
def test_intervals_cover_runs_that_differ_by_three_percent(repetitions: int):
    """Own noise 1 %. Two standard errors are allowed where 100 repetitions are counted."""
    rng = np.random.default_rng(9)
    # After five runs nothing is assumed, so one class of metrics stands for all.
    cases = {(name, 0): 0 for name in priors()} | {("all", 5): 0}
    if repetitions < 2000:
        narrowest = min(priors(), key=lambda name: priors()[name].sd)
        cases = {(narrowest, 0): 0, ("all", 5): 0}
    for _ in range(repetitions):
        runs = np.exp(rng.normal(0, 0.03, (7, 1)) + rng.normal(0, 0.01, (7, 20)))
        history = np.median(runs[2:], axis=1)
        for name, size in cases:
            got = between_runs.separate_runs(
                runs[0],
                runs[1],
                history[:size],
                history[:size],
                prior=priors()[name],
                same_machine=True,
                better=Better.LOWER,
            )
            cases[name, size] += (got.ratio.low or 0) <= 1 <= (got.ratio.high or math.inf)
    rates = {case: hits / repetitions for case, hits in cases.items()}
    error = 0 if repetitions >= 2000 else 2 * math.sqrt(0.05 * 0.95 / repetitions)
    for (_, size), rate in rates.items():
        assert rate >= (0.93 if size else 0.90) - error
        assert not size or rate <= 0.97 + error


def test_edges():
    def alike(a, b, history):
        return between_runs.separate_runs(a, b, history, prior=Prior(0.0, 1), better=Better.LOWER)

    zero = alike([0.0] * 8, [0.0, 1] * 4, [0.0])
    assert zero.verdict.word == "inconclusive"
    flat = alike([5.0] * 8, [5.0] * 8, [5.0])
    assert flat.p_between_runs == 1
    assert flat.verdict.word == "equivalent"
    late = [*range(100, 119), math.inf]
    assert alike(late, late, [109.0]).ratio is not None
    with pytest.raises(Refused, match="timeouts"):
        alike(late, late, [math.inf])


@given(
    st.lists(st.floats(1, 100), min_size=8, max_size=20),
    st.lists(st.floats(1, 100), min_size=8, max_size=20),
    st.lists(st.floats(1, 100), max_size=4),
)
def test_the_interval_is_never_narrower_than_that_of_independent_runs(a, b, history):
    plain = independent(a, b, better=Better.LOWER).ratio
    got = between_runs.separate_runs(a, b, history, prior=NARROW, better=Better.LOWER).ratio
    if plain.low is not None:
        assert got.low <= plain.low
        assert got.high is None or got.high >= plain.high
        assert got.low <= got.value


def test_runs_of_other_machines_of_the_class_tell_the_variation_and_find_a_fifth_more():
    # 3 % between runs, 1 % inside; five earlier runs of another machine, which is 30 % slower.
    rng, covered, found = np.random.default_rng(21), [], []
    for _ in range(by_profile(quick=60, whole=500)):
        runs = np.exp(rng.normal(0, 0.03, (7, 1)) + rng.normal(0, 0.01, (7, 20)))
        kin = [[1.3 * float(np.median(run)) for run in runs[2:]]]
        for factor in (1.0, 1.2):
            got = between_runs.separate_runs(
                runs[0],
                factor * runs[1],
                prior=Prior(0.17, 2.5),
                same_machine=True,
                better=Better.LOWER,
                kin=kin,
            )
            covered.append(got.ratio.low <= factor <= got.ratio.high)
            if factor > 1:
                found.append(got.ratio.low > 1)
        assert "from 5 runs of other machines of this class" in got.warnings[1]
        assert "assumed" not in got.warnings[1]
    holds_rate("separate runs, class known", covered, 0.93)
    holds_rate("a fifth more is found", found, 0.8)


def test_a_known_machine_needs_no_others():
    a, b = np.random.default_rng(22).normal(100, 0.5, (2, 20))
    history = [100.0, 101.0, 99.0, 100.5, 99.5]
    alone, joined = (
        between_runs.separate_runs(
            a, b, history, history, prior=PRIOR, same_machine=True, better=Better.LOWER, kin=kin
        )
        for kin in ((), [[50.0, 80.0, 120.0]])
    )
    assert joined.ratio == alone.ratio
