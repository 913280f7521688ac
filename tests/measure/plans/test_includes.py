"""Plans of several files: who wins, and that every value still knows where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from nephoscope.core.errors import PlanError
from nephoscope.core.limits import INCLUDE_DEPTH
from nephoscope.measure.plans import plan_hash
from nephoscope.measure.plans.files.load import load

from .factory import CATALOG

BASE = """\
name: base
seed: 1
repeat: {min: 7, max: 70}
benchmarks:
  - benchmark: cpu.work
    params: {threads: 2}
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder / "plan.yaml"


def refused(path: Path, **sets: str) -> str:
    with pytest.raises(PlanError) as caught:
        load(path, {name.replace("__", "."): value for name, value in sets.items()}, CATALOG)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_includer_wins_mappings_are_merged_lists_replaced(tmp_path: Path) -> None:
    text = """\
name: mine
include: [base.yaml]
repeat: {max: 50}
benchmarks: [{benchmark: disk.work}]
"""
    plan = load(write(tmp_path, plan=text, base=BASE), {}, CATALOG)
    assert (plan.name, plan.seed, plan.repeat.min, plan.repeat.max) == ("mine", 1, 7, 50)
    assert [entry.benchmark for entry in plan.benchmarks] == ["disk.work"]
    assert plan.include == ()


def test_a_later_include_wins_over_an_earlier_one(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        plan="include: [base.yaml, more.yaml]\n",
        base=BASE,
        more="seed: 9\nname: more\nrepeat: {min: 8}\n",
    )
    plan = load(path, {}, CATALOG)
    assert (plan.name, plan.seed, plan.repeat.min, plan.repeat.max) == ("more", 9, 8, 70)


def test_includes_are_found_beside_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text("include: [b.yaml]\nseed: 3\n")
    (tmp_path / "sub" / "b.yaml").write_text(BASE)
    plan = load(write(tmp_path, plan="include: sub/a.yaml\nname: p\n"), {}, CATALOG)
    assert (plan.name, plan.seed, plan.repeat.min) == ("p", 3, 7)


def test_one_plan_in_two_files_is_the_same_plan(tmp_path: Path) -> None:
    whole = load(write(tmp_path, plan=BASE), {}, CATALOG)
    split = load(write(tmp_path, plan="include: [base.yaml]\n", base=BASE), {}, CATALOG)
    assert plan_hash(whole) == plan_hash(split)


@pytest.mark.parametrize(
    ("plan", "base", "words"),
    [
        ("include: [base.yaml]\n", BASE.replace("threads", "thread"), "base.yaml:6:14: "),
        ("include: [base.yaml]\nsede: 4\n", BASE, "plan.yaml:2:1: unknown key 'sede'"),
        ("include: [base.yaml]\nrepeat: {min: 0}\n", BASE, "plan.yaml:2:10: repeat.min"),
        (
            "include: [base.yaml]\nrepeat: {min: 9}\n",
            BASE.replace("70", "many"),
            "base.yaml:3:18: ",
        ),
        ("include: [base.yaml]\n", BASE.replace("cpu.work", "cpu.wrok"), "base.yaml:5:5: "),
        ("include: [base.yaml]\n", "seed: [1", "base.yaml:2:1: this is no valid YAML"),
        ("include: [base.yaml]\n", "- 1\n", "base.yaml:1:1: a plan is a mapping"),
        ("include: [none.yaml]\n", BASE, "plan.yaml:1:11: "),
        ("include: [none.yaml]\n", BASE, "there is no such file"),
        ("include: {a: b}\n", BASE, "plan.yaml:1:1: include is a list of files"),
        ("include: [base.yaml]\n", "include: [plan.yaml]\n", "include one another: plan.yaml -> "),
        ("include: [plan.yaml]\n", BASE, "include one another: plan.yaml -> plan.yaml"),
    ],
)
def test_errors_point_into_the_file_that_holds_them(
    tmp_path: Path, plan: str, base: str, words: str
) -> None:
    assert words in refused(write(tmp_path, plan=plan, base=base))


def test_deep_rows_of_includes_are_refused(tmp_path: Path) -> None:
    for number in range(INCLUDE_DEPTH + 2):
        (tmp_path / f"f{number}.yaml").write_text(f"include: [f{number + 1}.yaml]\n")
    words = refused(write(tmp_path, plan="include: [f0.yaml]\n"))
    assert f"more than {INCLUDE_DEPTH} files" in words


def test_files_that_include_twice_at_every_level_are_bounded(tmp_path: Path) -> None:
    for number in range(INCLUDE_DEPTH - 1):
        below = f"include: [f{number + 1}.yaml, f{number + 1}.yaml, f{number + 1}.yaml]\n"
        (tmp_path / f"f{number}.yaml").write_text(below + "seed: 1\n")
    (tmp_path / f"f{INCLUDE_DEPTH - 1}.yaml").write_text("seed: 1\n")
    words = refused(write(tmp_path, plan="include: [f1.yaml, f1.yaml]\n"))
    assert "includes more than 100 files" in words


LAB = """\
name: two
hosts:
  a: {}
  b: {cpu: {cap: 50%}}
links:
  wan: {between: [a, b], rate: 47Mbit/s, delay: 0ms}
"""
WITH_LAB = """\
name: p
lab: lab.yaml
targets:
  - {name: a, kind: lab}
benchmarks: [{benchmark: cpu.work}]
"""


def test_a_topology_may_stand_in_its_own_file_or_in_the_plan(tmp_path: Path) -> None:
    apart = load(write(tmp_path, plan=WITH_LAB, lab=LAB), {}, CATALOG)
    inside = "\n".join(f"  {line}" for line in LAB.splitlines())
    text = WITH_LAB.replace("lab: lab.yaml", f"lab:\n{inside}")
    within = load(write(tmp_path, plan=text), {}, CATALOG)
    assert apart == within
    assert isinstance(apart.lab, dict)


def test_errors_of_a_topology_point_into_its_file(tmp_path: Path) -> None:
    bad = LAB.replace("47Mbit/s", "47 parsecs")
    assert refused(write(tmp_path, plan=WITH_LAB, lab=bad)).startswith(f"{tmp_path}/lab.yaml:6:")
    inside = "\n".join(f"  {line}" for line in bad.splitlines())
    text = WITH_LAB.replace("lab: lab.yaml", f"lab:\n{inside}")
    assert refused(write(tmp_path, plan=text)).startswith(f"{tmp_path}/plan.yaml:8:")
    assert "there is no such file" in refused(
        write(tmp_path, plan=WITH_LAB.replace("lab.yaml", "bal.yaml"))
    )


def test_sets_reach_into_the_topology(tmp_path: Path) -> None:
    path = write(tmp_path, plan=WITH_LAB, lab=LAB)
    plan = load(path, {"lab.links.wan.delay": "20ms", "targets.0.roles": "[victim]"}, CATALOG)
    assert isinstance(plan.lab, dict)
    assert plan.lab["links"]["wan"]["delay"] == "20ms"
    assert plan.targets[0].roles == ("victim",)
    bad = refused(path, lab__links__wan__delay="soon")
    assert bad.startswith("--set lab.links.wan.delay=soon: ")
    assert "not included from the command line" in refused(path, include="[x.yaml]")


def test_a_latency_matrix_is_read_beside_its_topology(tmp_path: Path) -> None:
    geo = """\
name: geo
hosts: {a: {}, b: {}}
geo:
  sites: {paris: [a], tokyo: [b]}
  latency: delays.csv
"""
    (tmp_path / "delays.csv").write_text(",paris,tokyo\nparis,,110ms\n")
    plan = load(write(tmp_path, plan=WITH_LAB, lab=geo), {}, CATALOG)
    assert isinstance(plan.lab, dict)
    assert plan.lab["geo"]["latency"] == {"paris": {"tokyo": 0.11}}
