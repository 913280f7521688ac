"""A design of experiments as settings: crossing, exclusions, arms, baselines, loads, conditions."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephoscope.core.errors import PlanError
from nephoscope.core.model import Setting
from nephoscope.measure.plans import crossings, expand
from nephoscope.measure.plans.files.load import from_text, from_values
from nephoscope.measure.plans.model import Plan

from .factory import CATALOG

LAB = {
    "name": "two",
    "hosts": {"a": {}, "b": {"cpu": {"cap": "50%"}}},
    "links": {"wan": {"between": ["a", "b"], "delay": "0ms", "jitter": "0ms"}},
}


def plan_of(**more: Any) -> Plan:
    values = {"name": "p", "benchmarks": [{"benchmark": "cpu.work"}], **more}
    return from_values(values, CATALOG, lambda loc: f"{'.'.join(map(str, loc))}: ")


def settings_of(**more: Any) -> list[Setting]:
    return expand(plan_of(**more), CATALOG)


def refused(**more: Any) -> str:
    with pytest.raises(PlanError) as caught:
        plan_of(**more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


levels = st.lists(st.integers(1, 60), min_size=1, max_size=4, unique=True)


@settings(deadline=None, max_examples=50)
@given(levels, levels, levels, st.booleans(), st.integers(0, 2**32))
def test_a_crossing_is_full_but_for_what_is_excluded(
    threads: list[int], depths: list[int], sizes: list[int], a_a: bool, seed: int
) -> None:
    rng = random.Random(seed)
    exclude: list[dict[str, Any]] = []
    if len(threads) > 1 and len(sizes) > 1:
        exclude = [{"threads": rng.choice(threads), "size": rng.choice(sizes)}]
    found = settings_of(
        benchmarks=[
            {"benchmark": "cpu.work", "factors": {"threads": threads}},
            {"benchmark": "disk.work", "factors": {"depth": depths}},
        ],
        factors={"size": {"path": "benchmarks.0.params.size_bytes", "levels": sizes}},
        design={"exclude": exclude, "a_a": a_a},
    )
    arms = ["a", "b"] if a_a else [None]
    wanted = Counter(
        ("cpu.work", t, s, arm)
        for t, s, arm in itertools.product(threads, sizes, arms)
        if {"threads": t, "size": s} not in exclude
    )
    wanted += Counter(("disk.work", d, None, arm) for d, arm in itertools.product(depths, arms))
    got = Counter(
        (
            one.benchmark,
            one.factors.get("threads", one.factors.get("depth")),
            one.factors.get("size"),
            one.factors.get("arm"),
        )
        for one in found
    )
    assert got == wanted
    assert [one.index for one in found] == list(range(len(found)))
    for one in found:
        if one.benchmark == "cpu.work":
            assert one.params == {
                "threads": one.factors["threads"],
                "size_bytes": one.factors["size"],
            }
    keys = [json.dumps([one.benchmark, dict(one.factors)], sort_keys=True) for one in found]
    assert len(set(keys)) == len(keys)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 6), st.sampled_from([2, 4, 8]), st.integers(0, 1000))
def test_of_a_fraction_every_level_is_equally_often(count: int, divisor: int, seed: int) -> None:
    names = ["threads", "size_bytes", "wait_ns", "pin", "share_ratio", "mode"][:count]
    pairs = {
        "threads": [1, 2], "size_bytes": [1, 2], "wait_ns": [0, 5], "pin": [True, False],
        "share_ratio": [0.0, 1.0], "mode": ["fast", "no"],
    }  # fmt: skip
    entry = {"benchmark": "cpu.work", "factors": {name: pairs[name] for name in names}}
    design = {"fraction": f"1/{divisor}"}
    # The fewest settings in which so many main effects can be told apart: 2, 3 -> 4, 4..7 -> 8.
    if 2**count // divisor < {2: 4, 3: 4}.get(count, 8):
        assert "would set one factor" in refused(benchmarks=[entry], design=design, seed=seed)
        return
    found = settings_of(benchmarks=[entry], design=design, seed=seed)
    assert len(found) * divisor == 2**count
    for name in names:
        counts = Counter(str(one.factors[name]) for one in found)
        assert len(counts) == 2
        assert len(set(counts.values())) == 1


def test_a_fraction_holds_the_baseline() -> None:
    design = {"fraction": "1/2", "baseline": {"threads": 2, "pin": False, "mode": "no"}}
    entry = {
        "benchmark": "cpu.work",
        "factors": {"threads": [1, 2], "pin": [True, False], "mode": ["fast", "no"]},
    }
    found = settings_of(benchmarks=[entry], design=design)
    assert {"threads": 2, "pin": False, "mode": "no"} in [one.factors for one in found]
    base = next(
        one.index for one in found if one.factors["mode"] == "no" and not one.factors["pin"]
    )
    others = [one for one in found if one.index != base]
    assert [one.baseline for one in others] == [{"local": (base, "local")}] * 3


def test_a_fraction_may_have_lists_for_levels() -> None:
    factors = {"lengths": [[1], [1, 2]], "ops": [["read"], ["write"]], "threads": [1, 2]}
    entry = {"benchmark": "cpu.work", "factors": factors}
    halves = settings_of(benchmarks=[entry], design={"fraction": "1/2"})
    whole = settings_of(benchmarks=[entry])
    assert len(halves) == 4
    assert [one.params for one in whole if one.params in [half.params for half in halves]] == [
        one.params for one in halves
    ]


def test_conditions_reach_the_setting_in_the_units_of_the_topology() -> None:
    found = settings_of(
        lab=LAB,
        targets=[{"name": "a", "kind": "lab"}],
        factors={
            "delay": {"path": "lab.links.wan.delay", "levels": ["0ms", "50ms"]},
            "cap": {"path": "lab.hosts.b.cpu.cap", "levels": ["50%", 1.5]},
        },
    )
    assert [one.factors for one in found] == [
        {"delay": "0ms", "cap": "50%"},
        {"delay": "0ms", "cap": 1.5},
        {"delay": "50ms", "cap": "50%"},
        {"delay": "50ms", "cap": 1.5},
    ]
    assert found[2].conditions == {"links.wan.delay": 0.05, "hosts.b.cpu.cap": 0.5}


def test_a_level_may_need_that_of_another_factor() -> None:
    more = {
        "lab": LAB,
        "targets": [{"name": "a", "kind": "lab"}],
        "factors": {
            "delay": {"path": "lab.links.wan.delay", "levels": ["0ms", "50ms"]},
            "jitter": {"path": "lab.links.wan.jitter", "levels": ["0ms", "5ms"]},
        },
    }
    sentence = refused(**more)
    assert "delay=0ms, jitter=5ms cannot be built" in sentence
    assert "design.exclude" in sentence
    found = settings_of(**more, design={"exclude": [{"delay": "0ms", "jitter": "5ms"}]})
    assert len(found) == 3


def test_platforms_are_kept_in_blocks() -> None:
    found = settings_of(
        lab=LAB,
        targets=[{"name": "a", "kind": "lab"}],
        factors={
            "platform": {"path": "lab.hosts.a.platform", "levels": ["bare", "container"]},
            "cap": {"path": "lab.hosts.b.cpu.cap", "levels": ["50%", "100%"]},
        },
    )
    assert [one.block for one in found] == ["platform=bare"] * 2 + ["platform=container"] * 2


TWO = [{"name": "v", "roles": ["victim"]}, {"name": "g", "roles": ["aggressor"]}]
LOADS = [
    {"name": "cpu", "benchmark": "load.work", "params": {"strength": 5}},
    {"name": "other", "benchmark": "load.work", "on": "v"},
]


def test_loads_run_on_the_aggressor_until_they_are_stopped() -> None:
    (one,) = settings_of(targets=TWO, backgrounds=LOADS)
    assert one.targets == ("v",)
    assert [(load.name, load.targets) for load in one.backgrounds] == [
        ("cpu", ("g",)),
        ("other", ("v",)),
    ]
    assert one.backgrounds[0].params == {"strength": 5, "duration_ns": 0}


def test_which_loads_run_may_be_a_factor() -> None:
    factor = {"path": "backgrounds", "levels": ["none", "cpu", ["other", "cpu"]]}
    found = settings_of(
        targets=TWO,
        backgrounds=LOADS,
        factors={"noise": factor},
        design={"baseline": {"noise": "none"}},
    )
    assert [one.factors["noise"] for one in found] == ["none", "cpu", "cpu+other"]
    assert [[load.name for load in one.backgrounds] for one in found] == [
        [],
        ["cpu"],
        ["cpu", "other"],
    ]
    assert [one.baseline for one in found] == [{}, {"v": (0, "v")}, {"v": (0, "v")}]


def test_strengths_of_a_load_that_does_not_run_are_one_setting() -> None:
    more: dict[str, Any] = {
        "targets": TWO,
        "backgrounds": [LOADS[1]],
        "factors": {
            "noise": {"path": "backgrounds.other.active", "levels": [False, True]},
            "strength": {"path": "backgrounds.other.params.strength", "levels": [10, 50]},
        },
        "design": {"baseline": {"noise": False}},
    }
    assert "belong to a background that does not run" in refused(**more)
    more["design"]["exclude"] = [{"noise": False, "strength": 50}]
    found = settings_of(**more)
    # The one quiet setting is the baseline of every strength.
    assert [one.baseline for one in found] == [{}, {"v": (0, "v")}, {"v": (0, "v")}]
    assert [load.params["strength"] for one in found for load in one.backgrounds] == [10, 50]


def test_entries_on_other_targets_may_say_the_same() -> None:
    entries = [{"benchmark": "cpu.work", "on": "v"}, {"benchmark": "cpu.work", "on": ["aggressor"]}]
    found = settings_of(targets=TWO, benchmarks=entries)
    assert [one.targets for one in found] == [("v",), ("g",)]
    assert [one.factors for one in found] == [{}, {}]
    assert "repeats a setting" in refused(targets=TWO, benchmarks=[entries[0], entries[0]])


def test_peers_and_togetherness_in_which_settings_differ_are_factors() -> None:
    targets = [{"name": name} for name in ("x", "y", "z")]
    found = settings_of(
        targets=targets,
        benchmarks=[
            {"benchmark": "net.work", "on": ["x", "y"], "peer": "z"},
            {"benchmark": "net.work", "on": ["x", "y"], "peer": "z", "together": True},
            {"benchmark": "net.work", "on": "x", "peer": "y"},
        ],
    )
    assert [one.factors for one in found] == [
        {"peer": "z", "together": "alone"},
        {"peer": "z", "together": "x+y"},
        {"peer": "y", "together": "alone"},
    ]


def test_every_arm_is_held_against_the_same_arm_of_the_baseline() -> None:
    found = settings_of(
        benchmarks=[{"benchmark": "cpu.work", "factors": {"size_bytes": ["1KiB", "4KiB"]}}],
        design={"a_a": True, "baseline": {"size_bytes": "4KiB"}},
    )
    told = [(one.factors["size_bytes"], one.arm, one.baseline) for one in found]
    assert told == [
        (1024, "a", {"local": (2, "local")}),
        (1024, "b", {"local": (3, "local")}),
        (4096, "a", {}),
        (4096, "b", {}),
    ]


def test_a_parameter_in_which_entries_differ_may_be_the_baseline() -> None:
    entries = [{"benchmark": "cpu.work", "params": {"threads": n}} for n in (1, 2)]
    found = settings_of(benchmarks=entries, design={"baseline": {"threads": 1}})
    assert [one.baseline for one in found] == [{}, {"local": (0, "local")}]


def test_hooks_are_of_the_trial_or_of_named_targets() -> None:
    (one,) = settings_of(
        targets=TWO,
        before=[{"benchmark": "disk.work", "params": {"depth": 3}}],
        after=[{"benchmark": "disk.work", "on": ["v", "g"], "timeout": "5s"}],
    )
    assert [(hook.target, hook.params) for hook in one.before] == [("", {"depth": 3})]
    assert [(hook.target, hook.timeout_s) for hook in one.after] == [("v", 5.0), ("g", 5.0)]


def test_a_nested_design_says_how_many_rounds_there_are() -> None:
    nest = {"instance": 2, "boot": 3, "rounds": 4}
    plan = plan_of(lab=LAB, targets=[{"name": "a", "kind": "lab"}], design={"nest": nest})
    assert (plan.repeat_of(0).min, plan.repeat_of(0).max) == (24, 24)


def test_crossings_tell_kind_and_exclusions() -> None:
    plan = plan_of(
        benchmarks=[
            {"benchmark": "cpu.work", "factors": {"threads": [1, 2], "pin": [True, False]}}
        ],
        design={"exclude": [{"threads": 1, "pin": False}]},
    )
    (one,) = crossings(plan, CATALOG)
    assert (one.factors, one.fraction.kind, one.excluded) == (("threads", "pin"), "full", 1)


FACTOR = {"path": "benchmarks.0.params.threads", "levels": [1, 2]}
ROLES = [{"name": "s", "roles": ["server"]}]
LOCAL_LAB = [{"name": "a", "kind": "lab"}]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"factors": {"f": {**FACTOR, "path": "targets.a.kind"}}},
            "factors.f.path: a factor cannot set 'targets.a.kind'",
        ),
        (
            {"factors": {"f": {**FACTOR, "path": "weather"}}},
            "factors.f.path: a factor cannot set 'weather'",
        ),
        ({"factors": {"f": {**FACTOR, "path": "benchmarks.3.params.threads"}}}, "no position"),
        (
            {"factors": {"f": {**FACTOR, "path": "benchmarks.0.params.thread"}}},
            "did you mean 'threads'?",
        ),
        ({"factors": {"f": {**FACTOR, "levels": [1, 65]}}}, "factors.f.levels.1: "),
        ({"factors": {"f": {**FACTOR, "levels": [1, "1"]}}}, "same level twice"),
        ({"factors": {"target": FACTOR}}, "cannot be named 'target'"),
        ({"factors": {"f": FACTOR, "g": FACTOR}}, "'g' and 'f' set the same thing"),
        ({"factors": {"f": {**FACTOR, "path": "lab.links.wan.delay"}}}, "the plan has none"),
        ({"factors": {"f": {"path": "backgrounds", "levels": ["x"]}}}, "no background 'x'"),
        (
            {"factors": {"f": {"path": "backgrounds.x.active", "levels": [True]}}},
            "no background 'x'",
        ),
        (
            {
                "lab": LAB,
                "targets": LOCAL_LAB,
                "factors": {"f": {"path": "lab.links.lan.delay", "levels": [1]}},
            },
            "factors.f.path: ",
        ),
        (
            {
                "lab": LAB,
                "targets": LOCAL_LAB,
                "factors": {"f": {"path": "lab.links.wan.delay", "levels": ["x"]}},
            },
            "factors.f.levels.0: ",
        ),
        ({"targets": ROLES}, "benchmarks.0.benchmark: no target runs cpu.work"),
        (
            {"targets": TWO, "benchmarks": [{"benchmark": "cpu.work", "on": "clinet"}]},
            "benchmarks.0.on: no target is named 'clinet'",
        ),
        (
            {"benchmarks": [{"benchmark": "net.work"}]},
            "benchmarks.0.benchmark: net.work has two sides",
        ),
        (
            {"benchmarks": [{"benchmark": "cpu.work", "peer": "local"}]},
            "benchmarks.0.peer: cpu.work has one side",
        ),
        (
            {
                "targets": [{"name": "a"}, *({"name": n, "roles": ["server"]} for n in "bc")],
                "benchmarks": [{"benchmark": "net.work", "peer": "server"}],
            },
            "'server' is the role of 2 targets (b, c)",
        ),
        (
            {
                "lab": LAB,
                "targets": [*LOCAL_LAB, {"name": "here", "roles": ["server"]}],
                "benchmarks": [{"benchmark": "net.work", "peer": "here"}],
            },
            "cannot reach 'here'",
        ),
        (
            {"backgrounds": [{"name": "x", "benchmark": "cpu.work", "on": "local"}]},
            "backgrounds.0.benchmark: cpu.work ends by itself",
        ),
        ({"backgrounds": [{"name": "x", "benchmark": "load.work"}]}, "none has the role aggressor"),
        (
            {"backgrounds": [{"name": "none", "benchmark": "load.work", "on": "local"}]},
            "'none' is the word",
        ),
        (
            {
                "backgrounds": [
                    {
                        "name": "x",
                        "benchmark": "load.work",
                        "on": "local",
                        "params": {"duration_ns": "1s"},
                    }
                ]
            },
            "would end by itself",
        ),
        (
            {"before": [{"benchmark": "net.work"}]},
            "before.0.benchmark: net.work has two sides; a hook has one",
        ),
        ({"after": [{"benchmark": "disk.work", "params": {"depth": 0}}]}, "after.0.params.depth: "),
        ({"targets": LOCAL_LAB}, "targets.0.kind: 'a' is of kind lab, and the plan has no lab"),
        (
            {"lab": LAB, "targets": [{"name": "c", "kind": "lab"}]},
            "targets.0.name: the lab 'two' has no host 'c'",
        ),
        (
            {"lab": LAB, "targets": [{"name": "x", "host": "b"}]},
            "targets.0.host: `host` is for targets of kind lab",
        ),
        (
            {
                "targets": [{"name": "v", "roles": ["w"]}, {"name": "w"}],
                "benchmarks": [{"benchmark": "cpu.work", "on": "w"}],
            },
            "'w' is a target, and a role of v",
        ),
        ({"design": {"fraction": "1/3x"}}, "design.fraction: '1/3x' is not a fraction"),
        ({"design": {"fraction": "2/3"}}, "'2/3' is not a fraction"),
        ({"factors": {"f": FACTOR}, "design": {"fraction": "1/2"}}, "design.fraction: "),
        (
            {"factors": {"f": FACTOR}, "design": {"exclude": [{"g": 1}]}},
            "design.exclude.0.g: the plan has no factor 'g'",
        ),
        ({"factors": {"f": FACTOR}, "design": {"exclude": [{"f": 3}]}}, "'f' has no level 3"),
        (
            {"factors": {"f": FACTOR}, "design": {"exclude": [{"f": 1}, {"f": 2}]}},
            "every combination is excluded",
        ),
        ({"factors": {"f": FACTOR}, "design": {"exclude": [{}]}}, "this excludes everything"),
        (
            {"factors": {"f": FACTOR}, "design": {"exclude": [{"f": 1}], "fraction": "1/2"}},
            "unbalance",
        ),
        (
            {"factors": {"f": FACTOR}, "design": {"baseline": {"g": 1}}},
            "design.baseline.g: the plan has no factor",
        ),
        (
            {"factors": {"f": FACTOR}, "design": {"baseline": {"f": 9}}},
            "design.baseline.f: 'f' has no level 9",
        ),
        ({"design": {"baseline": {"target": "moon"}}}, "'target' has no level"),
        ({"design": {"baseline": {"target": "local"}}}, "no alternative has a baseline"),
        ({"design": {"nest": {"boot": 2}}}, "design.nest: only hosts of a lab"),
        ({"design": {"nest": {"rounds": 7}}, "repeat": {"min": 3}}, "repeat: `design.nest` sets"),
        ({"money": {"limit": 5}}, "money: no target says what an hour of it costs"),
        (
            {
                "money": {"limit": 5},
                "targets": [{"name": "a", "per_hour": 1}, {"name": "b"}, {"name": "c"}],
            },
            "money: no `per_hour` for b, c, so the money spent would not be known",
        ),
        ({"money": {"limit": 5, "currency": "dollars"}}, "'dollars' is not a currency"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_where_it_stands(more: dict[str, Any], words: str) -> None:
    assert words in refused(**more)


def test_misspelt_keys_of_a_design_are_told_with_the_known_ones() -> None:
    text = """\
name: p
benchmarks: [{benchmark: cpu.work}]
factors:
  f: {path: benchmarks.0.params.threads, level: [1, 2]}
"""
    with pytest.raises(PlanError) as caught:
        from_text(text, "plan.yaml", {}, CATALOG)
    assert str(caught.value).startswith(
        "plan.yaml:4:42: unknown key 'level' (did you mean 'levels'?). Known here: path, levels"
    )
