"""Time and money before the run, from known parts; what is too long or too dear is refused."""

from __future__ import annotations

from typing import Any

import pytest

from nephoscope.core.errors import PlanError
from nephoscope.measure.lab.platform_table import TABLE
from nephoscope.measure.plans import estimate, expand, refuse_too_long
from nephoscope.measure.plans.estimate import (
    GUESSED,
    MEASURED,
    UNKNOWN_S,
    EarlierRuns,
    RunEstimate,
    earlier_runs_key,
    money_spent,
)
from nephoscope.measure.plans.files.load import from_values
from nephoscope.measure.plans.model import Plan
from nephoscope.measure.targets.kinds import KINDS

from .factory import CATALOG

TARGETS = [{"name": "a", "per_hour": 1.5}, {"name": "b", "per_hour": 0.5}]


def made(earlier_runs: EarlierRuns | None = None, **more: Any) -> tuple[Plan, RunEstimate]:
    values = {
        "name": "p",
        "warmup": 1,
        "repeat": {"min": 4, "max": 9},
        "benchmarks": [{"benchmark": "load.work", "params": {"duration_ns": "1s"}}],
        **more,
    }
    plan = from_values(values, CATALOG, lambda loc: f"{'.'.join(map(str, loc))}: ")
    return plan, estimate(plan, expand(plan, CATALOG), CATALOG, earlier_runs)


TRIAL_S = 1 + KINDS["local"].trial_overhead_s


def test_trials_and_time_are_rounds_times_alternatives_times_seconds() -> None:
    _, found = made()
    assert (found.trials_least, found.trials_most) == (5, 10)
    assert (found.rounds_least, found.rounds_most) == (5, 10)
    assert found.round_s == pytest.approx(TRIAL_S)
    assert found.least_s == pytest.approx(5 * TRIAL_S)
    assert found.most_s == pytest.approx(10 * TRIAL_S)
    assert found.settings[0].how == GUESSED
    assert found.money_least is None


def test_earlier_trials_with_the_same_parameters_are_believed_first() -> None:
    spec = CATALOG.benchmark("load.work")
    # A default that is written out is the same parameter as one that is not.
    key = earlier_runs_key(spec, {"duration_ns": 10**9, "strength": 1})
    _, found = made({key: [3.0, 5.0, 4.0]})
    assert (found.settings[0].seconds, found.settings[0].how) == (4.0, MEASURED)
    other = earlier_runs_key(spec, {"duration_ns": 2 * 10**9})
    _, guessed = made({other: [3.0]})
    assert guessed.settings[0].how == GUESSED


def test_parameters_that_say_nothing_of_time_are_a_guess() -> None:
    _, found = made(benchmarks=[{"benchmark": "disk.work"}])
    assert found.round_s == pytest.approx(UNKNOWN_S + KINDS["local"].trial_overhead_s)
    assert found.guessed == 1


def test_targets_together_take_the_time_of_one() -> None:
    entry = {"benchmark": "load.work", "params": {"duration_ns": "1s"}, "on": ["a", "b"]}
    _, apart = made(targets=TARGETS, benchmarks=[entry])
    _, together = made(targets=TARGETS, benchmarks=[{**entry, "together": True}])
    assert apart.trials_least == together.trials_least == 10
    assert apart.round_s == pytest.approx(2 * TRIAL_S)
    assert together.round_s == pytest.approx(TRIAL_S)


def test_only_distinct_machines_run_side_by_side() -> None:
    here = [{"name": "a"}, {"name": "b"}]
    apart = [{"name": n, "kind": "ssh", "address": f"{n}.example"} for n in "ab"]
    entry = {"benchmark": "load.work", "params": {"duration_ns": "1s"}}
    _, one = made(targets=here, benchmarks=[entry], concurrent=True)
    _, two = made(targets=apart, benchmarks=[entry], concurrent=True)
    assert one.round_s == pytest.approx(2 * TRIAL_S)
    assert two.round_s == pytest.approx(1 + KINDS["ssh"].trial_overhead_s)


def test_a_budget_bounds_time_and_money() -> None:
    plan, found = made(targets=TARGETS, budget="4s")
    assert found.least_s == found.most_s == 4.0
    assert money_spent(plan, 3600) == 2.0
    assert found.money_least == pytest.approx(2.0 * 4 / 3600)


def test_boots_of_a_nested_design_are_counted() -> None:
    lab = {"name": "n", "hosts": {"h": {"platform": "qemu"}}}
    nest = {"instance": 2, "boot": 3, "rounds": 2}
    _, found = made(
        lab=lab,
        targets=[{"name": "h", "kind": "lab"}],
        benchmarks=[{"benchmark": "load.work", "params": {"duration_ns": "1s"}}],
        repeat={},
        design={"nest": nest},
    )
    # 12 rounds in six boots, each with a warm-up round.
    assert found.trials_least == found.trials_most == 18
    assert found.least_s == pytest.approx(
        18 * (1 + KINDS["lab"].trial_overhead_s) + 6 * TABLE["qemu"].boot_s
    )


def test_a_nested_design_makes_each_platform_once_a_boot() -> None:
    _, found = made(
        lab={"name": "n", "hosts": {"h": {"platform": "container"}}},
        targets=[{"name": "h", "kind": "lab"}],
        factors={"platform": {"path": "lab.hosts.h.platform", "levels": ["container", "qemu"]}},
        benchmarks=[{"benchmark": "load.work", "params": {"duration_ns": "1s"}}],
        repeat={},
        warmup=0,
        design={"nest": {"boot": 3, "rounds": 2}},
    )
    # The lab, then each platform in each boot, however many rounds that has.
    boots_s = TABLE["container"].boot_s + 3 * (TABLE["container"].boot_s + TABLE["qemu"].boot_s)
    assert found.trials_least == 12
    assert found.least_s == pytest.approx(12 * (1 + KINDS["lab"].trial_overhead_s) + boots_s)


def test_loads_and_hooks_take_their_time() -> None:
    _, found = made(
        backgrounds=[{"name": "x", "benchmark": "load.work", "on": "local", "settle_s": 3}],
        before=[{"benchmark": "disk.work"}],
    )
    assert found.round_s == pytest.approx(
        TRIAL_S
        + 3
        + 2 * KINDS["local"].trial_overhead_s
        + UNKNOWN_S
        + KINDS["local"].trial_overhead_s
    )


def refused(**more: Any) -> str:
    plan, found = made(**more)
    with pytest.raises(PlanError) as caught:
        refuse_too_long(plan, found, lambda loc: f"{'.'.join(map(str, loc))}: ")
    assert caught.value.exit_code == 2
    return str(caught.value)


LONG = {
    "benchmark": "load.work",
    "params": {"duration_ns": "100s"},
    "factors": {"strength": [1, 2]},
}


def test_a_day_has_to_be_meant_and_a_week_is_refused() -> None:
    day = refused(benchmarks=[LONG], repeat={"min": 999, "max": 999})
    assert "more than a day: 1000 rounds x 2 alternatives x 100 s are 2.3 days" in day
    assert "--budget" in day
    plan, found = made(benchmarks=[LONG], repeat={"min": 999, "max": 999}, budget="3d")
    refuse_too_long(plan, found)
    week = refused(benchmarks=[LONG], repeat={"min": 9999, "max": 9999}, budget="3d")
    assert "more than a week: 10000 rounds x 2 alternatives x 100 s are 23.2 days" in week


def test_a_limit_of_money_is_held_before_the_run() -> None:
    more = {"targets": TARGETS, "benchmarks": [{**LONG, "on": "a"}]}
    # 5 rounds of 200 s at 2 an hour.
    sentence = refused(**more, money={"limit": 0.5, "currency": "EUR"})
    assert sentence.startswith("money.limit: the least schedule costs 0.56 EUR")
    plan, found = made(**more, money={"limit": 0.6})
    refuse_too_long(plan, found)
