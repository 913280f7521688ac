"""The repetition that a stored plan asks for: read from plain values as its models read it."""

from __future__ import annotations

from typing import Any

import pytest

from nephoscope.core.errors import StoreError
from nephoscope.measure.plans.files.load import plan_of, plan_values
from nephoscope.results.planned_repetition import planned_repetition

USED = ("min", "max", "relative_half_width", "until")
ENTRY = {"benchmark": "null"}


def plan(**changes: Any) -> dict[str, Any]:
    checked = plan_of("x", {"version": 1, "name": "n", "benchmarks": [ENTRY], **changes})
    assert checked is not None
    return plan_values(checked)


def entry(**repeat: Any) -> dict[str, Any]:
    return {**ENTRY, "repeat": repeat}


PLANS = (
    plan(),
    plan(repeat={"min": 3, "max": 7, "until": "decided"}),
    plan(repeat={"min": 20, "max": 40}, benchmarks=[entry(max=5), entry(min=90), ENTRY]),
    plan(benchmarks=[entry(relative_half_width=0.1), entry(min=2, max=2)]),
    plan(design={"nest": {"instance": 2, "boot": 3, "rounds": 4}}, repeat={"until": "decided"}),
    plan(design={"nest": {}}),
)


@pytest.mark.parametrize("values", PLANS)
def test_plain_values_say_what_the_models_say(values: dict[str, Any]) -> None:
    model, planned = plan_of("x", values), planned_repetition("x", values)
    assert model is not None
    assert planned is not None
    assert {key: planned.of_entry(None)[key] for key in USED} == {
        key: getattr(model.repeat, key) for key in USED
    }
    for number in range(len(values["benchmarks"])):
        own, expected = planned.of_entry(number), model.repeat_of(number)
        assert {key: own[key] for key in USED} == {key: getattr(expected, key) for key in USED}
    nest = model.design.nest
    assert (planned.boots, planned.rounds_of_boot) == (
        (nest.boots, nest.rounds) if nest else (0, 0)
    )


def test_what_another_version_left_out_has_its_default() -> None:
    planned = planned_repetition("x", {"version": 1, "name": "n", "benchmarks": [ENTRY]})
    assert planned is not None
    assert planned.of_entry(0)["max"] == 100
    assert planned_repetition("x", {}) is None


@pytest.mark.parametrize(
    "repeat",
    [
        {"min": "many"},
        {"min": 5, "max": 3},
        {"min": 0},
        {"relative_half_width": 2},
        {"until": "x"},
        3,
    ],
)
def test_a_plan_that_cannot_be_is_refused(repeat: Any) -> None:
    complete = plan()
    values = {**complete["repeat"], **repeat} if isinstance(repeat, dict) else repeat
    with pytest.raises(StoreError, match="The plan of run x cannot be read"):
        planned_repetition("x", {**complete, "repeat": values})
