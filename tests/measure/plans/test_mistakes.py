"""All mistakes of a plan are reported at once, each with place, reason and next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from nephoscope import catalog, command_line
from nephoscope.core.errors import PlanError
from nephoscope.measure.plans.files.load import from_text

CATALOG = catalog.load()


def mistakes(text: str) -> list[str]:
    """The sentences for a plan; without the file's name."""
    with pytest.raises(PlanError) as caught:
        from_text(text, "plan.yaml", {}, CATALOG)
    assert caught.value.exit_code == 2
    return [sentence.removeprefix("plan.yaml:") for sentence in caught.value.sentences]


def starts(text: str) -> list[str]:
    """The first words of each sentence, up to the reason's end."""
    return [sentence.partition(". ")[0] for sentence in mistakes(text)]


def test_keys_values_and_benchmarks_are_reported_together() -> None:
    assert starts("""version: 1
nam: x
confidence: 2
benchmarks:
  - benchmark: cpu.hash
    params: {thread: 1, duration_ns: soon}
  - benchmark: cpu.hsh
  - benchmark: cpu.pi
    factors: {digits: [100, 100]}
    repeats: 3
""") == [
        "2:1: unknown key 'nam' (did you mean 'name'?)",
        "3:1: confidence: input should be less than 1",
        "6:14: cpu.hash has no parameter 'thread' (did you mean 'threads'?)",
        "6:25: cpu.hash: duration_ns must be a whole number from 1ms to 1h, such as 100ms, not "
        '"soon"',
        "7:5: There is no benchmark 'cpu.hsh' (did you mean 'cpu.hash'?)",
        "10:5: unknown key 'repeats' (did you mean 'repeat'?)",
    ]


def test_what_is_missing_is_named_once_for_each_key() -> None:
    assert starts("version: 1\n") == [
        " 'name' is missing",
        " 'benchmarks' is missing",
    ]


def test_roles_loads_and_factors_are_reported_together() -> None:
    sentences = starts("""version: 1
name: x
targets:
  - {name: a, kind: local}
  - {name: a, kind: local}
benchmarks:
  - benchmark: "null"
    on: b
  - benchmark: net.throughput
    peer: c
backgrounds:
  - {name: burn, benchmark: cpu.pi, on: a}
factors:
  noise: {path: backgrounds.brun.active, levels: [false, true]}
""")
    assert [sentence.partition(":")[0] for sentence in sentences] == ["5", "8", "10", "12", "14"]


def test_one_mistake_is_one_sentence_as_before() -> None:
    (sentence,) = mistakes("version: 1\nname: x\nbenchmarks: [{benchmark: nul}]\n")
    assert sentence == (
        "3:15: There is no benchmark 'nul' (did you mean 'null'?). Run `nephoscope list` to see "
        "them all."
    )


def test_several_complaints_about_one_value_are_one() -> None:
    assert len(mistakes('version: 1\nname: x\nlab: 3\nbenchmarks: [{benchmark: "null"}]\n')) == 1


def test_a_topology_reports_all_its_mistakes_with_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(
        "name: l\nhots: {}\nhosts:\n  a: {cpus: 1}\n  b: {memry: 1}\n"
    )
    (tmp_path / "plan.yaml").write_text(
        'version: 1\nname: x\nlab: lab.yaml\nbenchmarks: [{benchmark: "null", on: a}]\n'
        "targets: [{name: a, kind: lab}]\n"
    )
    text = (tmp_path / "plan.yaml").read_text()
    with pytest.raises(PlanError) as caught:
        from_text(text, str(tmp_path / "plan.yaml"), {}, CATALOG)
    places = [one.removeprefix(f"{tmp_path}/").partition(": ")[0] for one in caught.value.sentences]
    assert places == ["lab.yaml:2:1", "lab.yaml:4:7", "lab.yaml:5:7"]


def test_the_command_prints_a_line_for_each_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("version: 1\nnam: x\nbenchmarks: [{benchmark: nul}]\n")
    assert command_line.main(["run", str(file)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("plan.yaml:")[2][:5] for line in lines] == ["2:1: ", "3:15:"]
    assert all(line.startswith("nephoscope: ") for line in lines)


def test_what_a_tool_cannot_be_asked_is_refused_before_it_is_started() -> None:
    assert mistakes("""version: 1
name: x
benchmarks:
  - benchmark: cachebench
    params: {duration_ns: 1500ms}
  - benchmark: cachebench
    factors: {duration_ns: [1s, 2500ms]}
""") == [
        "5:5: cachebench: duration_ns must be a whole number of seconds, because cachebench "
        "counts them. Set duration_ns=1s.",
        "7:5: cachebench: duration_ns must be a whole number of seconds, because cachebench "
        "counts them. Set duration_ns=2s.",
    ]
