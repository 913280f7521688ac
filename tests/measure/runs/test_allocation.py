"""Repetitions go to the widest intervals: to which settings, in which rounds, at what coverage."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from tests.profiles import by_profile

from nephoscope.measure import plans
from nephoscope.measure.plans.survey import LEVELS
from nephoscope.measure.runs.schedule.progress import Progress
from nephoscope.stats import stopping
from nephoscope.stats.statistics.estimates import median

from .test_progress import Trial, drive, plan_of, record

SPREADS = (0.005, 0.01, 0.02, 0.04, 0.06, 0.09, 0.14, 0.20)


def lognormal(seed: int) -> Trial:
    """Trials whose noise grows from setting to setting; each takes one second."""
    draws = [random.Random(f"{seed}/{index}") for index in range(len(SPREADS))]

    def trial(key: object) -> tuple[object, float]:
        index = key.setting  # type: ignore[attr-defined]
        return record(key), 100 * draws[index].lognormvariate(0, SPREADS[index])  # type: ignore[arg-type]

    return trial  # type: ignore[return-value]


def run(
    allocation: str, seed: int, rounds: int = 20
) -> tuple[Progress, list[list[tuple[int, str]]]]:
    plan = plan_of(
        len(SPREADS),
        budget=rounds * len(SPREADS),
        repeat={"allocation": allocation},
        warmup=0,
    )
    return drive(plan, lognormal(seed))


def values_of(progress: Progress) -> list[list[float]]:
    return [values for one in progress._all.values() for values in one.values.values()]


def test_every_setting_is_in_the_first_rounds_and_the_widest_in_the_later_ones() -> None:
    _, rounds = run("widest", 1)
    everything = set(rounds[0])
    assert len(everything) == len(SPREADS)
    assert all(set(ran) == everything for ran in rounds[:10])
    assert all(set(ran) < everything for ran in rounds[10:])
    times = Counter(index for ran in rounds for index, _ in ran)
    assert times[len(SPREADS) - 1] == max(times.values()) > times[0]


def test_even_allocation_measures_every_setting_that_goes_on() -> None:
    _, rounds = run("even", 1)
    ended: set[tuple[int, str]] = set()
    for ran, following in pairwise(rounds):
        ended |= set(ran) - set(following)
        assert not ended & set(following)


def test_the_budget_is_kept_and_used() -> None:
    for seed in range(20):
        progress, rounds = run("widest", seed)
        spent = sum(map(len, rounds))
        assert spent <= 20 * len(SPREADS)
        words = {outcome.word for outcome in progress.outcomes()}
        assert "budget" not in words or spent > 20 * len(SPREADS) - 8


def test_the_same_trials_give_the_same_rounds() -> None:
    assert run("widest", 3)[1] == run("widest", 3)[1]


def test_targets_of_a_setting_stay_paired() -> None:
    targets = [{"name": "a", "kind": "local"}, {"name": "b", "kind": "local"}]
    plan = plan_of(
        len(SPREADS),
        budget=20 * 2 * len(SPREADS),
        repeat={"allocation": "widest"},
        warmup=0,
        targets=targets,
    )
    _, rounds = drive(plan, lognormal(1))
    for number, ran in enumerate(rounds[:-1]):
        for index, name in ran:
            other = (index, "b" if name == "a" else "a")
            # Alone only where the other has ended.
            assert other in ran or all(other not in later for later in rounds[number:])


@pytest.mark.parametrize("allocation", ["even", "widest"])
def test_intervals_cover_as_they_say(allocation: str) -> None:
    """Runs of eight settings: at most one point below 95 %, of each setting and of all.

    Three standard errors are allowed, but for the sum over 500 runs, which has hardly any.
    """
    runs = by_profile(quick=40, whole=500)
    covered: Counter[int] = Counter()
    for seed in range(runs):
        progress, _ = run(allocation, seed, rounds=16)
        for index, values in enumerate(values_of(progress)):
            estimate = median(values, unit="ns")
            assert estimate.low is not None
            assert estimate.high is not None
            covered[index] += estimate.low <= 100 <= estimate.high
    draws = runs * len(SPREADS)
    of_all = 3 * (0.95 * 0.05 / draws) ** 0.5 if runs < 500 else 0.0
    assert sum(covered.values()) / draws > 0.95 - 0.01 - of_all
    assert min(covered.values()) / runs > 0.95 - 0.01 - 3 * (0.95 * 0.05 / runs) ** 0.5


def test_intervals_become_narrower_than_with_even_allocation() -> None:
    def width(allocation: str) -> float:
        seeds = range(by_profile(quick=15, whole=60))
        runs = (run(allocation, seed, rounds=16)[0] for seed in seeds)
        return sum(
            stopping.relative_half_width(values, 0.95) or 0.0
            for progress in runs
            for values in values_of(progress)
        )

    assert width("widest") < width("even")


def test_plans_of_the_survey_allocate_to_the_widest() -> None:
    for level in LEVELS:
        assert plans.survey(level).repeat.allocation == "widest"
