from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.unmerged import unmerge

from nephoscope.core.errors import (
    BenchmarkFailed,
    Interrupted,
    StoreError,
    TargetError,
    UnknownName,
)
from nephoscope.core.model import Sample, TrialStatus
from nephoscope.measure import plans, runs
from nephoscope.measure.runs.observer import Observer, Status
from nephoscope.measure.runs.schedule.alternatives import Outcome
from nephoscope.store import Store, StoredRun, query

from .factory import Fakes, failed, good


def plan_of(**more: Any) -> plans.Plan:
    values = {
        "name": "p",
        "seed": 3,
        "repeat": {"min": 4, "max": 4},
        "benchmarks": [{"benchmark": "null", "factors": {"value": [1.0, 2.0]}}],
        **more,
    }
    return plans.Plan.model_validate(values)


def execute(path: Path, fakes: Fakes, plan: plans.Plan | None = None, **more: Any) -> StoredRun:
    return runs.execute(plan or plan_of(), Store(path), targets=fakes.make, **more)


def test_every_alternative_once_a_round_in_the_seeds_order(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    two = [{"name": "a"}, {"name": "b"}]
    run = execute(tmp_path, fakes, plan_of(targets=two))
    records = run.records()
    assert [record.position for record in records] == list(range(20))
    assert [record.key.round for record in records] == [n for n in range(5) for _ in range(4)]
    for number in range(5):
        pairs = [(r.key.setting, r.key.target) for r in records if r.key.round == number]
        assert pairs == plans.order_round(3, number, sorted(pairs))
    assert {what for _, what in fakes.log} >= {"open", "close"}
    assert (run.state, len(run.manifest.outcomes)) == ("measured", 4)
    assert set(run.manifest.fingerprints) == {"a", "b"}


def test_a_measured_run_is_not_measured_again_until_it_is_reported(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    first = execute(tmp_path, fakes)
    asked = fakes.asked
    assert execute(tmp_path, fakes).id == first.id
    assert fakes.asked == asked
    runs.mark_reported(first)
    assert first.state == "finished"
    assert execute(tmp_path, fakes).id != first.id
    assert fakes.asked == 2 * asked


def test_fresh_begins_anew(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    first = execute(tmp_path, fakes)
    assert execute(tmp_path, fakes, fresh=True).id != first.id


def test_a_run_of_another_version_is_left_alone(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    first = execute(tmp_path, fakes)
    first.update(state="running", nephoscope="0.0.1")
    assert execute(tmp_path, fakes).id != first.id


def test_an_error_before_the_first_trial_leaves_nothing(tmp_path: Path) -> None:
    def gone(*_: Any) -> Any:
        raise StoreError("The disk is gone.", "Look for it.")

    with pytest.raises(StoreError):
        execute(tmp_path, Fakes(gone))
    assert Store(tmp_path).ids() == []


@pytest.mark.parametrize("after", range(1, 10))
def test_an_error_at_any_trial_loses_and_doubles_nothing(tmp_path: Path, after: int) -> None:
    calls = 0

    def answer(*_: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == after + 1:
            raise StoreError("The disk is gone.", "Look for it.")
        return good(calls)

    fakes = Fakes(answer)
    with pytest.raises(StoreError):
        execute(tmp_path, fakes)
    (interrupted,) = Store(tmp_path).runs()
    assert len(interrupted.records()) == after
    assert interrupted.events()[-1]["why"].startswith("StoreError")
    run = execute(tmp_path, fakes)
    assert run.id == interrupted.id
    keys = [record.key.name for record in run.records()]
    assert len(keys) == len(set(keys)) == 10
    assert [record.position for record in run.records()] == list(range(10))
    assert fakes.asked == 11
    assert fakes.log.count(("local", "open")) == fakes.log.count(("local", "close")) == 2


def test_damaged_trials_are_measured_again(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    run = unmerge(execute(tmp_path, fakes))
    (run.trials_path / "r0002-s001-local.parquet").write_bytes(b"damaged")
    run.update(state="running")
    warnings: list[str] = []

    class Watch(Observer):
        def warning(self, sentence: str) -> None:
            warnings.append(sentence)

    run = execute(tmp_path, fakes, observer=Watch())
    assert fakes.asked == 11
    assert all(record.status is TrialStatus.VALID for record in run.records())
    assert any("r0002-s001-local is measured again" in sentence for sentence in warnings)


def test_invalid_trials_say_why_and_do_not_count(tmp_path: Path) -> None:
    fakes = Fakes(lambda name, params, call: good(throttled_ratio=0.25 if call % 2 else 0.0))
    run = execute(tmp_path, fakes, plan_of(repeat={"min": 2, "max": 6}))
    bad = [r for r in run.records() if r.status is TrialStatus.INVALID]
    assert bad
    assert all("stopped the trial for 25.0 %" in r.reasons[0] for r in bad)
    assert {r.reason_codes for r in bad} == {("throttled",)}
    trials = {row.trial for row in query.trial_medians(run)}
    assert trials.isdisjoint({r.key.name for r in bad})


def test_what_the_plan_accepts_is_noted_and_counts(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good(throttled_ratio=0.25))
    run = execute(tmp_path, fakes, plan_of(accept=["throttled"]))
    assert all(r.status is TrialStatus.VALID for r in run.records())
    assert all("Accepted by the plan" in r.notes[0] for r in run.records())


def test_a_quota_that_the_target_shows_is_part_of_it(tmp_path: Path) -> None:
    """However the target is named: the fast trials alone would stand for it."""
    fakes = Fakes(lambda *_: good(throttled_ratio=0.25), quotas={"local": 0.5})
    run = execute(tmp_path, fakes)
    assert all(r.status is TrialStatus.VALID for r in run.records())
    assert all("Accepted by the plan: the CPU quota" in r.notes[0] for r in run.records())


def test_a_refused_setting_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    fakes = Fakes(lambda _, params, __: failed("no_direct_io") if params["value"] == 2 else good())
    run = execute(tmp_path, fakes, plan_of(repeat={"min": 10, "max": 10}))
    refusals = [r for r in run.records() if r.status is TrialStatus.FAILED]
    assert len(refusals) == 3
    assert {r.failure_name for r in refusals} == {"no_direct_io"}
    (sentence,) = run.manifest.refused
    assert sentence.startswith("null (value 2) on local: it failed 3 times in a row: in phase ")
    assert sentence.endswith("measure: No luck. Try later.")
    assert run.state == "measured"


def test_when_nothing_works_the_run_failed_with_the_benchmarks_own_words(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: failed("io_error", exit_code=3))
    with pytest.raises(BenchmarkFailed) as caught:
        execute(tmp_path, fakes)
    assert (caught.value.name, caught.value.exit_code) == ("io_error", 3)
    (run,) = Store(tmp_path).runs()
    assert run.state == "failed"
    with pytest.raises(UnknownName, match=f"the newest failed. `nephoscope show {run.id}` shows"):
        Store(tmp_path).open("latest")
    # The same command begins a new run: there is nothing to go on with.
    with pytest.raises(BenchmarkFailed):
        execute(tmp_path, fakes)
    assert len(Store(tmp_path).ids()) == 2


def test_a_full_disk_ends_the_run_and_keeps_it(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    real, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 14:
            raise OSError(28, "No space left on device")
        real(descriptor)

    with mock.patch("os.fsync", full), pytest.raises(StoreError, match="the disk is full"):
        execute(tmp_path, fakes)
    kept = len(Store(tmp_path).open("latest").records())
    assert kept > 0
    run = execute(tmp_path, fakes)
    assert len(run.records()) == 10
    assert fakes.asked == 11


def test_little_free_space_is_refused_before_the_first_trial(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    usage = mock.Mock(free=1 << 20, total=1 << 30)
    with (
        mock.patch("shutil.disk_usage", return_value=usage),
        pytest.raises(StoreError, match=r"has 1\.00 MiB of free space; a run needs 32\.0 MiB"),
    ):
        execute(tmp_path, fakes)
    assert fakes.asked == 0


def test_another_machine_does_not_go_on_with_a_run(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    run = execute(tmp_path, fakes)
    run.update(state="running", fingerprints={"local": {"identity": {"machine_id_hash": "ff"}}})
    with pytest.raises(TargetError, match="begun on another machine"):
        execute(tmp_path, fakes)
    assert execute(tmp_path, fakes, fresh=True).id != run.id


@pytest.mark.parametrize(
    ("benchmark", "params", "depends"),
    [
        ("command", {"argv": ["make"]}, True),
        ("command", {"argv": ["make"], "working_directory": "src"}, True),
        ("command", {"argv": ["make"], "working_directory": "/src"}, False),
        ("disk.io", {"directory": "scratch"}, True),
        ("disk.io", {"directory": "/scratch"}, False),
        ("null", {}, False),
    ],
)
def test_a_run_is_resumed_where_its_relative_paths_mean_the_same(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    benchmark: str,
    params: dict[str, Any],
    depends: bool,
) -> None:
    metrics = {"command": "wall_ns", "disk.io": "disk_operations_per_s", "null": "null_ns"}
    trial = replace(good(), samples=(Sample(metrics[benchmark], 100.0),))

    def stopping(name: str, params: Any, call: int) -> Any:
        if call == 3:
            raise StoreError("The disk is gone.", "Look for it.")
        return trial

    plan = plan_of(benchmarks=[{"benchmark": benchmark, "params": params}])
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(StoreError):
        execute(tmp_path, Fakes(stopping), plan)
    monkeypatch.chdir(there)
    fakes = Fakes(lambda *_: trial)
    if depends:
        with pytest.raises(TargetError, match=f"begun in {here}.* other files in {there}"):
            execute(tmp_path, fakes, plan)
        assert fakes.asked == 0
        monkeypatch.chdir(here)
    run = execute(tmp_path, fakes, plan)
    assert len(Store(tmp_path).ids()) == 1
    assert run.manifest.fingerprints["local"]["directory"] == str(here)


@pytest.mark.parametrize("exit_code", [2, 3, 4])
def test_a_refused_run_leaves_nothing_and_a_failed_one_is_not_the_latest(
    tmp_path: Path, exit_code: int
) -> None:
    kept = execute(tmp_path, Fakes(lambda *_: good()))
    with pytest.raises(BenchmarkFailed):
        execute(tmp_path, Fakes(lambda *_: failed(exit_code=exit_code)), fresh=True)
    assert len(Store(tmp_path).ids()) == (2 if exit_code == 3 else 1)
    assert Store(tmp_path).open("latest").id == kept.id


def test_the_observer_sees_the_run(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Watch(Observer):
        def run_started(self, run: StoredRun, resumed: bool, trials: int) -> None:
            seen.append(("start", resumed, trials))

        def trial_ended(self, record: Any, status: Status) -> None:
            seen.append(("trial", record.key.round, status.trials))

        def alternative_ended(self, outcome: Outcome, status: Status) -> None:
            seen.append(("end", status.ended, status.alternatives))

    execute(tmp_path, Fakes(lambda *_: good()), plan_of(budget="60s"), observer=Watch())
    assert seen[0] == ("start", False, 0)
    trials = [event for event in seen if event[0] == "trial"]
    assert trials == [("trial", number // 2, number + 1) for number in range(10)]
    assert seen[-1] == ("end", 2, 2)


def test_the_budget_counts_all_sessions(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    run = execute(tmp_path, fakes, plan_of(budget="60s"))
    spent_s = sum(record.spent_s for record in run.records())
    assert run.manifest.spent_s == pytest.approx(spent_s, abs=0.01)
    assert 0 < spent_s < 60


def test_a_trial_may_not_outlast_the_budgets_hard_limit(tmp_path: Path) -> None:
    """Its time limit is what the budget leaves; cut short by that, it is no failed trial."""

    def answer(_: str, __: Any, call: int) -> Any:
        return good() if call < 6 else failed("deadline")

    fakes = Fakes(answer)
    run = execute(tmp_path, fakes, plan_of(budget="5s", repeat={"min": 20, "max": 20}))
    timeouts_s = fakes.made[0].timeouts_s
    # The warm-up and the first round have the plan's own time limit.
    assert timeouts_s[:4] == [120.0] * 4
    assert all(timeout_s <= 5 * 1.3 for timeout_s in timeouts_s[4:])
    assert len(run.records()) == 5
    assert {outcome["word"] for outcome in run.manifest.outcomes} == {"budget"}
    assert any(event["event"] == "trial_cut_short_by_budget" for event in run.events())


def test_ctrl_c_keeps_the_run_and_closes_the_target(tmp_path: Path) -> None:
    import signal

    def answer(_: str, __: Any, call: int) -> Any:
        if call == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return good()

    fakes = Fakes(answer)
    with pytest.raises(Interrupted) as caught:
        execute(tmp_path, fakes)
    assert caught.value.exit_code == 130
    assert "The same command goes on from there." in str(caught.value)
    assert fakes.log[-1] == ("local", "close")
    kept = len(Store(tmp_path).open("latest").records())
    assert 3 <= kept <= 4
    Fakes(lambda *_: good())
    assert len(execute(tmp_path, Fakes(lambda *_: good())).records()) == 10


@pytest.mark.parametrize("wanted", [True, False])
def test_a_plan_says_whether_a_spare_cpu_is_watched(tmp_path: Path, wanted: bool) -> None:
    fakes = Fakes(lambda *_: good())
    execute(tmp_path, fakes, plan_of(observe={"gap_meter": wanted}))
    assert len(fakes.metered) == (fakes.asked if wanted else 0)
    assert plan_of().observe.gap_meter


def test_labels_that_are_set_while_a_report_is_written_stay(tmp_path: Path) -> None:
    run = execute(tmp_path, Fakes(lambda *_: good()))
    other = Store(tmp_path).open(run.id)
    with other.lock():
        other.update(labels={"ticket": "1"})
    runs.mark_reported(run)
    stored = Store(tmp_path).open(run.id)
    assert (stored.state, stored.labels) == ("finished", {"ticket": "1"})


def test_a_limit_ends_a_run_with_the_trials_before_it(tmp_path: Path) -> None:
    """The second alternative never ends: it is given up, and the first one's trial stays."""
    plan = plan_of(warmup=0, repeat={"min": 1, "max": 1})
    fakes = Fakes(lambda *_: good())
    fakes.takes_s = lambda params: 600.0 if fakes.asked > 1 else 0.0
    began_s = time.monotonic()
    run = execute(tmp_path, fakes, plan, limit_s=1.0)
    assert 1 <= time.monotonic() - began_s < 30
    assert [record.status for record in run.records()] == [TrialStatus.VALID]
    assert run.state == "measured"
    assert {one["word"] for one in run.manifest.outcomes} == {"budget"}
    assert any(event["event"] == "time_limit_reached" for event in run.events())


def test_a_limit_before_the_first_trial_leaves_no_run(tmp_path: Path) -> None:
    fakes = Fakes(lambda *_: good())
    fakes.takes_s = lambda params: 600.0
    with pytest.raises(BenchmarkFailed):
        execute(tmp_path, fakes, limit_s=0.5)
    assert Store(tmp_path).ids() == []
