"""Two settings become one plan, and separate runs the command that decides between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run

from nephoscope import catalog
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Sample, Setting
from nephoscope.features.comparison.deciding import next_step, plans_of
from nephoscope.features.comparison.interleaving import interleave, names_of_sides
from nephoscope.features.comparison.result import ComparisonRules
from nephoscope.features.comparison.stored import of_stored_runs
from nephoscope.measure import plans
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.files.load import from_text
from nephoscope.measure.targets.kinds.record import TargetRecord
from nephoscope.store import Store, StoredRun


def plan_of(text: str) -> Plan:
    return from_text(text, "plan.yaml", {}, catalog.load())


def hundred(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0)]


def stored(store: Path, name: str = "made", machine: str = "abc", more: str = "") -> StoredRun:
    text = NULL_PLAN.replace("name: made", f"name: {name}") + more
    return make_run(store, text, hundred, rounds=1, machine=machine)


def survey(target: TargetRecord) -> Plan:
    return plan_of(NULL_PLAN).model_copy(update={"targets": (target,)})


def test_what_both_plans_have_runs_on_both_targets_and_the_rest_on_its_own() -> None:
    a = plan_of(NULL_PLAN + "  - {benchmark: cpu.pi, params: {digits: 1000}}\nbudget: 30s\n")
    b = plan_of(
        NULL_PLAN
        + "  - {benchmark: cpu.pi, params: {digits: 2000}}\nbudget: 40s\n"
        + "targets: [{name: far, kind: ssh, address: far.example}]\n"
    )
    merged = interleave(a, b)
    assert [(target.name, target.kind) for target in merged.targets] == [
        ("local", "local"),
        ("far", "ssh"),
    ]
    entries = [(e.benchmark, e.on, e.params.get("digits")) for e in merged.benchmarks]
    assert entries == [
        ("null", ("local", "far"), None),
        ("cpu.pi", ("local",), 1000),
        ("cpu.pi", ("far",), 2000),
    ]
    assert merged.budget_s == 70
    assert merged.repeat.allocation == "even"
    assert interleave(a, b, 5.0).budget_s == 5
    assert (merged.repeat.until, merged.repeat.max) == ("narrow", a.repeat.max)
    deciding = interleave(a, b, until_decided=True).repeat
    assert (deciding.until, deciding.max, deciding.min) == ("decided", 1000, a.repeat.min)


def test_parameters_that_tell_the_sides_apart_are_no_factors_of_the_comparison() -> None:
    entry = "name: x\nbenchmarks: [{benchmark: disk.io, params: {duration_ns: %s}, %s}]\n"
    a, b = (plan_of(entry % (t, "factors: {queue_depth: [1, 8]}")) for t in ("50ms", "80ms"))
    merged = interleave(a, b)
    assert {*plans.expand(merged, catalog.load())[0].factors} >= {"queue_depth", "duration_ns"}
    assert names_of_sides(a, b, merged) == {"disk.io": {"duration_ns"}}


def test_one_target_twice_gets_two_names_and_each_serves_itself() -> None:
    plan = plan_of(
        "name: x\nbenchmarks: [{benchmark: net.rtt, peer: h}]\n"
        "targets: [{name: h, kind: lab, lab: there}]\n"
    )
    merged = interleave(plan, plan)
    assert [(t.name, t.topology_host) for t in merged.targets] == [("h-a", "h"), ("h-b", "h")]
    assert [(e.on, e.peer) for e in merged.benchmarks] == [(("h-a", "h-b"), "self")]
    (setting,) = plans.expand(merged, catalog.load())
    assert [setting.server_of(name) for name in setting.targets] == ["h-a", "h-b"]
    assert setting.factors == {}


@pytest.mark.parametrize(
    ("b", "sentence"),
    [
        ("name: x\nbenchmarks: [{benchmark: cpu.pi}]\n", "no common benchmark"),
        (NULL_PLAN + "targets: [{name: c}, {name: d}]\n", "'made' has 2 targets"),
        (NULL_PLAN + "after: [{benchmark: cpu.pi}]\n", "sets `after`"),
    ],
)
def test_plans_that_cannot_be_merged_are_refused(b: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        interleave(plan_of(NULL_PLAN), plan_of(b))


def test_targets_files_and_runs_are_settings(tmp_path: Path) -> None:
    run = stored(tmp_path)
    file = tmp_path / "plan.yaml"
    file.write_text(NULL_PLAN.replace("made", "filed"), encoding="utf-8")

    def names(a: str, b: str) -> list[tuple[str, str]]:
        found = plans_of(a, b, Store(tmp_path), None, survey)
        return [(plan.name, plan.targets[0].name) for plan in found]

    assert names("local", "ssh:far") == [("made", "local"), ("made", "far")]
    assert names(str(file), "ssh:far") == [("filed", "local"), ("filed", "far")]
    assert names(run.id, str(file)) == [("made", "local"), ("filed", "local")]
    with pytest.raises(UsageError, match=r"There is no plan 'nowhere\.yaml'"):
        names("nowhere.yaml", "local")


def test_the_next_step_is_the_command_with_the_real_ids(tmp_path: Path) -> None:
    a, b = stored(tmp_path, "survey-quick"), stored(tmp_path, "survey-quick")
    step = next_step((a, b), ("local", "local"), True, tmp_path)
    assert f"`nephoscope survey --quick --repeat-runs 3 --gap 10min --store {tmp_path}`" in step
    assert f"`nephoscope compare {a.id}:local {b.id}:local --store {tmp_path}` again" in step
    step = next_step((a, b), ("local", "local"), False, None)
    assert step == f"`nephoscope compare --interleave {a.id}:local {b.id}:local`"
    other = stored(tmp_path, machine="def")
    step = next_step((a, other), ("local", "local"), False, None)
    assert "`nephoscope compare --interleave local ssh:HOST`" in step


def test_a_run_that_ends_when_decided_has_intervals_that_allow_for_it(tmp_path: Path) -> None:
    def drawn(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        slower = 1.2 if target == "two" else 1.0
        return [Sample("null_ns", 100 * slower + number % 5)]

    methods = []
    for folder, repeat in (("fixed", "{min: 12, max: 12}"), ("decided", "{until: decided}")):
        text = TWO_TARGETS.replace("{min: 10, max: 50, relative_half_width: 2%}", repeat)
        run = make_run(tmp_path / folder, text, drawn, rounds=12)
        found = of_stored_runs(Store(tmp_path / folder), [run.id], ComparisonRules(0.03, 0.95))
        (line,) = found.comparisons
        assert line.comparison.verdict.word == "worse"
        assert line.comparison.ratio is not None
        methods.append(line.comparison.ratio.method)
    assert ["confidence sequence" in method for method in methods] == [False, True]


def test_runs_between_which_only_time_lies_are_not_interleaved(tmp_path: Path) -> None:
    a, b = stored(tmp_path), stored(tmp_path)
    with pytest.raises(UsageError, match="measured one machine in the same way") as refused:
        plans_of(a.id, b.id, Store(tmp_path), None, survey)
    assert "--repeat-runs 3" in refused.value.hint
    other = stored(tmp_path, machine="def")
    with pytest.raises(UsageError, match="have one address"):
        plans_of(a.id, other.id, Store(tmp_path), None, survey)
