"""What a trial set goes back to what the topology says, or to the default; what a cap allows."""

from __future__ import annotations

from typing import Any, cast

import pytest

from nephoscope.measure.plans import Plan
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.runs.lab_environment import LabEnvironment

PLAN = Plan.model_validate(
    {
        "name": "p",
        "lab": {"name": "l", "hosts": {"v": {"cpu": {"cap": "50%"}}, "n": {}}},
        "targets": [{"name": "v", "kind": "lab"}, {"name": "x", "kind": "lab", "host": "n"}],
        "benchmarks": [{"benchmark": "null"}],
    }
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("hosts.v.cpu.cap", 0.5),
        ("hosts.n.cpu.cap", None),
        ("hosts.n.cpu.weight", 100),
        ("hosts.n.cpu.cap_period", 0.1),
        ("hosts.n.platform", "bare"),
    ],
)
def test_the_own_value_of_a_condition(path: str, value: object) -> None:
    environment = LabEnvironment(PLAN, cast(Any, None), lambda sentence: None)
    assert environment._own(path) == value


def test_a_host_that_has_a_cap_now_may_be_throttled() -> None:
    environment = LabEnvironment(PLAN, cast(Any, None), lambda sentence: None)
    capped, whole = PLAN.targets
    assert environment.accepts(capped) == ("throttled",)
    assert environment.accepts(whole) == ()
    environment._conditions = {"hosts.v.cpu.cap": None, "hosts.n.cpu.cap": 0.8}
    assert environment.accepts(capped) == ()
    assert environment.accepts(whole) == ("throttled",)
    assert Environment().accepts(capped) == ()
