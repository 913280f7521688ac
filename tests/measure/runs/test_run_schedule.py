"""What a run does next, without a clock, a file or a target."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nephoscope import catalog
from nephoscope.core.model import TrialKey, TrialRecord, TrialStatus
from nephoscope.measure import plans
from nephoscope.measure.runs import schedule
from nephoscope.measure.runs.schedule.run_schedule import (
    Order,
    RoundBegins,
    RoundEnded,
    RunSchedule,
    Step,
    Trials,
)

CATALOG = catalog.load()
NO_ROWS = pa.table({name: [] for name in ("metric", "factors", "value", "count")})
IMPURE = {"asyncio", "os", "pathlib", "random", "secrets", "shutil", "socket", "subprocess", "time"}


def plan_of(**more: Any) -> plans.Plan:
    entry = {"benchmark": "null", "factors": {"value": [1.0, 2.0]}}
    repeat = {"min": 3, "max": 3}
    values = {"name": "p", "seed": 3, "warmup": 0, "repeat": repeat, "benchmarks": [entry], **more}
    return plans.Plan.model_validate(values)


def record(key: TrialKey) -> TrialRecord:
    status = TrialStatus.VALID
    return TrialRecord(key, "null", {}, {}, status, (), 0, 0.0, 1, {}, spent_s=1.0)


def schedule_of(plan: plans.Plan, stored: Iterable[TrialKey] = ()) -> RunSchedule:
    settings = plans.expand(plan, CATALOG)
    trials = [(record(key), NO_ROWS) for key in stored]
    return RunSchedule(plan, settings, CATALOG, 3, trials, cpus=2)


def carried_out(made: RunSchedule) -> tuple[list[Step], list[TrialKey]]:
    """The steps of a run in which every trial succeeds, and the keys that were measured."""
    steps: list[Step] = []
    keys: list[TrialKey] = []
    for step in made.steps():
        steps.append(step)
        for work in step.works if isinstance(step, Trials) else ():
            keys += work.keys
            for key in work.keys:
                made.progress.add(record(key), [("null_ns", "{}", 1.0, 1)])
        assert len(steps) < 1000
    return steps, keys


def names_of(keys: Sequence[TrialKey]) -> list[str]:
    return [key.name for key in keys]


def test_each_round_begins_is_measured_and_ends() -> None:
    steps, keys = carried_out(schedule_of(plan_of()))
    kinds = [type(step) for step in steps]
    assert kinds == [RoundBegins, Trials, RoundEnded] * 3
    assert [step.number for step in steps if isinstance(step, RoundBegins)] == [1, 2, 3]
    assert len(keys) == 6
    last = steps[-1]
    assert isinstance(last, RoundEnded)
    assert {outcome.n for outcome in last.outcomes} == {3}


@pytest.mark.parametrize("count", range(7))
def test_a_resumed_run_measures_the_rest_in_the_same_order(count: int) -> None:
    _, every = carried_out(schedule_of(plan_of()))
    _, rest = carried_out(schedule_of(plan_of(), every[:count]))
    assert names_of(rest) == names_of(every[count:])


def test_what_is_measured_later_than_its_round_says_so() -> None:
    _, every = carried_out(schedule_of(plan_of()))
    steps, rest = carried_out(schedule_of(plan_of(), every[1:]))
    assert names_of(rest) == names_of(every[:1])
    notes = [work.notes for step in steps if isinstance(step, Trials) for work in step.works]
    assert ["later rounds" in note for (note,) in notes] == [True]


def test_the_order_of_a_step_follows_from_the_plan() -> None:
    two = [{"name": "a"}, {"name": "b"}]
    simulated = {"targets": [{"name": "m", "kind": "sim"}], "observe": {"gap_meter": False}}
    for more, order in (
        ({}, Order.ONE_BY_ONE),
        ({"targets": two, "concurrent": True}, Order.ON_FREE_MACHINES),
        (simulated, Order.ON_FREE_CPUS),
    ):
        steps, _ = carried_out(schedule_of(plan_of(**more)))
        assert {step.order for step in steps if isinstance(step, Trials)} == {order}


def test_no_alternative_of_a_lost_target_goes_on() -> None:
    made = schedule_of(plan_of(targets=[{"name": "a"}, {"name": "b"}]))
    made.lose_target("b", "It is gone.")
    _, keys = carried_out(made)
    assert {key.target for key in keys} == {"a"}
    assert len(keys) == 6


def test_the_schedule_has_no_clock_and_no_file() -> None:
    assert schedule.__file__ is not None
    found = {
        f"{path.name}: {name}"
        for path in Path(schedule.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None), *(alias.name for alias in node.names)]
        if name and (name in IMPURE or name.startswith("nephoscope.measure.targets"))
    }
    assert not found
