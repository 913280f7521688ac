"""When a run goes on, when it ends, and that it decides the same from stored trials."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from nephoscope import catalog
from nephoscope.core.model import Setting, TrialKey, TrialRecord, TrialStatus
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.schedule.alternatives import Outcome, Pair
from nephoscope.measure.runs.schedule.progress import HARD_LIMIT, Progress

CATALOG = catalog.load()
SPECS = {"null": CATALOG.benchmark("null")}
SERIES = ("null_ns", "{}")


def plan_of(settings: int = 1, **more: Any) -> Plan:
    entry = {"benchmark": "null", "factors": {"value": [float(n + 1) for n in range(settings)]}}
    return Plan.model_validate({"name": "p", "benchmarks": [entry], **more})


def record(
    key: TrialKey, cost_s: float = 1.0, failure: str = "", valid: bool = True
) -> TrialRecord:
    status = TrialStatus.FAILED if failure else TrialStatus.VALID if valid else TrialStatus.INVALID
    reasons = ("it rained",) if failure or not valid else ()
    return TrialRecord(
        key, "null", {}, {}, status, reasons, 0, 0.0, 1, {}, failure_name=failure, spent_s=cost_s
    )


Trial = Callable[[TrialKey], tuple[TrialRecord, float]]


def steady(key: TrialKey) -> tuple[TrialRecord, float]:
    return record(key), 100.0 + key.round % 2


def noisy(seed: int) -> Trial:
    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        draw = random.Random(f"{seed}/{key.name}")
        return record(key, draw.uniform(0.5, 1.5)), draw.gauss(100, 6)

    return trial


def drive(plan: Plan, trial: Trial = steady) -> tuple[Progress, list[list[Pair]]]:
    """Runs the plan on trials that are given by a function; the pairs measured in each round."""
    settings: list[Setting] = plans.expand(plan, CATALOG)
    progress, rounds = Progress(plan, settings, SPECS), []
    told: list[Outcome] = []
    for number in chain.from_iterable(progress.cells()):
        ran = []
        for pair in plans.order_round(1, number, progress.begin_round(number)):
            if progress.out_of_time([pair]):
                progress.end_by_budget()
                break
            key = TrialKey(number, *pair)
            done, value = trial(key)
            progress.add(done, [(*SERIES, value, 1)] if done.status is TrialStatus.VALID else [])
            ran.append(pair)
        rounds.append(ran)
        told += progress.end_round()
        assert number < 1000
    # Whatever ended was told once, the ends by the budget too.
    assert sorted(map(str, told)) == sorted(map(str, progress.outcomes()))
    return progress, rounds


def outcome(progress: Progress, index: int = 0) -> Outcome:
    return progress.outcomes()[index]


def test_steady_values_converge_at_the_first_look() -> None:
    progress, rounds = drive(plan_of())
    assert (outcome(progress).word, outcome(progress).n) == ("converged", 10)
    assert len(rounds) == 11  # one of them warm-up


def test_noise_needs_more_rounds_and_ends_at_a_look() -> None:
    progress, rounds = drive(plan_of(repeat={"max": 200}), noisy(3))
    found = outcome(progress)
    assert found.word in ("converged", "noise_known", "max_reached")
    assert found.n > 10
    assert found.n % 5 == 0
    assert len(rounds) == found.n + 1


def test_who_is_done_leaves_the_rounds() -> None:
    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        return steady(key) if key.setting == 0 else noisy(5)(key)

    _, rounds = drive(plan_of(2, repeat={"max": 40}), trial)
    assert all(len(ran) == 2 for ran in rounds[:11])
    assert all(ran == [(1, "local")] for ran in rounds[11:])
    assert len(rounds) > 11


def test_max_is_the_end() -> None:
    progress, rounds = drive(plan_of(repeat={"min": 10, "max": 12}), noisy(4))
    assert (outcome(progress).word, outcome(progress).n) == ("max_reached", 12)
    assert len(rounds) == 13


def test_exactly_so_many() -> None:
    progress, rounds = drive(plan_of(repeat={"min": 3, "max": 3}, warmup=2))
    assert outcome(progress).n == 3
    assert len(rounds) == 5


def test_a_setting_that_fails_three_times_alike_is_refused() -> None:
    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        return (record(key, failure="no_direct_io"), 0.0) if key.setting else steady(key)

    progress, rounds = drive(plan_of(2), trial)
    refused = outcome(progress, 1)
    assert (refused.word, refused.n) == ("refused", 0)
    assert "3 times in a row: it rained" in refused.reason
    assert [(1, "local") in ran for ran in rounds[:4]] == [True, True, True, False]
    assert outcome(progress, 0).word == "converged"


def test_failures_that_differ_or_alternate_are_tried_again() -> None:
    def differing(key: TrialKey) -> tuple[TrialRecord, float]:
        return record(key, failure=f"name_{key.round % 2}"), 0.0

    progress, _ = drive(plan_of(), differing)
    assert (outcome(progress).word, len(outcome(progress).reason) > 0) == ("no_valid", True)

    def alternating(key: TrialKey) -> tuple[TrialRecord, float]:
        return (record(key, failure="x"), 0.0) if key.round % 3 else steady(key)

    progress, _ = drive(plan_of(repeat={"max": 40}), alternating)
    assert (outcome(progress).word, outcome(progress).n) == ("converged", 10)


def test_invalid_trials_do_not_count() -> None:
    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        return (record(key, valid=False), 0.0) if key.round % 2 else steady(key)

    progress, rounds = drive(plan_of(), trial)
    assert (outcome(progress).word, outcome(progress).n) == ("converged", 10)
    assert len(rounds) == 21

    progress, rounds = drive(plan_of(), lambda key: (record(key, valid=False), 0.0))
    assert outcome(progress).word == "no_valid"
    assert len(rounds) == 11


def test_the_budget_ends_what_has_enough() -> None:
    progress, rounds = drive(plan_of(2, budget="25.5s"), noisy(1))
    assert {found.word for found in progress.outcomes()} == {"budget"}
    assert all(found.n >= 10 for found in progress.outcomes())
    assert progress.spent_s <= 25.5 + 3
    assert len(rounds) < 15


def test_no_round_begins_that_cannot_fit() -> None:
    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        return record(key, 1.0), 100 + 30 * (key.round % 5)

    progress, _ = drive(plan_of(budget="13.5s"), trial)
    # The warm-up and 12 rounds of 1 s are 13 s; a 13th would end after the budget.
    assert (progress.spent_s, outcome(progress).n) == (13.0, 12)


def test_what_lacks_repetitions_goes_on_to_the_hard_limit() -> None:
    progress, _ = drive(plan_of(budget="6s"))
    found = outcome(progress)
    assert (found.word, found.n, found.needed) == ("budget", 6, 10)
    assert found.reason == "the budget of 6 s allowed n = 6 of 10"
    assert progress.spent_s <= 6 * HARD_LIMIT
    assert progress.spent_s > 6


def test_overtime_is_enough_for_the_least_number() -> None:
    progress, _ = drive(plan_of(budget="9s"))
    assert (outcome(progress).word, outcome(progress).n) == ("converged", 10)


def test_however_small_the_budget_everything_is_measured_once() -> None:
    progress, rounds = drive(plan_of(3, budget="0.1s"))
    assert [len(ran) for ran in rounds if ran] == [3, 3]
    assert [found.n for found in progress.outcomes()] == [1, 1, 1]


def test_a_slow_alternative_does_not_overrun_the_hard_limit() -> None:
    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        return record(key, 4.0 if key.setting else 0.1), 100.0

    progress, _ = drive(plan_of(2, budget="20s"), trial)
    assert progress.spent_s <= 20 * HARD_LIMIT


def test_costs_of_the_warm_up_are_forgotten() -> None:
    def trial(key: TrialKey) -> tuple[TrialRecord, float]:
        return record(key, 10.0 if key.round < 1 else 0.5), 100.0

    progress, _ = drive(plan_of(budget="16s"), trial)
    assert outcome(progress).n == 10


def test_one_trial_needs_no_warm_up() -> None:
    plan = plan_of(repeat={"min": 1, "max": 1})
    _, rounds = drive(plan)
    assert [len(ran) for ran in rounds] == [0, 1]


@pytest.mark.parametrize("seed", range(8))
def test_stored_trials_lead_to_the_same_state(seed: int) -> None:
    """Replaying the first k trials of a run, then going on, ends as the run itself did."""
    plan = plan_of(3, budget="70s", targets=[{"name": "a"}, {"name": "b"}])
    stored: dict[TrialKey, tuple[TrialRecord, float]] = {}

    def remembered(key: TrialKey) -> tuple[TrialRecord, float]:
        stored[key] = noisy(seed)(key)
        return stored[key]

    whole, rounds = drive(plan, remembered)
    kept = dict(list(stored.items())[: random.Random(seed).randrange(len(stored))])
    measured: list[TrialKey] = []

    def resumed(key: TrialKey) -> tuple[TrialRecord, float]:
        if key not in kept:
            measured.append(key)
            return stored[key]
        return kept[key]

    again, rounds_again = drive(plan, resumed)
    assert again.outcomes() == whole.outcomes()
    assert rounds_again == rounds
    assert again.spent_s == whole.spent_s
    assert [*kept, *measured] == list(stored)


def test_the_time_left_is_that_of_the_rounds_that_are_needed() -> None:
    plan = plan_of(2, repeat={"min": 10, "max": 10})
    progress = Progress(plan, plans.expand(plan, CATALOG), SPECS)
    assert progress.time_left() is None
    numbers = chain.from_iterable(progress.cells())
    for _ in range(4):  # the warm-up and three rounds
        number = next(numbers)
        for pair in progress.begin_round(number):
            progress.add(record(TrialKey(number, *pair), 2.0), [])
        progress.end_round()
    left = progress.time_left()
    assert left is not None
    # Estimated when the third round began: 8 rounds of 2 trials of 2 s; one of them is over.
    assert (left.expected_s, left.exact) == (8 * 4.0 - 4.0, True)
