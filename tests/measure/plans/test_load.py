from __future__ import annotations

import os
from pathlib import Path

import pytest

from nephoscope.core.errors import PlanError
from nephoscope.measure.plans.files.load import from_text, load
from nephoscope.measure.plans.model import Plan

from .factory import CATALOG

GOOD = """\
name: good
seed: 7
budget: 90s
margin: 5%
targets:
  - name: a
  - name: b
benchmarks:
  - benchmark: cpu.work
    params:
      size_bytes: 64MiB
      wait_ns: 1.5ms
      share_ratio: 25%
      lengths: [4KiB, 8192]
      ops: [read]
    factors:
      threads: [1, 2]
    timeout: 10s
"""


def read(text: str, **sets: str) -> Plan:
    dotted = {name.replace("__", "."): value for name, value in sets.items()}
    return from_text(text, "plan.yaml", dotted, CATALOG)


def refused(text: str, **sets: str) -> str:
    with pytest.raises(PlanError) as caught:
        read(text, **sets)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_units_are_read_into_the_parameters_own() -> None:
    plan = read(GOOD)
    assert (plan.budget_s, plan.margin, plan.seed) == (90.0, 0.05, 7)
    entry = plan.benchmarks[0]
    assert entry.params == {
        "size_bytes": 64 << 20,
        "wait_ns": 1_500_000,
        "share_ratio": 0.25,
        "lengths": [4096, 8192],
        "ops": ["read"],
    }
    assert entry.factors == {"threads": [1, 2]}
    assert entry.timeout_s == 10.0
    assert [target.name for target in plan.targets] == ["a", "b"]


def test_what_is_not_said_is_the_documented_default() -> None:
    plan = read("name: p\nbenchmarks: [{benchmark: cpu.work}]")
    assert (plan.repeat.min, plan.repeat.max, plan.repeat.look_every) == (10, 100, 5)
    assert (plan.repeat.relative_half_width, plan.confidence, plan.margin) == (0.02, 0.95, 0.03)
    assert (plan.warmup, plan.seed, plan.budget_s, plan.accept) == (1, None, None, ())
    assert [(target.name, target.kind) for target in plan.targets] == [("local", "local")]


def test_sets_are_put_over_the_file_by_dotted_path() -> None:
    plan = read(GOOD, budget="5min", benchmarks__0__params__size_bytes="1KiB", repeat__min="20")
    assert (plan.budget_s, plan.benchmarks[0].params["size_bytes"]) == (300.0, 1024)
    assert plan.repeat.min == 20


# Each row: what is replaced in GOOD, by what, the place, and words of the sentence.
BAD = [
    ("name: good", "nmae: good", "1:1", "unknown key 'nmae' (did you mean 'name'?)"),
    ("timeout: 10s", "time: 10s", "18:5", "unknown key 'time' (did you mean 'timeout'?)"),
    ("budget: 90s", "budget: 10 parsecs", "3:1", "'10 parsecs' is no duration"),
    ("budget: 90s", "budget: -3s", "3:1", "budget"),
    ("budget: 90s", "budget: .nan", "3:1", "budget"),
    ("margin: 5%", "margin: 500%", "4:1", "'500%' is no ratio"),
    ("seed: 7", "seed: seven", "2:1", "seed"),
    ("seed: 7", "seed: true", "2:1", "seed"),
    ("name: good", "name: Good Plan", "1:1", "hold only a-z"),
    ("name: good", "name: 5", "1:1", "must be a text, not 5"),
    ("name: b", "name: a", "7:5", "two targets are named 'a'"),
    ("name: b", "kind: cloud", "7:5", "local"),
    ("benchmark: cpu.work", "benchmark: cpu.wrk", "9:5", "did you mean 'cpu.work'?"),
    ("threads: [1, 2]", "thread: [1, 2]", "17:7", "did you mean 'threads'?"),
    ("threads: [1, 2]", "threads: [1, 65]", "17:20", "from 0 to 64, not 65"),
    ("threads: [1, 2]", "threads: [1, 1]", "17:7", "same level twice"),
    ("threads: [1, 2]", "threads: []", "17:7", "is empty"),
    ("threads: [1, 2]", "threads: 2", "17:7", "list"),
    ("threads: [1, 2]", "size_bytes: [1]", "17:7", "both a fixed parameter and a factor"),
    ("size_bytes: 64MiB", "size_bytes: 64 parsecs", "11:7", 'not "64 parsecs"'),
    ("size_bytes: 64MiB", "size_bytes: 1.5", "11:7", "a whole number from 1"),
    ("size_bytes: 64MiB", "size_bytes: null", "11:7", "not null"),
    ("wait_ns: 1.5ms", "wait_ns: .inf", "12:7", "wait_ns must be a whole number"),
    ("ops: [read]", "ops: [append]", "15:7", "a list of words out of read, write"),
    ("ops: [read]", "mode: maybe", "15:7", "one of fast, no"),
    ("ops: [read]", "label: 5", "15:7", "Put it in quotes"),
    ("ops: [read]", "pin: no", "15:7", "true and false"),
    ("timeout: 10s", "headline: [speed_ns]", "18:5", "no metric 'speed_ns'"),
    ("timeout: 10s", "repeat: {min: 5, max: 2}", "18:5", "repeat.max is less"),
    ("timeout: 10s", "params: {}", "18:5", "the key 'params' is there twice"),
    ("seed: 7", "seed: [7", "3:7", "no valid YAML"),
    ("seed: 7", "repeat: {min: 0}", "2:10", "repeat.min"),
    ("seed: 7", "accept: [rain]", "2:10", "accept"),
    ("seed: 7", "version: 2", "2:1", "version"),
]


@pytest.mark.parametrize(("old", "new", "place", "words"), BAD, ids=lambda value: str(value)[:30])
def test_bad_plans_are_refused_in_one_sentence_with_the_place(
    old: str, new: str, place: str, words: str
) -> None:
    assert old in GOOD
    sentence = refused(GOOD.replace(old, new, 1))
    assert words in sentence
    assert sentence.startswith(f"plan.yaml:{place}: "), sentence


def test_yaml_1_1_traps_stay_what_was_written() -> None:
    plan = read("name: p\nbenchmarks: [{benchmark: cpu.work, params: {mode: no, label: 1:30}}]")
    assert plan.benchmarks[0].params == {"mode": "no", "label": "1:30"}


def test_leading_zeros_are_never_octal() -> None:
    plan = read("name: p\nbenchmarks: [{benchmark: cpu.work, params: {threads: 010}}]")
    assert plan.benchmarks[0].params["threads"] == 10


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_plan_is_said_to_be_empty(text: str) -> None:
    assert "the plan is empty" in refused(text)


@pytest.mark.parametrize("text", ["- a\n- b", "hello", "5", "true"])
def test_a_plan_is_a_mapping(text: str) -> None:
    assert "a plan is a mapping of keys" in refused(text)


def test_a_plan_without_benchmarks_is_refused() -> None:
    assert "'benchmarks' is missing" in refused("name: p")
    assert "benchmarks is empty" in refused("name: p\nbenchmarks: []")


def test_recursion_and_deep_nesting_are_refused() -> None:
    refused("name: p\nbenchmarks: &a [*a]")
    refused("[" * 100_000)
    refused("name: p\nbenchmarks: [{benchmark: cpu.work, params: &p {label: *p}}]")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("bugdet", "5s", "--set bugdet=5s: unknown key 'bugdet' (did you mean 'budget'?)"),
        ("benchmarks.3.timeout", "5s", "'3' is no position of a list of 1"),
        ("benchmarks.0.params.threads.x", "5", "holds no keys"),
        ("benchmarks.0.params.size_bytes", "0", "--set benchmarks.0.params.size_bytes=0: "),
        ("budget", "soon", "--set budget=soon: "),
    ],
)
def test_bad_sets_are_told_with_the_option(path: str, value: str, words: str) -> None:
    text = GOOD.replace("      ops: [read]\n", "      ops: [read]\n      threads: 1\n").replace(
        "    factors:\n      threads: [1, 2]\n", ""
    )
    with pytest.raises(PlanError) as caught:
        from_text(text, "plan.yaml", {path: value}, CATALOG)
    assert words in str(caught.value)


def test_files_that_cannot_be_read_are_told_in_one_sentence(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: p\nquestion: Größe\n".encode("latin-1"))
    cases = {
        tmp_path: "this is a directory",
        tmp_path / "none.yaml": "there is no such file",
        latin: "latin.yaml:2:13: this is no UTF-8 text (byte 0xf6)",
        Path("/dev/zero"): "it is no regular file",
        Path("bad\0name"): "cannot be read",
    }
    for path, words in cases.items():
        with pytest.raises(PlanError) as caught:
            load(path, {}, CATALOG)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_unreadable_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(GOOD)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # As root no mode bit keeps a file from being read.
    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(PlanError, match="cannot be read: Permission denied"):
        load(path, {}, CATALOG)
