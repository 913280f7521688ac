"""Profiles, rules as texts, and the plan: who runs where, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from nephoscope import catalog
from nephoscope.core.errors import UsageError
from nephoscope.features.elastic.plan import (
    ElasticRequest,
    LabService,
    plan_capacity,
    plan_elastic,
    rule_names,
)
from nephoscope.features.elastic.profiles import KINDS, profile_of, profile_of_file
from nephoscope.features.elastic.rule_texts import RuleLimits, rule_of
from nephoscope.features.load.objective import LatencyObjective
from nephoscope.measure import plans
from nephoscope.measure.targets.kinds import parse

TEXT = "p99 < 200ms"
REQUEST = ElasticRequest(
    profile_of("step", 20, 100, 60), LatencyObjective.of(TEXT), TEXT, 45.0, rounds=2
)


def test_profiles_stay_between_their_rates_and_reach_them() -> None:
    for kind in KINDS:
        profile = profile_of(kind, 10, 110, 600)
        assert profile.duration_s == pytest.approx(600)
        assert min(profile.rates_per_s) in range(10, 12), kind
        assert max(profile.rates_per_s) in range(107, 111), kind
    day = profile_of("day", 10, 110, 2400)
    peak_h = 24 * day.rates_per_s.index(max(day.rates_per_s)) / len(day.rates_per_s)
    assert 15 <= peak_h <= 17
    step = profile_of("step", 20, 100, 30).rates_per_s
    assert step == (20,) * 20 + (100,) * 20 + (20,) * 20


def test_a_trace_keeps_its_times_or_is_stretched(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("time_s,rate_per_s\n0,10\n10,50\n20,5\n")
    assert profile_of_file(file, None).rates_per_s == (10, 50, 5)
    assert profile_of_file(file, None).duration_s == 30
    assert profile_of_file(file, 60).part_s == 20
    # A peak of one second in a day is in the mean of its part: 86,400 s in 4,000 parts.
    file.write_text("time_s,rate_per_s\n0,10\n43200,2170\n43201,10\n86398,10\n86399,10\n")
    day = profile_of_file(file, None)
    assert (len(day.rates_per_s), max(day.rates_per_s)) == (4000, 110)
    for text, sentence in (
        ("time_s,rate_per_s\n0,10\n", "needs two"),
        ("time_s,rate_per_s\n0,10\n0,5\n", "do not ascend"),
        ("time_s,rate_per_s\n0,10\n5,nan\n", "is not a number"),
        ("time,rate\n0,10\n5,1\n", "time"),
        ("time_s,rate_per_s\n0,10\n1,5\n", "lasts 2.00 s; a trial takes 5 s to 24 h"),
        ("time_s,rate_per_s\n0,10\n1e6,5\n", "to 24 h"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=sentence):
            profile_of_file(file, None)


def test_rules_are_read_from_texts() -> None:
    limits = RuleLimits(maximum=3, horizon_s=7)
    assert rule_of("cpu=0.6", limits)["target"] == 0.6
    assert rule_of("response-time=50ms", limits)["target"] == 0.05
    step = rule_of("queue=1..4", limits)
    assert (step["policy"], step["down_at"], step["up_at"]) == ("step", 1, 4)
    assert rule_of("predictive=40", limits)["horizon_s"] == 7
    assert rule_of("schedule=0s:1;1min:3", limits)["schedule"] == ((0.0, 1), (60.0, 3))
    control = rule_of("control:target=50ms,gain=0.2,stabilisation_in=30s", limits)
    assert (control["metric"], control["gain"], control["stabilisation_in_s"]) == (
        "response-time", 0.2, 30.0,
    )  # fmt: skip
    assert rule_of("step:metric=cpu,steps=0.3:-1;0.9:2", limits)["steps"] == ((0.3, -1), (0.9, 2))
    own = rule_of("rate=40,cooldown_in=20s,maximum=2", RuleLimits(maximum=3, cooldown_in_s=5))
    assert (own["cooldown_in_s"], own["maximum"]) == (20.0, 2)
    assert rule_of("fixed", limits) == {
        "metric": "rate", "policy": "fixed", "minimum": 1, "maximum": 3,
    }  # fmt: skip
    for text in (
        *("cpu", "cpu=", "cpu=60", "disk=3", "queue=4..1", "queue=-1", "rate=nan"),
        *("schedule=1", "schedule=5s:1;2s:2", "schedule=0s:x"),
        *("rate=30|40", "rate=40,maximum=9", "control", "cpu=0.5,gain=3"),
    ):
        with pytest.raises(UsageError):
            rule_of(text, limits)


def test_every_rule_is_a_level_with_all_machines() -> None:
    plan = plan_elastic(replace(REQUEST, rule_texts=("rate=40", "queue=1..4")))
    settings = plans.expand(plan, catalog.load())
    levels = [[load.name for load in setting.backgrounds] for setting in settings]
    machines = [f"m{n}" for n in range(1, 6)]
    assert sorted(map(sorted, levels)) == sorted(
        sorted([name, *machines]) for name in ("rate-40", "queue-1-4")
    )
    assert {setting.params["arrivals"] for setting in settings} == {"constant"}
    scaler = next(load for load in plan.backgrounds if load.name == "rate-40")
    assert json.loads(scaler.params["rule"])["maximum"] == 5
    assert scaler.params["capacity_per_s"] == 45
    assert rule_names(["rate=40", "rate=40.", "Rate=40"]) == ["rate-40", "rate-40-n2", "rate-40-n3"]


def test_capacity_is_measured_on_one_machine() -> None:
    plan = plan_capacity(REQUEST, [10.0, 20.0], 2, 3.0)
    rates = {setting.params["rate_per_s"] for setting in plans.expand(plan, catalog.load())}
    assert rates == {10, 20}
    (scaler,) = (load for load in plan.backgrounds if load.name.startswith("schedule"))
    assert json.loads(scaler.params["rule"])["schedule"] == [[0.0, 1]]


def test_an_observed_service_needs_no_lab() -> None:
    plan = plan_elastic(
        replace(REQUEST, url="http://127.0.0.1/", observe="echo 1", target=parse("local"))
    )
    assert plan.lab is None
    (background,) = plan.backgrounds
    assert background.params["command"] == "echo 1"


def test_requests_that_make_no_sense_are_refused() -> None:
    for request, sentence in (
        (replace(REQUEST, rule_texts=("cpu=0.6",)), "CPU time"),
        (replace(REQUEST, profile=profile_of("day", 1, 9, 86_400)), "120,960 values and decis"),
        (replace(REQUEST, limits=RuleLimits(minimum=4, maximum=3)), "is above maximum 3"),
        (
            replace(REQUEST, objective=LatencyObjective.of("p95 < 1s"), objective_text="p95 < 1s"),
            "interval by interval",
        ),
    ):
        with pytest.raises(UsageError, match=sentence):
            plan_elastic(request)
    plan_elastic(replace(REQUEST, rule_texts=("cpu=0.6",), service=LabService(4_000_000, cpus=0.2)))
    for low, high in ((0, 10), (10, 5), (1, 1e7)):
        with pytest.raises(UsageError, match="make no profile"):
            profile_of("step", low, high, 60)
