"""A run that goes quiet, noisy, quiet: what is measured when, and what a kill leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.errors import Interrupted
from nephoscope.core.model import TrialRecord
from nephoscope.features.experiments.records import Experiment
from nephoscope.measure import plans, runs
from nephoscope.measure.targets import TargetTrial
from nephoscope.results.analyse_run import build
from nephoscope.store import Store, StoredRun

from .factory import Fakes, failed, good

ROUNDS = 3


def plan_of(**more: Any) -> plans.Plan:
    values = {
        "name": "p",
        "seed": 3,
        "warmup": 1,
        "repeat": {"min": ROUNDS, "max": ROUNDS},
        "targets": [{"name": "a"}, {"name": "b", "roles": ["aggressor"]}],
        "benchmarks": [{"benchmark": "null"}],
        "backgrounds": [
            {"name": "one", "benchmark": "test.load", "settle_s": 0.0},
            {"name": "two", "benchmark": "test.load", "settle_s": 0.0},
        ],
        "factors": {"resource": {"path": "backgrounds", "levels": ["none", "one", "two"]}},
        "design": {"baseline": {"resource": "none"}, "around": True},
        **more,
    }
    return plans.Plan.model_validate(values)


def execute(path: Path, fakes: Fakes, plan: plans.Plan) -> StoredRun:
    return runs.execute(plan, Store(path), targets=fakes.make)


def level(record: TrialRecord) -> str:
    return str(record.factors["resource"])


def check(records: list[TrialRecord]) -> None:
    """What holds for every whole run of the plan."""
    counted = [record for record in records if record.key.round > 0]
    names = [record.key.name for record in records]
    assert len(set(names)) == len(names)
    for number in range(1, ROUNDS + 1):
        of_round = [record for record in counted if record.key.round == number]
        assert [level(record) == "none" for record in of_round] == [True, False] * 2 + [True]
        assert {level(record) for record in of_round} == {"none", "one", "two"}
        for before, noisy, after in zip(of_round, of_round[1:], of_round[2:], strict=False):
            if level(noisy) != "none":
                assert noisy.around == {"before": before.key.name, "after": after.key.name}
            else:
                assert noisy.around == {}


@pytest.mark.usefixtures("load")
def test_every_noisy_trial_tells_the_quiet_ones_on_both_sides(tmp_path: Path) -> None:
    run = execute(tmp_path, Fakes(), plan_of())
    records = run.records()
    assert len(records) == 3 + ROUNDS * 5
    check(records)
    warm = [record for record in records if record.key.round < 1]
    assert all(record.around == {} for record in warm)
    assert {record.key.repeat_index for record in warm} == {0}
    orders = [[level(r) for r in records if r.key.round == n] for n in range(1, ROUNDS + 1)]
    again = execute(tmp_path / "again", Fakes(), plan_of()).records()
    assert orders == [[level(r) for r in again if r.key.round == n] for n in range(1, ROUNDS + 1)]


@pytest.mark.usefixtures("load")
def test_a_run_that_is_interrupted_anywhere_goes_on_with_the_trial_that_is_missing(
    tmp_path: Path,
) -> None:
    whole = [
        record.key.name for record in execute(tmp_path / "whole", Fakes(), plan_of()).records()
    ]
    for stop in range(1, len(whole)):
        path = tmp_path / str(stop)
        asked = 0

        def answer(_: str, __: Any, ___: int, stop: int = stop) -> TargetTrial:
            nonlocal asked
            asked += 1
            if asked > stop:
                raise KeyboardInterrupt
            return good()

        with pytest.raises(Interrupted):
            execute(path, Fakes(answer), plan_of())
        records = execute(path, Fakes(), plan_of()).records()
        assert [record.key.name for record in records] == whole
        check(records)
        late = records[stop]
        told = any("quiet one before it" in note for note in late.notes)
        assert told == bool(late.around), "an interruption right before a noisy trial is told"


@pytest.mark.usefixtures("load")
def test_the_quiet_trials_go_on_as_long_as_a_noisy_one_does(tmp_path: Path) -> None:
    # The quiet one converges at once; `one` and `two` never fail and never vary either, but they
    # have more rounds to go.
    benchmarks = [{"benchmark": "null"}]
    wide = plan_of(repeat={"min": 6, "max": 9}, benchmarks=benchmarks)
    calls = {"n": 0}

    def answer(_: str, __: Any, ___: int) -> TargetTrial:
        calls["n"] += 1
        return good(100.0)

    records = execute(tmp_path, Fakes(answer), wide).records()
    for record in records:
        if record.around:
            names = {other.key.name for other in records}
            assert set(record.around.values()) <= names


@pytest.mark.usefixtures("load")
def test_quiet_trials_that_always_fail_are_not_tried_for_ever(tmp_path: Path) -> None:
    plan = plan_of(repeat={"min": 8, "max": 8}, warmup=0)
    count = {"n": 0}

    def answer(_: str, __: Any, ___: int) -> TargetTrial:
        # Every first, third and fifth trial of a round is a quiet one.
        count["n"] += 1
        return failed() if count["n"] % 5 in (1, 3, 0) and count["n"] <= 15 else good()

    records = execute(tmp_path, Fakes(answer), plan).records()
    quiet = [record for record in records if level(record) == "none"]
    assert len(quiet) == 3 * 3, "refused after three rounds"
    noisy = [record for record in records if level(record) != "none"]
    assert len(noisy) == 2 * 8
    assert {record.key.round for record in noisy if not record.around} == set(range(4, 9))


@pytest.mark.usefixtures("load")
def test_lines_and_comparisons_take_all_quiet_trials_in(tmp_path: Path) -> None:
    run = execute(tmp_path, Fakes(), plan_of(repeat={"min": 8, "max": 8}))
    result = build(run)
    lines = {
        str(line.factors["resource"]): line for line in result.metrics if line.metric == "null_ns"
    }
    assert lines["none"].estimate.n == 8 * 3
    assert lines["one"].estimate.n == 8
    assert set(lines["none"].by_round) == set(range(1, 9))
    experiment = result.part(Experiment)
    assert experiment is not None
    assert {one.comparison.ratio.value for one in experiment.comparisons} == {1.0}
