"""Labs and nested designs with a lab that is not: what is made, set, booted, and taken down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nephoscope.core.errors import BenchmarkFailed, Interrupted, PlanError, RunFailed
from nephoscope.core.model import TrialStatus
from nephoscope.measure import plans, runs
from nephoscope.store import Store, StoredRun, query

from .factory import Fakes, good
from .lab_double import TOPOLOGY, LabDouble

LABELLED = {
    "name": "p",
    "seed": 5,
    "warmup": 1,
    "lab": TOPOLOGY,
    "repeat": {"min": 2, "max": 2},
    "targets": [{"name": "a", "kind": "lab"}],
    "benchmarks": [{"benchmark": "null"}],
}
NESTED = {key: value for key, value in LABELLED.items() if key != "repeat"} | {
    "design": {"nest": {"instance": 2, "boot": 2, "rounds": 3}}
}


def execute(path: Path, values: Any, lab: LabDouble, fakes: Fakes | None = None) -> StoredRun:
    plan = plans.Plan.model_validate(values)
    targets = (fakes or Fakes()).make
    return runs.execute(plan, Store(path), targets=targets, environment=lab.made)


def test_the_lab_is_up_before_the_targets_and_down_after_them(tmp_path: Path) -> None:
    lab, fakes = LabDouble([]), Fakes()
    fakes.log = lab.log  # type: ignore[assignment]
    run = execute(tmp_path, LABELLED, lab, fakes)
    assert lab.log[0] == "up"
    assert lab.log[1] == ("a", "open")
    assert lab.log[-2:] == [("a", "close"), "down"]
    assert fakes.made[0].record.lab == "dbl", "the target knows in which lab it is"
    assert run.state == "measured"


def test_a_failed_or_interrupted_run_takes_its_lab_down(tmp_path: Path) -> None:
    lab = LabDouble([], frozenset({"up"}))
    with pytest.raises(RunFailed, match="cannot be made"):
        execute(tmp_path / "1", LABELLED, lab)
    assert lab.log == ["up", "down"]

    import os
    import signal

    def answer(_: str, __: Any, call: int) -> Any:
        if call == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return good()

    lab = LabDouble([])
    with pytest.raises(Interrupted):
        execute(tmp_path / "2", LABELLED, lab, Fakes(answer))
    assert lab.log == ["up", "down"]


def test_each_cell_is_booted_and_told_with_its_trials(tmp_path: Path) -> None:
    lab = LabDouble([])
    run = execute(tmp_path, NESTED, lab)
    renewed = [entry for entry in lab.log if entry.startswith("renew")]
    assert renewed == ["renew a instance", "renew a boot"] * 2
    own = [r for r in run.records() if r.benchmark == "null" and r.key.round > 0]
    assert [r.nest for r in own] == [
        {"instance": cell // 2, "boot": cell % 2} for cell in range(4) for _ in range(3)
    ]
    warm = [r.key.round for r in run.records() if r.key.round < 1]
    assert warm == [0, -1, -2, -3], "each cell is warmed up"
    order = [(r.benchmark, r.key.round) for r in run.records()]
    assert order[:5] == [("host.boot", 1), ("null", 0), ("null", 1), ("null", 2), ("null", 3)]
    (outcome,) = run.manifest.outcomes
    assert (outcome["word"], outcome["n"]) == ("measured", 12)


def test_the_segments_of_each_boot_are_samples(tmp_path: Path) -> None:
    run = execute(tmp_path, NESTED, LabDouble([]))
    boots = [row for row in query.trial_medians(run) if row.benchmark == "host.boot"]
    found = {(row.factors, row.metric): [] for row in boots}  # type: ignore[var-annotated]
    for row in boots:
        found[row.factors, row.metric].append(row.value)
    for level in ("instance", "boot"):
        key = f'{{"level":"{level}"}}'
        assert found[key, "boot_request_ns"] == [1e6, 1e6]
        assert found[key, "boot_kernel_ns"] == [2e6, 2e6]
        assert found[key, "boot_userland_ns"] == [3e6, 3e6]
        assert found[key, "boot_reachable_ns"] == [6e6, 6e6]


@pytest.mark.parametrize("after", range(1, 20, 3))
def test_a_nested_run_goes_on_in_the_middle_of_a_cell(tmp_path: Path, after: int) -> None:
    calls = 0

    class Killed(BaseException):
        pass

    def answer(*_: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == after:
            raise Killed
        return good()

    lab = LabDouble([])
    killed = False
    try:
        execute(tmp_path, NESTED, lab, Fakes(answer))
    except Killed:
        killed = True
    assert killed == (after <= 16)
    before = {record.key for record in Store(tmp_path).open("latest").records()}
    lab = LabDouble([])
    run = execute(tmp_path, NESTED, lab)
    keys = [record.key for record in run.records()]
    assert len(keys) == len(set(keys)) == 12 + 4 + 4
    if not killed:
        return
    # The cell that was cut says so; boots that are stored are not measured again.
    booted = sum(key.setting > 0 for key in before)
    assert sum(entry.startswith("renew") for entry in lab.log) == 4 - booted
    cut = [r for r in run.records() if r.notes and r.key not in before]
    cells = {(r.nest["instance"], r.nest["boot"]) for r in cut}
    assert len(cells) <= 1
    assert all("interrupted in this cell" in r.notes[0] for r in cut)


PLATFORMS = ("bare", "uml", "container")
BY_PLATFORM = NESTED | {
    "factors": {"platform": {"path": "lab.hosts.a.platform", "levels": list(PLATFORMS)}},
    "design": {"nest": {"boot": 4, "rounds": 2}},
    "benchmarks": [{"benchmark": "null", "factors": {"value": [1.0, 2.0]}}],
}


def test_each_platform_has_a_boot_of_its_own_in_each_cell(tmp_path: Path) -> None:
    lab = LabDouble([])
    run = execute(tmp_path, BY_PLATFORM, lab)
    records = run.records()
    boots = [r for r in records if r.benchmark == "host.boot"]
    assert len(boots) == 4 * 3
    orders = []
    for cell in range(4):
        own = [r for r in records if r.nest["boot"] == cell]
        # A boot of a platform, then its warm-up and both rounds of both benchmarks, then the next.
        assert len(own) == 3 * (1 + 2 * 3)
        blocks = [own[at : at + 7] for at in range(0, len(own), 7)]
        for first, *rest in blocks:
            assert first.benchmark == "host.boot"
            assert first.factors["level"] == "instance"
            assert {r.factors["platform"] for r in rest} == {first.factors["platform"]}
            assert [r.key.round for r in rest[2:]] == [2 * cell + 1] * 2 + [2 * cell + 2] * 2
        orders.append(tuple(block[0].factors["platform"] for block in blocks))
    assert all(sorted(order) == sorted(PLATFORMS) for order in orders)
    assert len(set(orders)) > 1, "the platforms are interleaved in random order"
    # Also where a cell begins with the platform of the last one, it is booted.
    made = sum(entry.startswith(("made", "renew")) for entry in lab.log)
    assert made == 12


@pytest.mark.parametrize("after", [1, 3, 9, 26])
def test_a_run_by_platform_goes_on_in_the_middle_of_a_cell(tmp_path: Path, after: int) -> None:
    calls = 0

    class Killed(BaseException):
        pass

    def answer(*_: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == after:
            raise Killed
        return good()

    with pytest.raises(Killed):
        execute(tmp_path, BY_PLATFORM, LabDouble([]), Fakes(answer))
    before = {record.key for record in Store(tmp_path).open("latest").records()}
    run = execute(tmp_path, BY_PLATFORM, LabDouble([]))
    keys = [record.key for record in run.records()]
    assert len(keys) == len(set(keys)) == 4 * 3 * 7
    cut = [r for r in run.records() if any("interrupted in this cell" in n for n in r.notes)]
    assert not {r.key for r in cut} & before
    assert len({(r.nest["boot"], r.factors["platform"]) for r in cut}) == 1


def test_boots_are_the_units_of_intervals(tmp_path: Path) -> None:
    from nephoscope.features.experiments.records import Experiment
    from nephoscope.results import analyse_run

    result = analyse_run.build(execute(tmp_path, BY_PLATFORM, LabDouble([])))
    experiment = result.part(Experiment)
    assert experiment is not None
    assert [(one.benchmark, set(one.levels)) for one in experiment.designs] == [
        ("null", {"platform", "value"})
    ]
    for line in result.metrics:
        assert line.estimate.n == 4, line
        assert set(line.by_round) == {1, 3, 5, 7}
        if line.benchmark != "host.boot":
            assert line.single_rounds == (1, 2, 3, 4, 5, 6, 7, 8)


def test_only_lab_hosts_can_be_nested(tmp_path: Path) -> None:
    values = {**NESTED, "targets": [{"name": "a", "kind": "lab", "lab": "other"}]}
    with pytest.raises(PlanError, match=r"boots its targets, and 'a' \(lab\) cannot be booted"):
        execute(tmp_path, values, LabDouble([]))
    assert Store(tmp_path).ids() == []


def test_a_boot_is_a_benchmark_too(tmp_path: Path) -> None:
    boot = [{"benchmark": "host.boot", "factors": {"level": ["boot", "instance"]}}]
    lab = LabDouble([])
    fakes = Fakes()
    run = execute(tmp_path, {**LABELLED, "benchmarks": boot, "warmup": 0}, lab, fakes)
    assert sorted(entry for entry in lab.log if entry.startswith("renew")) == [
        "renew a boot",
        "renew a boot",
        "renew a instance",
        "renew a instance",
    ]
    assert {r.status for r in run.records()} == {TrialStatus.VALID}
    assert fakes.log.count(("a", "open")) == 1 + 4, "what ran on it is gone with each boot"


def test_conditions_are_set_before_each_trial_and_a_new_platform_opens_the_target_again(
    tmp_path: Path,
) -> None:
    values = {
        **LABELLED,
        "warmup": 0,
        "factors": {"platform": {"path": "lab.hosts.a.platform", "levels": ["bare", "container"]}},
    }
    lab, fakes = LabDouble([]), Fakes()
    run = execute(tmp_path, values, lab, fakes)
    applied = [entry for entry in lab.log if entry.startswith("apply")]
    changes = len(applied)
    assert changes >= 2
    assert fakes.log.count(("a", "open")) == 1 + changes
    assert {r.factors["platform"] for r in run.records()} == {"bare", "container"}


def test_a_condition_that_cannot_be_set_fails_its_setting_in_the_phase_prepare(
    tmp_path: Path,
) -> None:
    values = {
        **LABELLED,
        "warmup": 0,
        "repeat": {"min": 4, "max": 4},
        "factors": {"cap": {"path": "lab.hosts.a.cpu.cap", "levels": [0.5, 1.0]}},
    }
    lab = LabDouble([], frozenset({1.0}))
    run = execute(tmp_path, values, lab)
    bad = [r for r in run.records() if r.status is TrialStatus.FAILED]
    assert {r.factors["cap"] for r in bad} == {1.0}
    assert bad[0].reasons == ("in phase prepare: That cannot be set. Choose another.",)
    assert list(bad[0].timeline) == ["prepare"]
    assert len(bad) == 3, "then it is refused, and the other level goes on"


def test_when_the_only_setting_cannot_be_set_the_run_failed(tmp_path: Path) -> None:
    values = {**LABELLED, "factors": {"cap": {"path": "lab.hosts.a.cpu.cap", "levels": [1.0]}}}
    with pytest.raises(BenchmarkFailed, match="That cannot be set"):
        execute(tmp_path, values, LabDouble([], frozenset({1.0})))


def test_one_instance_booted_once_is_what_is_there(tmp_path: Path) -> None:
    values = {**NESTED, "lab": None, "targets": [{"name": "a"}]}
    values["design"] = {"nest": {"rounds": 3}}
    run = execute(tmp_path, values, LabDouble([]))
    assert [r.benchmark for r in run.records()] == ["null"] * 4
    assert {tuple(r.nest.items()) for r in run.records()} == {(("instance", 0), ("boot", 0))}
