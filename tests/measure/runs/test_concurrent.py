"""Trials on distinct machines run side by side; on one machine never."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unmerged import unmerge

from nephoscope.core.errors import TargetError
from nephoscope.core.model import Setting, TrialStatus
from nephoscope.measure import plans, runs
from nephoscope.measure.plans.model import MOST_AT_ONCE
from nephoscope.measure.runs.concurrency import run_on_free_machines
from nephoscope.measure.runs.schedule.groups import Group
from nephoscope.store import Store, StoredRun

from .factory import Fakes, FakeTarget, good


def plan_of(**more: Any) -> plans.Plan:
    values = {
        "name": "p",
        "seed": 5,
        "warmup": 0,
        "concurrent": True,
        "repeat": {"min": 5, "max": 5},
        "targets": [
            {"name": "a", "kind": "ssh", "address": "a"},
            {"name": "b", "kind": "ssh", "address": "b"},
        ],
        "benchmarks": [{"benchmark": "null", "factors": {"value": [1.0, 2.0]}}],
        **more,
    }
    return plans.Plan.model_validate(values)


def most_at_once(log: list[tuple[str, str]]) -> int:
    """The largest number of trials between `go` and their end, from the order of the log."""
    now = most = 0
    for _, what in log:
        now += what.startswith("run")
        most = max(most, now)
        now -= what == "done"
    return most


class Watching(Fakes):
    """Says in the log when a trial's answer was given."""

    def __init__(self, **more: Any) -> None:
        super().__init__(self._answer, takes_s=0.02, **more)

    def _answer(self, name: str, *_: Any) -> Any:
        self.log.append((name, "done"))
        return good()


@pytest.mark.parametrize(
    ("machines", "concurrent", "wanted"),
    [
        ({"a": "1", "b": "2"}, True, 2),
        ({"a": "1", "b": "2"}, False, 1),
        ({"a": "1", "b": "1"}, True, 1),
    ],
)
def test_only_distinct_machines_run_at_once(
    tmp_path: Path, machines: dict[str, str], concurrent: bool, wanted: int
) -> None:
    fakes = Watching(machines=machines)
    run = runs.execute(plan_of(concurrent=concurrent), Store(tmp_path), targets=fakes.make)
    assert most_at_once(fakes.log) == wanted
    records = run.records()
    assert [record.position for record in records] == list(range(20))
    assert all(record.status is TrialStatus.VALID for record in records)
    # Side by side or not, a round ends before the next one begins.
    assert [record.key.round for record in records] == [n for n in range(1, 6) for _ in range(4)]


def test_an_ssh_name_of_this_machine_is_this_machine(tmp_path: Path) -> None:
    two = [{"name": "a"}, {"name": "b", "kind": "ssh", "address": "localhost"}]
    fakes = Watching(machines={"a": "1", "b": "1"})
    runs.execute(plan_of(targets=two), Store(tmp_path), targets=fakes.make)
    assert most_at_once(fakes.log) == 1


def test_each_machine_keeps_the_order_of_the_round(tmp_path: Path) -> None:
    fakes = Watching(machines={"a": "1", "b": "2"})
    run = runs.execute(plan_of(), Store(tmp_path), targets=fakes.make)
    for number in range(1, 6):
        own = [r for r in run.records() if r.key.round == number]
        order = plans.order_round(5, number, [(r.key.setting, r.key.target) for r in own])
        for target in ("a", "b"):
            done = [r.key.setting for r in own if r.key.target == target]
            assert done == [setting for setting, name in order if name == target]


def test_what_is_missing_after_a_kill_is_measured_and_nothing_else(tmp_path: Path) -> None:
    fakes = Watching(machines={"a": "1", "b": "2"})
    run = runs.execute(plan_of(), Store(tmp_path), targets=fakes.make)
    unmerge(run).update(state="running")
    for name in ("r0005-s000-a", "r0005-s001-b", "r0004-s000-b"):
        (run.trials_path / f"{name}.parquet").unlink()
    again = Watching(machines={"a": "1", "b": "2"})
    run = runs.execute(plan_of(), Store(tmp_path), targets=again.make)
    assert again.asked == 3
    assert len(run.records()) == 20
    late = [r for r in run.records() if r.notes]
    assert [r.key.name for r in late] == ["r0004-s000-b"], "it was measured after a later round"


def groups(*machines: str) -> list[Group]:
    return [
        Group(Setting(number, "null", {}, {}, 1.0, targets=(name,)), (name,))
        for number, name in enumerate(machines)
    ]


def test_nothing_overtakes_what_waits_for_the_same_machine() -> None:
    order: list[int] = []

    async def execute(group: Group) -> bool:
        order.append(group.setting.index)
        await asyncio.sleep(0.02 if group.targets == ("x",) else 0.001)
        return True

    # The second needs both machines and waits for x; the third must not pass it on y.
    needs = {0: {"x"}, 1: {"x", "y"}, 2: {"y"}}
    asyncio.run(
        run_on_free_machines(
            groups("x", "xy", "y"), execute, lambda g: frozenset(needs[g.setting.index]), 9
        )
    )
    assert order == [0, 1, 2]


def test_a_failure_ends_the_others_and_is_raised() -> None:
    ended: list[str] = []

    async def execute(group: Group) -> bool:
        if group.targets == ("x",):
            await asyncio.sleep(0.01)
            raise ValueError("x")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(group.targets[0])
            raise
        return True

    with pytest.raises(ValueError, match="x"):
        asyncio.run(
            run_on_free_machines(groups("x", "y"), execute, lambda g: frozenset(g.targets), 9)
        )
    assert ended == ["y"]


def test_when_the_budget_ends_no_further_group_begins() -> None:
    begun: list[int] = []

    async def execute(group: Group) -> bool:
        begun.append(group.setting.index)
        await asyncio.sleep(0.001 * (1 + group.setting.index))
        return group.setting.index != 0

    goes_on = asyncio.run(
        run_on_free_machines(groups("x", "y", "x"), execute, lambda g: frozenset(g.targets), 9)
    )
    assert not goes_on
    assert begun == [0, 1]


def test_no_more_trials_run_at_once_than_the_plan_allows(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(12)]
    plan = plan_of(
        max_concurrent=4,
        repeat={"min": 2, "max": 2},
        targets=[{"name": name, "kind": "ssh", "address": name} for name in names],
        benchmarks=[{"benchmark": "null"}],
    )
    fakes = Watching(machines={name: name for name in names})
    run = runs.execute(plan, Store(tmp_path), targets=fakes.make)
    assert most_at_once(fakes.log) == 4
    assert len(run.records()) == 24
    assert (plan.most_at_once, plan_of(concurrent=False).most_at_once) == (4, 1)
    assert plan_of().most_at_once == MOST_AT_ONCE


def test_a_slow_store_holds_the_targets_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has answered and is not stored is never more than runs at once."""
    names = [f"t{number}" for number in range(12)]
    answered = stored = most = 0

    def answer(*_: Any) -> Any:
        nonlocal answered, most
        answered += 1
        most = max(most, answered - stored)
        return good()

    store = StoredRun.append_together

    def slowly(run: StoredRun, trials: Any) -> None:
        nonlocal stored
        time.sleep(0.005)  # five times as long as an answer takes
        store(run, trials)
        stored += len(trials)

    monkeypatch.setattr(StoredRun, "append_together", slowly)
    plan = plan_of(
        max_concurrent=3,
        repeat={"min": 4, "max": 4},
        targets=[{"name": name, "kind": "ssh", "address": name} for name in names],
        benchmarks=[{"benchmark": "null"}],
    )
    fakes = Fakes(answer, takes_s=0.001, machines={name: name for name in names})
    runs.execute(plan, Store(tmp_path), targets=fakes.make)
    assert stored == 48
    assert 1 <= most <= 3


def test_targets_are_opened_side_by_side_and_their_fingerprints_stored_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number}" for number in range(8)]
    opening = most = writes = 0

    async def open_slowly(target: FakeTarget, timeout_s: float = 30.0) -> Any:
        nonlocal opening, most
        opening += 1
        most = max(most, opening)
        await asyncio.sleep(0.005)
        opening -= 1
        return {"identity": {"machine_id_hash": target.name}}

    update = StoredRun.update

    def counted(run: StoredRun, **changes: Any) -> None:
        nonlocal writes
        writes += "fingerprints" in changes
        update(run, **changes)

    monkeypatch.setattr(FakeTarget, "open", open_slowly)
    monkeypatch.setattr(StoredRun, "update", counted)
    targets = [{"name": name, "kind": "ssh", "address": name} for name in names]
    run = runs.execute(plan_of(targets=targets), Store(tmp_path), targets=Fakes().make)
    assert (most, writes) == (8, 1)
    assert set(run.manifest.fingerprints) == set(names)


def test_targets_that_cannot_be_opened_are_counted_in_one_sentence(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(8)]
    targets = [{"name": name, "kind": "ssh", "address": name} for name in names]
    fakes = Fakes(gone={name: range(1, 9) for name in names[:5]})
    with pytest.raises(TargetError, match=r"^5 of 8 targets cannot be opened: .* And 2 more\."):
        runs.execute(plan_of(targets=targets), Store(tmp_path), targets=fakes.make)
