"""Reference values: the extent of the data is stated, and a rank only with enough machines."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.results.made import NULL_PLAN, make_run

from nephoscope.core.errors import UsageError
from nephoscope.core.model import MetricResult, Sample, factors_key
from nephoscope.report import reference_values
from nephoscope.report.blocks import Items, Section, Sentence, Table
from nephoscope.report.reference_values import ReferenceMachine, section_of
from report import made

SURVEY = made.result()
KNOWN = SURVEY.fingerprints["local"]
PI = next(m for m in SURVEY.metrics if m.benchmark == "cpu.pi" and m.factors["threads"] == 1)
TOOL = Path(__file__).resolve().parents[2] / "tools" / "add_reference_survey.py"


def machine(metric: MetricResult, medians: tuple[float, ...], cpus: int = 2) -> ReferenceMachine:
    line = (metric.benchmark, metric.metric, factors_key(metric.factors))
    return ReferenceMachine(
        "A CPU", cpus, "x86_64", 1e9, "2026-01-02", "No other load.", len(medians), {line: medians}
    )


def shown(machines: list[ReferenceMachine]) -> tuple[str, list[tuple[str, ...]]]:
    """The sentence on the data, and the rows of the table."""
    section = section_of(SURVEY, KNOWN, machines)
    assert isinstance(section, Section)
    sentence, *rest = section.blocks
    assert isinstance(sentence, Sentence)
    rows = [
        tuple(map(str, row)) for block in rest if isinstance(block, Table) for row in block.rows
    ]
    return sentence.text, rows


def test_one_machine_is_shown_and_no_rank_is_derived_from_it() -> None:
    text, rows = shown([machine(PI, (PI.estimate.value, 2 * PI.estimate.value))])
    assert "1 machine (2 surveys, until 2026-01-02); 1 of this machine's class" in text
    assert "(x86_64 with 2 CPUs)" in text
    assert "A rank needs at least 5 machines" in text
    ((name, _, _, n, reference, spread),) = rows
    assert name == "Digits of π, one thread"
    assert n == str(PI.estimate.n)
    assert reference
    assert spread.startswith("[")


def test_machines_of_another_class_are_counted_and_not_compared() -> None:
    text, rows = shown([machine(PI, (1.0,), cpus=64)])
    assert "1 machine (1 survey, until 2026-01-02); 0 of this machine's class" in text
    assert rows == []


def test_five_machines_give_a_rank_that_the_interval_decides() -> None:
    value = PI.estimate.value
    assert PI.estimate.high is not None
    beyond = (0.5 * value, 0.6 * value, value, PI.estimate.high * 1.01, 3 * value)
    text, rows = shown([machine(PI, (one,)) for one in beyond])
    assert "rank" not in text
    assert rows[0][-1] == "better than 2, worse than 2 of 5"


def test_a_run_that_is_no_survey_of_known_metrics_has_no_such_section() -> None:
    other = replace(SURVEY, run=replace(SURVEY.run, plan="mine"))
    assert section_of(other, KNOWN, []) is None
    assert reference_values.build(replace(SURVEY, fingerprints={})) is None


def test_the_committed_data_names_its_machine_size_and_date() -> None:
    machines = reference_values.load()
    assert machines
    for one in machines:
        assert len(one.date) == 10
        assert one.notes
        assert all(0 < len(values) <= one.surveys for values in one.medians.values())


def test_a_stored_survey_becomes_a_document_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path, NULL_PLAN, lambda *_: [Sample("null_ns", 100.0)], rounds=6)
    run.update(fingerprints={"local": KNOWN})
    words = [
        "latest",
        "--store",
        tmp_path,
        "--notes",
        "An idle machine.",
        "--folder",
        tmp_path / "d",
    ]
    monkeypatch.setattr(sys, "argv", [str(TOOL), *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(TOOL), run_name="__main__")
    assert ended.value.code == 0
    (file,) = (tmp_path / "d").glob("*.json")
    one = reference_values.read(json.loads(file.read_text(encoding="utf-8")))
    assert (one.cpus, one.surveys, one.notes) == (2, 1, "An idle machine.")
    assert [line[1] for line in one.medians] == ["null_ns"]


def test_a_run_without_a_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="does not describe one machine"):
        reference_values.document_of(replace(SURVEY, fingerprints={}), "")


def test_the_sources_stand_under_the_table() -> None:
    section = section_of(SURVEY, KNOWN, [machine(PI, (1.0,))])
    assert section is not None
    (items,) = [block for block in section.blocks if isinstance(block, Items)]
    assert items.items[0].text.endswith("(2026-01-02, 1 survey): No other load.")
