"""A target that does not answer any more takes its trials with it, not the run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.errors import TargetError
from nephoscope.core.model import Sample, TrialStatus
from nephoscope.features.load.result import LoadAnalysis
from nephoscope.measure import plans, runs
from nephoscope.measure.runs.trials import target_pool
from nephoscope.measure.targets import Done, TargetTrial
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun

from .factory import Fakes, FakeTarget, good

ROUNDS = 6


def plan_of(**more: Any) -> plans.Plan:
    values = {
        "name": "p",
        "seed": 3,
        "warmup": 0,
        "repeat": {"min": ROUNDS, "max": ROUNDS},
        "targets": [{"name": "a"}, {"name": "b"}],
        "benchmarks": [{"benchmark": "null", "factors": {"value": [1.0, 2.0]}}],
        **more,
    }
    return plans.Plan.model_validate(values)


def dies(name: str, calls: range) -> Any:
    """An answer that is a lost target for some calls of one target."""

    seen = 0

    def answer(target: str, _: Any, __: int) -> Any:
        nonlocal seen
        seen += target == name
        if target == name and seen in calls:
            raise TargetError(f"{name} hung up.", "Look for it.")
        return good()

    return answer


def execute(path: Path, fakes: Fakes, plan: plans.Plan | None = None) -> StoredRun:
    return runs.execute(plan or plan_of(), Store(path), targets=fakes.make)


def valid(run: StoredRun, target: str) -> int:
    return sum(r.key.target == target and r.status is TrialStatus.VALID for r in run.records())


def test_a_target_that_comes_back_misses_one_round_and_catches_up(tmp_path: Path) -> None:
    fakes = Fakes(dies("b", range(3, 4)))
    run = execute(tmp_path, fakes)
    lost = [r for r in run.records() if r.failure_name == "target_lost"]
    assert {r.key.target for r in lost} == {"b"}
    assert 1 <= len(lost) <= 2
    assert any(r.reasons[0].startswith("in phase measure: b is gone: b hung up.") for r in lost)
    assert valid(run, "a") == valid(run, "b") == 2 * ROUNDS
    assert run.manifest.lost == {}
    assert {outcome["n"] for outcome in run.manifest.outcomes} == {ROUNDS}


def test_a_target_that_stays_away_is_given_up_and_the_other_goes_on(tmp_path: Path) -> None:
    fakes = Fakes(dies("b", range(3, 4)), gone={"b": range(2, 100)})
    run = execute(tmp_path, fakes)
    assert run.state == "measured"
    assert list(run.manifest.lost) == ["b"]
    words: dict[str, set[str]] = {o["target"]: set() for o in run.manifest.outcomes}
    for outcome in run.manifest.outcomes:
        words[outcome["target"]].add(outcome["word"])
    assert words["b"] == {"target_lost"}
    assert "target_lost" not in words["a"]
    assert valid(run, "a") == 2 * ROUNDS
    assert valid(run, "b") == 2, "what it measured is kept"
    lost_rounds = {r.key.round for r in run.records() if r.failure_name == "target_lost"}
    # Lost in the second round, tried again at the next two, then given up before the fourth trial.
    assert lost_rounds <= {2, 3, 4}
    assert fakes.log.count(("b", "open")) == 3
    assert any("b cannot be reached" in sentence for sentence in run.manifest.refused)


def test_when_no_target_is_left_the_run_can_go_on_later(tmp_path: Path) -> None:
    alone = plan_of(targets=[{"name": "a"}])
    fakes = Fakes(dies("a", range(4, 5)), gone={"a": range(2, 100)})
    with pytest.raises(TargetError, match="No target answers any more: a cannot be reached"):
        execute(tmp_path, fakes, alone)
    (run,) = Store(tmp_path).runs()
    assert run.state == "running"
    assert valid(run, "a") == 3
    run = execute(tmp_path, Fakes(), alone)
    assert run.state == "measured"
    assert valid(run, "a") == 2 * ROUNDS


def test_a_target_that_is_not_there_at_first_begins_no_trial(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="b cannot be reached"):
        execute(tmp_path, Fakes(gone={"b": range(1, 100)}))
    assert list(Store(tmp_path).runs()) == [], "a run without a trial leaves nothing"


@pytest.mark.usefixtures("load")
def test_what_needs_the_lost_target_is_not_tried(tmp_path: Path) -> None:
    plan = plan_of(
        targets=[{"name": "a"}, {"name": "b", "roles": ["aggressor"]}],
        backgrounds=[{"name": "noise", "benchmark": "test.load", "settle_s": 0}],
    )
    fakes = Fakes(gone={"b": range(2, 100)})
    calls = 0
    made = fakes.make

    def make(record: TargetRecord) -> Any:
        target = made(record)
        start = target.start

        async def starting(*given: Any, **more: Any) -> Any:
            nonlocal calls
            calls += record.name == "b"
            if calls == 3 and record.name == "b":
                raise TargetError("b hung up.", "Look for it.")
            return await start(*given, **more)

        target.start = starting  # type: ignore[method-assign]
        return target

    run = runs.execute(plan, Store(tmp_path), targets=make)
    assert valid(run, "a") == 2
    assert {o["word"] for o in run.manifest.outcomes} == {"target_lost"}
    reasons = [r.reasons[0] for r in run.records() if r.failure_name == "target_lost"]
    assert reasons[0].startswith("in phase start: b is gone")
    assert all(reason.startswith("not tried: b is gone") for reason in reasons[1:])


def test_a_setting_that_takes_its_target_away_each_time_is_not_tried_for_ever(
    tmp_path: Path,
) -> None:
    def answer(target: str, params: Any, _: int) -> Any:
        if target == "b" and params["value"] == 2.0:
            raise TargetError("b hung up.", "Look for it.")
        return good()

    run = execute(tmp_path, Fakes(answer))
    words = {(o["target"], o["factors"]["value"]): o["word"] for o in run.manifest.outcomes}
    assert words["b", 2.0] == "target_lost"
    assert valid(run, "a") == 2 * ROUNDS


def test_a_patient_run_goes_on_without_a_target_that_cannot_be_opened(tmp_path: Path) -> None:
    fakes = Fakes(gone={"b": range(1, 100)})
    with pytest.raises(TargetError, match="b cannot be reached"):
        execute(tmp_path, fakes)
    run = runs.execute(plan_of(), Store(tmp_path), targets=fakes.make, fresh=True, absent={})
    assert valid(run, "a") == 2 * ROUNDS
    assert run.manifest.lost == {"b": "b cannot be reached. Look for it."}


def test_a_target_that_answers_after_a_failed_opening_is_measured(tmp_path: Path) -> None:
    fakes = Fakes(gone={"b": range(1, 2)})
    run = runs.execute(plan_of(), Store(tmp_path), targets=fakes.make, absent={})
    assert valid(run, "a") == valid(run, "b") == 2 * ROUNDS
    assert run.manifest.lost == {}


def test_an_absent_target_is_not_tried_and_stands_among_the_lost(tmp_path: Path) -> None:
    fakes = Fakes()
    run = runs.execute(plan_of(), Store(tmp_path), targets=fakes.make, absent={"b": "It rests."})
    assert (valid(run, "a"), valid(run, "b")) == (2 * ROUNDS, 0)
    assert run.manifest.lost == {"b": "It rests."}
    assert all(name != "b" for name, _ in fakes.log)


def test_without_any_target_a_patient_run_fails_with_every_reason(tmp_path: Path) -> None:
    fakes = Fakes(gone={"b": range(1, 100)})
    with pytest.raises(TargetError, match=r"It rests.; b cannot be reached"):
        runs.execute(plan_of(), Store(tmp_path), targets=fakes.make, absent={"a": "It rests."})


@pytest.mark.parametrize("concurrent", [True, False])
def test_a_lost_target_that_is_tried_again_holds_no_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrent: bool
) -> None:
    """It answers again when the other one has measured all of its rounds, and not before."""
    monkeypatch.setattr(target_pool, "RETRY_WAIT_S", 0.01)
    openings = answers = 0
    over = asyncio.Event()
    dying = dies("b", range(2, 3))

    def answer(name: str, params: Any, call: int) -> Any:
        nonlocal answers
        answers += name == "a"
        if answers == 2 * ROUNDS:
            over.set()
        return dying(name, params, call)

    opened = FakeTarget.open

    async def open_late(target: FakeTarget, timeout_s: float = 30.0) -> Any:
        nonlocal openings
        openings += target.name == "b"
        if openings == 2 and target.name == "b":
            async with asyncio.timeout(120):
                await over.wait()
        return await opened(target, timeout_s)

    monkeypatch.setattr(FakeTarget, "open", open_late)
    targets = [
        {"name": "a", "kind": "ssh", "address": "a"},
        {"name": "b", "kind": "ssh", "address": "b"},
    ]
    fakes = Fakes(answer, machines={"a": "1", "b": "2"})
    run = execute(tmp_path, fakes, plan_of(targets=targets, concurrent=concurrent))
    assert valid(run, "a") == valid(run, "b") == 2 * ROUNDS
    assert run.manifest.lost == {}


def test_a_lost_generator_leaves_what_the_others_sent(tmp_path: Path) -> None:
    asked: list[tuple[str, Any, Any]] = []
    calls = {"a": 0, "b": 0}

    def answer(target: str, params: Any, _: int) -> TargetTrial:
        calls[target] += 1
        asked.append((target, params["generator"], params["seed"]))
        if target == "b" and calls[target] == 2:
            raise TargetError("b hung up.", "Look for it.")
        values = {"requests_per_s": 50.0, "due_count": 60, "completed_count": 60, "pace_ratio": 1.0}
        samples = tuple(Sample(name, value) for name, value in values.items())
        return TargetTrial(samples, {}, Done(1_000_000, len(samples), {}), None)

    entry = {
        "benchmark": "http.load",
        "together": True,
        "params": {
            "url": "http://127.0.0.1/", "arrivals": "poisson", "rate_per_s": 100.0,
            "connections": 4, "generators": 2,
        },
    }  # fmt: skip
    plan = plan_of(benchmarks=[entry], repeat={"min": 3, "max": 3})
    run = execute(tmp_path, Fakes(answer), plan)
    # Both draw one schedule, of which each sends its own part; another one in each round.
    assert {(target, number) for target, number, _ in asked} == {("a", 0), ("b", 1)}
    seeds = [seed for _, _, seed in asked]
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) == len(seeds) / 2
    by_key = {(record.key.round, record.key.target): record for record in run.records()}
    assert by_key[2, "a"].status is TrialStatus.INVALID
    assert by_key[2, "b"].status is TrialStatus.FAILED
    (shared,) = analyse_run.build(run).part(LoadAnalysis).shared  # type: ignore[union-attr]
    a, b = shared.generators
    assert a.due_count == a.completed_count == 60 * len(seeds) / 2
    assert (b.failed_trials, b.lost_count) == (1, 60)
    assert shared.is_conserved
    assert shared.excluded_trials == 1
