"""What a trial set goes back to what the topology says, or to the default."""

from __future__ import annotations

from typing import Any, cast

import pytest

from nephoscope.plans import Plan
from nephoscope.runs.environment import LabEnvironment

PLAN = Plan.model_validate(
    {
        "name": "p",
        "lab": {"name": "l", "hosts": {"v": {"cpu": {"cap": "50%"}}, "n": {}}},
        "targets": [{"name": "v", "kind": "lab"}],
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
