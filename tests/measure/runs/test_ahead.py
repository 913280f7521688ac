"""Simulated trials disturb nobody: as many at once as there are CPUs, with the same results."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unmerged import unmerge

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.measure import plans, runs
from nephoscope.measure.runs.concurrency import run_in_parallel
from nephoscope.store import Store

from .factory import Fakes, failed, good
from .test_concurrent import most_at_once

CPUS = 3


@pytest.fixture(autouse=True)
def _three_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(CPUS)))


def plan_of(**more: Any) -> plans.Plan:
    values = {
        "name": "p",
        "seed": 5,
        "warmup": 0,
        "repeat": {"min": 20, "max": 20},
        "targets": [{"name": "model", "kind": "sim"}],
        "benchmarks": [{"benchmark": "null", "factors": {"value": [1.0, 2.0]}}],
        "observe": {"gap_meter": False},
        **more,
    }
    return plans.Plan.model_validate(values)


def takes_s(params: Any) -> float:
    """Some trials end before others that began before them."""
    return 0.005 * (1 + params.get("seed", 0) % 4)


class Watching(Fakes):
    """The value of a trial follows from its chance, as a simulation's does."""

    def __init__(self, answer: Callable[[Any], Any] | None = None) -> None:
        # Some end before those that began before them.
        super().__init__(
            self._answer, takes_s=lambda params: 0.005 * (1 + params.get("seed", 0) % 4)
        )
        self._own = answer or (lambda params: good(100.0 + params["seed"] % 7))

    def _answer(self, name: str, params: Any, *_: Any) -> Any:
        self.log.append((name, "done"))
        return self._own(params)


def measured(run: Any) -> dict[str, float]:
    """In the order in which an export has them."""
    return {record.key.name: table.column("value")[0].as_py() for record, table in run.tables()}


def test_simulated_trials_run_at_once_and_give_what_they_give_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes = Watching()
    run = runs.execute(plan_of(), Store(tmp_path / "a"), targets=fakes.make)
    assert most_at_once(fakes.log) == CPUS
    assert len(run.records()) == 40
    assert not any(record.notes for record in run.records())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    alone = Watching()
    other = runs.execute(plan_of(), Store(tmp_path / "b"), targets=alone.make)
    assert most_at_once(alone.log) == 1
    assert list(measured(run).items()) == list(measured(other).items())
    assert len(set(measured(run).values())) > 3, "each trial has chance of its own"


def test_what_is_measured_is_never_run_at_once(tmp_path: Path) -> None:
    fakes = Watching(lambda params: good())
    both = [{"name": "model", "kind": "sim"}, {"name": "here"}]
    plan = plan_of(targets=both, repeat={"min": 4, "max": 4})
    runs.execute(plan, Store(tmp_path), targets=fakes.make)
    assert most_at_once(fakes.log) == 1


@pytest.mark.parametrize(
    "answer", [lambda params: good(100.0 + params["seed"] % 2), lambda params: failed("usage", 2)]
)
def test_no_trial_is_run_that_would_not_be_run_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Callable[[Any], Any]
) -> None:
    """Rounds that an interval may spare are not begun, nor those of what is refused."""
    asked = []
    for cpus in (CPUS, 1):
        fakes = Watching(answer)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cpus=cpus: set(range(cpus)))
        plan = plan_of(repeat={"min": 6, "max": 40, "relative_half_width": 0.01})
        with contextlib.suppress(BenchmarkFailed):
            runs.execute(plan, Store(tmp_path / str(cpus)), targets=fakes.make)
        asked.append(fakes.asked)
    assert asked[0] == asked[1] < 40


def test_alternatives_of_other_least_numbers_miss_no_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [
        {"benchmark": "null", "params": {"value": 1.0}},
        {"benchmark": "null", "params": {"value": 2.0}, "repeat": {"min": 6, "max": 12}},
    ]
    names = []
    for cpus in (CPUS, 1):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cpus=cpus: set(range(cpus)))
        plan = plan_of(benchmarks=two)
        run = runs.execute(plan, Store(tmp_path / str(cpus)), targets=Watching().make)
        names.append([record.key.name for record in run.records()])
    assert names[0] == names[1]
    assert "r0007-s001-model" in names[0], "the second goes on beyond its least number"


def test_what_is_missing_after_a_kill_is_measured_and_nothing_else(tmp_path: Path) -> None:
    fakes = Watching()
    run = runs.execute(plan_of(), Store(tmp_path), targets=fakes.make)
    before = measured(run)
    unmerge(run).update(state="running")
    for name in ("r0007-s000-model", "r0008-s001-model", "r0020-s000-model"):
        (run.trials_path / f"{name}.parquet").unlink()
    again = Watching()
    run = runs.execute(plan_of(), Store(tmp_path), targets=again.make)
    assert again.asked == 3
    assert list(measured(run).items()) == list(before.items())


def test_so_many_at_once_in_order_and_none_after_one_that_says_so() -> None:
    begun: list[int] = []

    def job(number: int) -> Callable[[], Any]:
        async def runs_on() -> bool:
            begun.append(number)
            await asyncio.sleep(0.001 * (10 - number))
            return number != 3

        return runs_on

    jobs = [job(number) for number in range(8)]
    assert not asyncio.run(run_in_parallel(jobs, lambda job: job(), 2))
    assert begun[:4] == [0, 1, 2, 3]
    assert len(begun) < 7


def test_a_failure_ends_the_others_and_is_raised() -> None:
    ended: list[str] = []

    async def fails() -> bool:
        await asyncio.sleep(0.01)
        raise ValueError("x")

    async def lasts() -> bool:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("it")
        return True

    with pytest.raises(ValueError, match="x"):
        asyncio.run(run_in_parallel([fails, lasts], lambda job: job(), 2))
    assert ended == ["it"]
