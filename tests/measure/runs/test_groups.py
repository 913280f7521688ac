"""Groups with fake targets: who is started when, what is kept, what makes a trial not count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.errors import BenchmarkFailed
from nephoscope.core.model import TrialRecord, TrialStatus
from nephoscope.measure import plans, runs
from nephoscope.measure.plans.model import Phases
from nephoscope.store import Store, StoredRun

from .factory import Fakes, Load, failed, good

TWO = [{"name": "a"}, {"name": "b"}]
PHASES = ["prepare", "start", "measure", "stop", "clean"]


def plan_of(**more: Any) -> plans.Plan:
    values = {
        "name": "p",
        "seed": 3,
        "warmup": 0,
        "repeat": {"min": 2, "max": 2},
        "benchmarks": [{"benchmark": "null"}],
        **more,
    }
    return plans.Plan.model_validate(values)


def noisy(**more: Any) -> plans.Plan:
    return plan_of(
        targets=[{"name": "a"}, {"name": "b", "roles": ["aggressor"]}],
        backgrounds=[{"name": "noise", "benchmark": "test.load", "settle_s": 0.0}],
        **more,
    )


def execute(path: Path, fakes: Fakes, plan: plans.Plan | None = None) -> StoredRun:
    return runs.execute(plan or plan_of(), Store(path), targets=fakes.make)


def rows(run: StoredRun, record: TrialRecord) -> list[dict[str, Any]]:
    (table,) = [table for one, table in run.tables() if one.key == record.key]
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_a_trial_alone_has_its_phases_and_no_skew(tmp_path: Path) -> None:
    for record in execute(tmp_path, Fakes()).records():
        assert [phase for phase in PHASES if phase in record.timeline] == [
            "prepare",
            "start",
            "measure",
            "stop",
            "clean",
        ]
        ends = [moment for span in record.timeline.values() for moment in span]
        assert ends == sorted(ends), "phases follow one another"
        assert record.skew_ns is None
        assert (record.attempt, record.loads, record.nest, record.arm) == (1, (), {}, "")


def test_what_starts_together_is_all_ready_before_any_goes(tmp_path: Path) -> None:
    together = plan_of(targets=TWO, benchmarks=[{"benchmark": "null", "together": True}])
    fakes = Fakes(lags_ns={"b": 400_000})
    run = execute(tmp_path, fakes, together)
    words = [what for _, what in fakes.log if what in ("ready null", "go null")]
    # Fingerprints are no trials of these targets: the first words are those of the first group.
    assert words[:4] == ["ready null", "ready null", "go null", "go null"]
    records = run.records()
    assert [r.key.target for r in records] == ["a", "b"] * 2
    assert all(record.status is TrialStatus.VALID for record in records)
    # Both were told one moment; b began 0.4 ms after it.
    assert {record.skew_ns for record in records} == {400_000}
    assert all(not record.notes for record in records)


def test_each_trial_has_a_seed_from_that_of_the_run(tmp_path: Path) -> None:
    plan = plan_of(targets=TWO, seed=3, benchmarks=[{"benchmark": "null"}])
    orders = []
    for folder in ("1", "2"):
        fakes = Fakes()
        execute(tmp_path / folder, fakes, plan)
        orders.append([what for _, what in fakes.log if what.startswith("run {'seed'")])
    assert orders[0] == orders[1]
    assert len(set(orders[0])) == len(orders[0]) > 2
    own = plan_of(seed=3, benchmarks=[{"benchmark": "null", "params": {"seed": 9}}])
    fakes = Fakes()
    execute(tmp_path / "own", fakes, own)
    assert {what for _, what in fakes.log if what.startswith("run {")} == {"run {'seed': 9}"}


def test_a_start_that_is_too_far_apart_is_noted(tmp_path: Path) -> None:
    together = plan_of(targets=TWO, benchmarks=[{"benchmark": "null", "together": True}])
    run = execute(tmp_path, Fakes(lags_ns={"b": 1_500_000}), together)
    for record in run.records():
        assert record.skew_ns == 1_500_000
        assert "The sides began 1.50 ms apart" in record.notes[0]
        assert record.status is TrialStatus.VALID


def test_one_of_a_group_that_fails_leaves_the_others_samples_but_not_their_validity(
    tmp_path: Path,
) -> None:
    together = plan_of(targets=TWO, benchmarks=[{"benchmark": "null", "together": True}])
    fakes = Fakes(lambda name, *_: failed("no_luck") if name == "b" else good(7.0))
    with pytest.raises(BenchmarkFailed):
        execute(tmp_path, fakes, together)
    run = Store(tmp_path).runs()[-1]
    of_a = [r for r in run.records() if r.key.target == "a"]
    of_b = [r for r in run.records() if r.key.target == "b"]
    assert {r.status for r in of_a} == {TrialStatus.INVALID}
    assert of_a[0].reasons == ("it was to run beside b: in phase measure: b: No luck. Try later.",)
    assert [row["value"] for row in rows(run, of_a[0])] == [7.0]
    assert {r.status for r in of_b} == {TrialStatus.FAILED}
    assert list(of_b[0].timeline) == ["prepare", "start", "measure"], "the last one is where"


def test_the_serving_side_is_there_first_and_its_token_goes_to_the_client(tmp_path: Path) -> None:
    plan = plan_of(
        targets=[{"name": "c", "roles": ["client"]}, {"name": "s", "roles": ["server"]}],
        benchmarks=[{"benchmark": "null", "peer": "server"}],
    )
    fakes = Fakes()
    run = execute(tmp_path, fakes, plan)
    log = [entry for entry in fakes.log if entry[1].split()[0] in ("ready", "go", "peer", "stop")]
    assert log[:5] == [
        ("s", "ready null"),
        ("c", "peer 10.0.0.2:4242 t0"),
        ("c", "ready null"),
        ("c", "go null"),
        ("s", "stop null"),
    ]
    assert {record.key.target for record in run.records()} == {"c"}
    # A server waits for its client: the two do not start at one moment.
    assert {record.skew_ns for record in run.records()} == {None}


@pytest.mark.usefixtures("load")
def test_a_load_runs_around_the_trial_and_its_samples_are_kept(tmp_path: Path) -> None:
    fakes = Fakes()
    run = execute(tmp_path, fakes, noisy(repeat={"min": 6, "max": 6}))
    log = [entry for entry in fakes.log if entry[1].split()[0] in ("ready", "go", "stop", "run")]
    assert [(where, what.partition(" {")[0]) for where, what in log[:6]] == [
        ("b", "ready test.load"),
        ("b", "go test.load"),
        ("a", "ready null"),
        ("a", "go null"),
        ("a", "run"),
        ("b", "stop test.load"),
    ]
    for record in run.records():
        assert record.status is TrialStatus.VALID
        (told,) = record.loads
        assert told == {
            "name": "noise",
            "benchmark": "test.load",
            "target": "b",
            "load": True,
            "covered_ratio": 1.0,
            "trials": 1,
        }
        of_load = [row for row in rows(run, record) if row["benchmark"] == "test.load"]
        assert [(r["target"], r["metric"], r["value"], r["factors"]) for r in of_load] == [
            ("b", "load_ratio", 0.5, '{"load":"noise"}')
        ]
    # The load's samples are no repetitions on which the trial's stopping rests.
    assert {outcome["n"] for outcome in run.manifest.outcomes} == {6}


@pytest.mark.usefixtures("load")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (
            Load(lives_s=0.0),
            "the load 'noise' (test.load on b) ended by itself before it was stopped: "
            "test.load: ended by SIGKILL.",
        ),
        (Load(late_s=0.05), "the load 'noise' (test.load on b) began "),
    ],
)
def test_a_load_that_did_not_run_all_the_time_invalidates_the_trial(
    tmp_path: Path, how: Load, reason: str
) -> None:
    fakes = Fakes(loads={"b": how}, takes_s=0.08)
    with pytest.raises(BenchmarkFailed, match=r"No trial counts"):
        execute(tmp_path, fakes, noisy())
    run = Store(tmp_path).runs()[-1]
    for record in run.records():
        assert record.status is TrialStatus.INVALID
        assert record.reasons[0].startswith(reason)
        assert record.failure_name == "load_ended"
        assert next(row["metric"] for row in rows(run, record)) == "null_ns", "samples are kept"


@pytest.mark.usefixtures("load")
def test_a_load_that_is_never_ready_fails_in_the_phase_start(tmp_path: Path) -> None:
    fakes = Fakes(loads={"b": Load(broken=True)})
    with pytest.raises(BenchmarkFailed, match="There is no CPU"):
        execute(tmp_path, fakes, noisy())
    record = Store(tmp_path).runs()[-1].records()[0]
    assert record.reasons == (
        "in phase start: the load 'noise' (test.load on b): There is no CPU. Buy one.",
    )
    assert list(record.timeline) == ["prepare", "start"]
    assert ("a", "ready null") not in fakes.log


def test_hooks_run_before_and_after_and_their_samples_say_so(tmp_path: Path) -> None:
    values = iter(range(100))
    fakes = Fakes(lambda *_: good(float(next(values))))
    hooks = {"before": [{"benchmark": "null"}], "after": [{"benchmark": "null"}]}
    run = execute(tmp_path, fakes, plan_of(**hooks))
    for record in run.records():
        found = {row["factors"]: row["value"] for row in rows(run, record)}
        first = found['{"hook":"before"}']
        assert found == {'{"hook":"before"}': first, "{}": first + 1, '{"hook":"after"}': first + 2}


def test_a_hook_that_fails_names_its_phase(tmp_path: Path) -> None:
    def answer(_: str, params: Any, __: int) -> Any:
        return failed("no_luck") if "value" in params else good()

    hook = {"benchmark": "null", "params": {"value": 2.0}}
    with pytest.raises(BenchmarkFailed):
        execute(tmp_path / "1", Fakes(answer), plan_of(before=[hook]))
    record = Store(tmp_path / "1").runs()[-1].records()[0]
    assert record.reasons == ("in phase prepare: the hook null on local: No luck. Try later.",)
    with pytest.raises(BenchmarkFailed):
        execute(tmp_path / "2", Fakes(answer), plan_of(after=[hook]))
    record = Store(tmp_path / "2").runs()[-1].records()[0]
    assert record.status is TrialStatus.INVALID
    assert record.reasons == ("in phase clean: the hook null on local: No luck. Try later.",)


def test_a_phase_that_takes_too_long_is_named_with_what_to_raise(tmp_path: Path) -> None:
    fakes = Fakes(slow_s={"local": 5.0})
    plan = plan_of(phases=Phases(start="100ms").model_dump(by_alias=True))
    with pytest.raises(BenchmarkFailed):
        execute(tmp_path, fakes, plan)
    record = Store(tmp_path).runs()[-1].records()[0]
    assert record.reasons[0].startswith("in phase start: ")
    assert record.failure_name == "deadline"
    assert list(record.timeline) == ["prepare", "start"]


def test_only_declared_failures_are_tried_again_and_each_attempt_is_told(tmp_path: Path) -> None:
    def answer(_: str, __: Any, call: int) -> Any:
        return failed("probe_died") if call == 1 else failed("no_luck") if call == 4 else good()

    plan = plan_of(retry={"times": 2, "on": ["probe_died"]}, repeat={"min": 3, "max": 3})
    run = execute(tmp_path, Fakes(answer), plan)
    assert [(r.attempt, r.status.value) for r in run.records()] == [
        (2, "valid"),
        (1, "valid"),
        (1, "failed"),
    ]
    (again,) = [e for e in run.events() if e["event"] == "trial_tried_again"]
    assert (again["attempt"], again["failure"]) == (1, "probe_died")
    assert again["reasons"] == ["No luck. Try later."]


def test_nothing_is_tried_again_unless_the_plan_says_so(tmp_path: Path) -> None:
    fakes = Fakes(lambda _, __, call: failed("deadline") if call == 1 else good())
    run = execute(tmp_path, fakes)
    assert [r.status.value for r in run.records()] == ["failed", "valid"]


@pytest.mark.parametrize("after", range(6))
def test_a_kill_between_the_files_of_a_group_leaves_all_or_none(
    tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stands for SIGKILL: the process ends at some call that touches the store, tidying nothing."""
    together = plan_of(targets=TWO, benchmarks=[{"benchmark": "null", "together": True}])

    class Killed(BaseException):
        pass

    real, calls = Path.replace, 0

    def dying(self: Path, target: Any) -> Any:
        nonlocal calls
        if self.suffix == ".parquet" or ".parquet." in self.name:
            calls += 1
            if calls == after + 1:
                raise Killed
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", dying)
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(Killed):
            execute(tmp_path, Fakes(), together)
    run = execute(tmp_path, Fakes(), together)
    assert sorted(r.key.name for r in run.records()) == [
        "r0001-s000-a",
        "r0001-s000-b",
        "r0002-s000-a",
        "r0002-s000-b",
    ]
    assert [p.name for p in run.trials_path.iterdir() if p.name.startswith(".")] == []
