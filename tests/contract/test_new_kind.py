"""A new kind of target is one file and one line of a table; the rest follows from what it states.

The suite of test_targets.py runs over it as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nephoscope import catalog
from nephoscope.core.errors import PlanError, UsageError
from nephoscope.measure import plans, runs
from nephoscope.measure.plans.files.load import from_text
from nephoscope.measure.targets.kinds import KINDS, parse
from nephoscope.measure.targets.kinds.record import why_unreachable
from nephoscope.store import Store

from .toy_kind import ToyRecord

pytestmark = pytest.mark.usefixtures("toy_kind")

PLAN = """
name: toys
seed: 1
warmup: 0
repeat: {min: 2, max: 2}
concurrent: true
targets:
  - {name: a, kind: toy, number: 1}
  - {name: b, kind: toy, number: 2}
  - {name: c}
benchmarks:
  - {benchmark: "null"}
"""


def plan_of(text: str) -> plans.Plan:
    return from_text(text, "plan.yaml", {}, catalog.load())


def test_a_plan_reads_it_and_writes_it_down() -> None:
    plan = plan_of(PLAN)
    assert isinstance(plan.targets[0], ToyRecord)
    assert plans.Plan.model_validate(plans.plan_values(plan)) == plan
    assert not plan.simulated
    assert plans.estimate(plan, plans.expand(plan, catalog.load()), catalog.load()).least_s > 0
    assert [effect.what for effect in plans.side_effects(plan, [], catalog.load())] == [
        "1",
        "2",
        "this one",
    ]


def test_mistakes_in_its_keys_have_a_place() -> None:
    with pytest.raises(PlanError, match=r"plan.yaml:8:26: unknown key 'nubmer'.*did you.*'number'"):
        plan_of(PLAN.replace("number: 1", "nubmer: 1"))
    with pytest.raises(PlanError, match=r"plan.yaml:9:37: .*`lab` is for targets of kind lab"):
        plan_of(PLAN.replace("number: 2", "number: 2, lab: x"))


def test_editors_complete_it() -> None:
    assert "number" in plans.plan_schema()["$defs"]["ToyTarget"]["properties"]


def test_it_is_written_in_one_word() -> None:
    assert parse("toy:7") == ToyRecord(name="toy7", number=7)
    with pytest.raises(UsageError) as caught:
        parse("toy:x")
    assert "toy:NUMBER" in caught.value.hint


def test_who_reaches_it_follows_from_its_networks() -> None:
    toy, here = parse("toy:1"), parse("local")
    assert why_unreachable(toy, parse("ssh:web")) == why_unreachable(here, toy) == ""
    assert "loopback" in why_unreachable(toy, here)
    assert "lab 'office'" in why_unreachable(toy, parse("lab:office/a"))
    assert "serves nobody" in why_unreachable(toy, parse("sim"))


def test_the_runner_measures_it_beside_other_machines(tmp_path: Path, probe: Path) -> None:
    run = runs.execute(plan_of(PLAN), Store(tmp_path))
    assert sorted((record.key.target, record.status == "valid") for record in run.records()) == [
        (name, True) for name in "aabbcc"
    ]
    assert list(KINDS)[-1] == "toy"
