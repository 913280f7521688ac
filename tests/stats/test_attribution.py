"""The word "neighbour" is said by the rule and by nothing else: truth table and properties."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.core.model import Estimate
from nephoscope.stats import attribution
from nephoscope.stats.attribution import COUNTERS, CounterOrigin, SlowdownCause, attribute

TWICE = Estimate(2.0, 1.9, 2.1, 0.95, 12, "ratio", "median")
QUIET = {counter.key: 0.0 for counter in COUNTERS}


def readings(n: int = 8, seed: int = 1, **levels: float | None) -> list[dict[str, Any]]:
    """Readings around the given levels, the other counters near 0."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        noise = {key: abs(float(rng.normal(0, 1e-4))) for key in QUIET}
        given_now = {
            key: None if level is None else level * float(rng.uniform(0.95, 1.05))
            for key, level in levels.items()
        }
        out.append({**noise, **given_now})
    return out


def told(slowdown: Estimate = TWICE, paired: bool = False, **noisy: float | None) -> SlowdownCause:
    hidden = {key: None for key, level in noisy.items() if level is None}
    found = attribution.attribute(
        slowdown, readings(seed=1, **hidden), readings(seed=2, **noisy), paired=paired
    )
    assert found.sentence
    return found.word


RISES = {
    CounterOrigin.QUOTA: {"throttled_ratio": 0.5},
    CounterOrigin.OWN: {"others_busy_cpus": 1.0},
    CounterOrigin.HYPERVISOR: {"steal_ratio": 0.5},
    CounterOrigin.KERNEL: {"psi_cpu_some_ratio": 0.5},
}


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(
    "sides", [c for n in range(5) for c in itertools.combinations(CounterOrigin, n)]
)
def test_the_truth_table(sides: tuple[CounterOrigin, ...], paired: bool) -> None:
    """Quota before local load before neighbour; nothing that rises is unexplained."""
    noisy = {key: level for side in sides for key, level in RISES[side].items()}
    if CounterOrigin.QUOTA in sides:
        wanted = SlowdownCause.OWN_QUOTA
    elif CounterOrigin.OWN in sides:
        wanted = SlowdownCause.LOCAL_LOAD
    elif sides:
        wanted = SlowdownCause.NEIGHBOUR
    else:
        wanted = SlowdownCause.UNEXPLAINED
    assert told(paired=paired, **noisy) is wanted


@pytest.mark.parametrize(
    "key", ["steal_ratio", "psi_cpu_some_ratio", "psi_memory_some_ratio", "psi_io_some_ratio",
            "own_gap_ratio", "spare_gap_ratio"],
)  # fmt: skip
def test_every_counter_of_outside_is_enough_by_itself(key: str) -> None:
    assert told(**{key: 0.3}) is SlowdownCause.NEIGHBOUR


def test_a_factor_whose_interval_contains_one_is_nobodys_doing() -> None:
    for low in (0.97, 1.0, None):
        weak = Estimate(1.02, low, 1.06, 0.95, 12, "ratio", "median")
        assert told(weak, steal_ratio=0.5) is SlowdownCause.UNDECIDED


@pytest.mark.parametrize(
    ("slowdown", "word"),
    [
        (Estimate(1.52, 0.993, 1.67, 0.95, 6, "ratio", "median"), SlowdownCause.UNDECIDED),
        (Estimate(1.00, 0.98, 1.031, 0.95, 6, "ratio", "median"), SlowdownCause.UNDECIDED),
        (Estimate(1.00, 0.98, 1.03, 0.95, 6, "ratio", "median"), SlowdownCause.NO_SLOWDOWN),
        (Estimate(1.00, 1.0003, 1.009, 0.95, 8, "ratio", "median"), SlowdownCause.NO_SLOWDOWN),
        (Estimate(0.60, 0.50, 0.70, 0.95, 6, "ratio", "median"), SlowdownCause.NO_SLOWDOWN),
    ],
)
def test_no_slowdown_needs_an_interval_inside_the_margin(
    slowdown: Estimate, word: SlowdownCause
) -> None:
    found = attribute(slowdown, [], [])
    assert found.word is word
    assert f"{slowdown.value:.2f}" in found.sentence
    assert f"{slowdown.high:.3g}" in found.sentence


def test_the_interval_of_the_equivalence_test_decides_that_nothing_was_lost() -> None:
    wide = Estimate(1.00, 0.96, 1.04, 0.95, 6, "ratio", "median")
    narrow = Estimate(1.00, 0.98, 1.02, 0.90, 6, "ratio", "median")
    found = attribute(wide, [], [], equivalence=narrow)
    assert found.word is SlowdownCause.NO_SLOWDOWN
    assert "At 90 %" in found.sentence


def test_a_rise_too_small_for_the_slowdown_explains_nothing() -> None:
    # Half of the time was lost; 2 % steal is certain, and no explanation of it.
    assert told(steal_ratio=0.02) is SlowdownCause.UNEXPLAINED
    slight = Estimate(1.03, 1.02, 1.04, 0.95, 12, "ratio", "median")
    assert told(slight, steal_ratio=0.02) is SlowdownCause.NEIGHBOUR


def test_pressure_accuses_nobody_where_our_own_doing_is_hidden() -> None:
    """On this kernel we ourselves could have raised it; steal we could not."""
    assert told(psi_cpu_some_ratio=0.5, others_busy_cpus=None) is SlowdownCause.UNEXPLAINED
    assert told(spare_gap_ratio=0.5, throttled_ratio=None) is SlowdownCause.UNEXPLAINED
    assert (
        told(steal_ratio=0.5, others_busy_cpus=None, throttled_ratio=None)
        is SlowdownCause.NEIGHBOUR
    )


def test_hidden_counters_are_told_as_no_evidence() -> None:
    noisy = readings(seed=2, steal_ratio=None, psi_cpu_some_ratio=None)
    found = attribution.attribute(TWICE, readings(), noisy)
    assert found.word is SlowdownCause.UNEXPLAINED
    assert "steal: not shown here, which is no evidence" in found.evidence


def test_what_rose_stands_first_with_its_interval() -> None:
    found = attribution.attribute(TWICE, readings(), readings(seed=2, steal_ratio=0.4))
    assert found.evidence[0].startswith("steal rose: change ")
    assert "n = 8" in found.evidence[0]


def test_two_readings_are_no_evidence() -> None:
    found = attribution.attribute(TWICE, readings(2), readings(2, seed=2, steal_ratio=0.5))
    assert found.word is SlowdownCause.UNEXPLAINED


@pytest.mark.parametrize("n", [3, 4, 5])
def test_few_readings_are_judged_by_means(n: int) -> None:
    found = attribution.attribute(
        TWICE, readings(n), readings(n, seed=2, steal_ratio=0.5), paired=True
    )
    assert found.word is SlowdownCause.NEIGHBOUR


level = st.one_of(st.none(), st.floats(0, 2))
reading = st.fixed_dictionaries(dict.fromkeys(QUIET, level))


@given(
    st.lists(reading, max_size=9),
    st.lists(reading, max_size=9),
    st.floats(1.001, 50),
    st.booleans(),
)
def test_neighbour_is_never_said_while_the_quota_rises(
    quiet: list[dict[str, Any]], noisy: list[dict[str, Any]], factor: float, paired: bool
) -> None:
    slowdown = Estimate(factor, (1 + factor) / 2, factor * 2, 0.95, 9, "ratio", "median")
    found = attribution.attribute(slowdown, quiet, noisy, paired=paired)
    rose = {one.counter.side for one in found.changes if one.rose}
    if found.word is SlowdownCause.NEIGHBOUR:
        assert rose & {CounterOrigin.HYPERVISOR, CounterOrigin.KERNEL}
        assert not rose & {CounterOrigin.QUOTA, CounterOrigin.OWN}
    assert (found.word is SlowdownCause.OWN_QUOTA) == (CounterOrigin.QUOTA in rose)
    assert found.evidence


@given(st.lists(reading, min_size=3, max_size=9), st.floats(1.001, 50))
def test_without_any_change_nothing_is_accused(same: list[dict[str, Any]], factor: float) -> None:
    slowdown = Estimate(factor, (1 + factor) / 2, factor * 2, 0.95, 9, "ratio", "median")
    found = attribution.attribute(slowdown, same, same, paired=True)
    assert found.word is SlowdownCause.UNEXPLAINED


@given(st.integers(0, 2**32 - 1))
def test_noise_alone_hardly_ever_rises(seed: int) -> None:
    """Both sides drawn from one law: at most a tail of the interval may rise, and it is small."""
    rng = np.random.default_rng(seed)
    sides = rng.exponential(0.001, (2, 8))
    quiet, noisy = ([{**QUIET, "steal_ratio": float(v)} for v in side] for side in sides)
    # A thousandth of steal cannot be a slowdown of two, whatever the draw.
    assert attribution.attribute(TWICE, quiet, noisy).word is SlowdownCause.UNEXPLAINED


def test_nobody_is_accused_while_other_programs_here_may_have_risen_as_much() -> None:
    """Three trials in which they used 0 to 1.4 CPUs do not tell that they did not."""
    used = (0.0, 0.1, 1.4)
    noisy = [{**QUIET, "steal_ratio": 0.3, "others_busy_cpus": cpus} for cpus in used]
    quiet = [{**QUIET, "others_busy_cpus": cpus} for cpus in (0.0, 0.05, 0.1)]
    found = attribution.attribute(TWICE, quiet, noisy)
    assert found.word is SlowdownCause.UNEXPLAINED
    assert "may have risen as much" in found.sentence
    assert any("may have risen: change" in line for line in found.evidence)
