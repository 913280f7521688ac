"""Factors of every load that runs, and backgrounds that are set instead of run."""

from __future__ import annotations

from typing import Any

import pytest

from nephoscope.core.errors import PlanError
from nephoscope.core.model import Setting
from nephoscope.measure import plans
from nephoscope.measure.plans.files.load import from_values

from .factory import CATALOG

PLAN: dict[str, Any] = {
    "name": "p",
    "lab": {"name": "l", "hosts": {"v": {}, "n": {}, "m": {}}},
    "targets": [
        {"name": "v", "kind": "lab", "roles": ["victim"]},
        {"name": "n", "kind": "lab", "roles": ["aggressor"]},
        {"name": "m", "kind": "lab", "roles": ["aggressor"]},
    ],
    "benchmarks": [{"benchmark": "cpu.work"}],
    "backgrounds": [
        {"name": "one", "benchmark": "load.work"},
        {"name": "two", "benchmark": "load.work", "params": {"strength": 7}},
        {"name": "quota", "conditions": {"lab.hosts.v.cpu.cap": "50%"}},
    ],
    "factors": {
        "resource": {"path": "backgrounds", "levels": ["none", "one", "two", "quota"]},
        "strength": {"path": "backgrounds.*.params.strength", "levels": [10, 20]},
        "neighbours": {"path": "backgrounds.*.count", "levels": [1, 2]},
    },
    "design": {"baseline": {"resource": "none"}},
}


def settings_of(**changes: Any) -> list[Setting]:
    plan = from_values({**PLAN, **changes}, CATALOG, lambda _: "")
    return plans.expand(plan, CATALOG)


def test_every_load_that_runs_is_told_how_and_what_it_says_itself_stays() -> None:
    found = settings_of()
    loads = [(s.factors, load) for s in found for load in s.backgrounds]
    assert len(loads) == 2 * 2 * 2
    for factors, load in loads:
        wanted = factors["strength"] if load.name == "one" else 7
        assert load.params["strength"] == wanted
        assert load.targets == ("n", "m")[: factors["neighbours"]]


def test_without_a_load_one_setting_stands_for_all_levels() -> None:
    still = [setting for setting in settings_of() if not setting.backgrounds]
    assert [(s.factors["resource"], s.factors["strength"], s.conditions) for s in still] == [
        ("none", 0, {}),
        ("quota", 0, {"hosts.v.cpu.cap": 0.5}),
    ]


def test_all_are_held_against_the_one_quiet_setting() -> None:
    found = settings_of()
    quiet = next(s.index for s in found if s.factors["resource"] == "none")
    assert {s.baseline["v"] for s in found if s.index != quiet} == {(quiet, "v")}
    assert found[quiet].baseline == {}


def test_each_victim_has_a_quiet_setting_of_its_own() -> None:
    found = settings_of(benchmarks=[{"benchmark": "cpu.work", "factors": {"mode": ["fast", "no"]}}])
    for setting in found:
        if setting.factors["resource"] != "none":
            index, _ = setting.baseline["v"]
            assert found[index].factors["mode"] == setting.factors["mode"]


def factors(path: str, *levels: Any) -> dict[str, Any]:
    return {**PLAN["factors"], "neighbours": {"path": path, "levels": list(levels)}}


def background(**values: Any) -> list[Any]:
    return [*PLAN["backgrounds"][:2], {"name": "quota", **values}]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"factors": factors("backgrounds.*.count", 3)}, "every background has 2"),
        ({"factors": factors("backgrounds.*.count", 0)}, "cannot run on 0 targets"),
        ({"factors": factors("backgrounds.*.count", True)}, "cannot run on True targets"),
        ({"factors": factors("backgrounds.*.params.colour", 1)}, "no background has a parameter"),
        ({"factors": factors("backgrounds.*.active", True)}, "a factor cannot set"),
        ({"factors": factors("backgrounds.quota.params.cap", 1)}, "a factor cannot set"),
        ({"backgrounds": background()}, "'quota' does nothing"),
        (
            {
                "backgrounds": background(
                    benchmark="load.work", conditions={"lab.hosts.v.cpu.cap": 1}
                )
            },
            "has a benchmark and conditions",
        ),
        ({"backgrounds": background(conditions={"speed": 1})}, "no condition of the plan's lab"),
        (
            {"backgrounds": background(conditions={"lab.hosts.v.cpu.speed": 1})},
            "lab|speed",
        ),
        (
            {
                "backgrounds": background(conditions={"lab.hosts.v.cpu.cap": "50%"}),
                "factors": factors("lab.hosts.v.cpu.cap", "20%", "30%"),
            },
            "a factor sets",
        ),
    ],
)
def test_what_cannot_be_is_told(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        settings_of(**changes)
    assert caught.value.hint
