"""`nephoscope study list|show|run`, on the real shelves and on one whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nephoscope import command_line
from nephoscope.features.studies import catalogue

STUDY = """
title: A study of one number
authors: [Ada One, Ben Two, Cy Three]
year: 1999
venue: Nowhere
question: Is it a hundred?
parts:
  - name: value
    title: one value, set
    section: section 1
    plan: plan.yaml
    scales: {small: {}, paper: {repeat.min: "9", repeat.max: "9"}}
    comparisons:
      - id: same
        claim: It is a hundred
        published: {table: Table 1, cell: [value, one]}
        measured: {benchmark: "null", metric: null_ns}
        ground: same mechanism
        unit: ns
        margin: 0.05
        margin_why: what the made noise is
        why: The same quantity.
      - id: other
        claim: It is a thousand
        published: {table: Table 1, cell: [value, two]}
        measured: {benchmark: "null", metric: null_ns}
        ground: same mechanism
        unit: ns
        margin: 0.05
        margin_why: what the made noise is
        guaranteed: true
        why: The same quantity.
      - id: drawn
        claim: The curve bends
        published: {table: Figure 1, order: [left, right]}
        ground: not comparable
        why: It is a picture.
  - name: later
    title: everything else
    section: section 2
    not_yet: it needs everything else
"""
TABLES = """
tables:
  - name: Table 1
    about: two numbers
    numbers: 2
    columns: [one, two]
    rows: [value]
missing:
  - {name: Figure 1, why: a picture}
"""
PUBLISHED = """table,row,column,value,unit,n,note
Table 1,value,one,100,ns,7,
Table 1,value,two,1000,ns,,found wrong
Section 1 text,prose,figure,3.50,ms,,
"""
PLAN = """
name: made-1999-value
benchmarks: [{benchmark: "null", params: {value: 100, noise_ratio: 0.01}}]
repeat: {min: 6, max: 6}
warmup: 0
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "studies" / "made-1999"
    folder.mkdir(parents=True)
    for name, text in (
        ("study.yaml", STUDY),
        ("tables.yaml", TABLES),
        ("published.csv", PUBLISHED),
        ("contents.yaml", "entries: [{name: Table 1, title: t, nothing_to_run: a drawing}]\n"),
        ("plan.yaml", PLAN),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(catalogue, "folder", lambda: folder.parent)
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))
    catalogue.load.cache_clear()
    yield folder
    catalogue.load.cache_clear()


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEPHOSCOPE_STORE", str(tmp_path / "store"))


def test_list_shows_the_five_with_their_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["study", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["studies"]
    assert {row["name"]: row["numbers"] for row in rows} == {
        "caldwell-2011": 72,
        "delgado-2010": 256,
        "khurshid-2009": 57,
        "nadeem-2015": 55,
        "zhuang-2012": 316,
    }
    assert all(row["last_run"] is None for row in rows)
    assert command_line.main(["study", "list"]) == 0
    text = capsys.readouterr().out
    assert "consistent, page, encryption" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", catalogue.names())
def test_show_prints_every_number_and_every_note(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["study", "show", name]) == 0
    text = capsys.readouterr().out
    flat = " ".join(text.split())
    for number in catalogue.load(name).numbers:
        assert number.text in text
        assert " ".join(number.note.split()) in flat
    assert "No run yet" in text
    assert max(map(len, text.splitlines())) <= 80


def test_show_as_json_is_the_whole_shelf(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["study", "show", "zhuang-2012", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["numbers"]) == 316
    assert document["comparisons"] == []
    assert document["numbers"][0]["text"] == "30"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "delgado-2011"], "did you mean 'delgado-2010'?"),
        (["run", "nadeem"], "did you mean 'nadeem-2015'?"),
        (["run", "delgado-2010", "--part", "simulations"], "did you mean 'simulation'?"),
        (["run", "delgado-2010", "--part", "sla"], "this part is computed, not run"),
        (["run", "delgado-2010", "--scale", "large"], "'small', 'paper'"),
    ],
)
def test_what_is_not_there_is_told_in_one_sentence(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["study", *words]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) == 1


def test_run_measures_compares_and_leaves_the_comparison_with_the_report(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["study", "run", "made-1999", "--seed", "5"]) == 0
    captured = capsys.readouterr()
    assert "reproduced in number: It is a hundred" in captured.out
    assert "contradicted: It is a thousand" in captured.out
    assert "not comparable: The curve bends" in captured.out
    assert "100.0 ns, no interval, n 7 (Table 1)" in captured.out
    assert "note on the published figure: found wrong" in captured.out
    (report,) = (tmp_path / "store" / "runs").glob("*-made-1999-value-*/report")
    written = {path.name for path in report.iterdir()}
    assert {"report.html", "study.html", "study.md", "study.json"} <= written
    assert str(report / "study.html") in captured.err
    assert "made-1999, value (1 of 1): one value, set" in captured.err
    assert "SUMMARY  1 part in" in captured.out
    whole = tmp_path / "store" / "studies" / "made-1999" / "study.html"
    assert whole.is_file()
    assert str(whole) in captured.err

    # Another look finds the run and says the same, as JSON too.
    assert command_line.main(["study", "show", "made-1999", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"] == [report.parent.name]
    marks = [one["mark"] for one in document["comparisons"]]
    assert marks == ["reproduced in number", "contradicted", "not comparable"]
    measured = document["comparisons"][0]["measured"]
    assert measured["n"] == 6
    assert measured["low"] <= measured["value"] <= measured["high"]
    assert command_line.main(["study", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["studies"]
    assert rows[0]["last_run"] == report.parent.name


def test_a_scale_is_another_run_with_more_repetitions(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["study", "run", "made-1999", "--scale", "paper", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["scale"] == "paper"
    assert "made-1999-value-paper" in document["runs"][0]
    assert document["comparisons"][0]["measured"]["n"] == 9


def test_a_run_that_fails_ends_with_3_and_compares_nothing(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = made / "plan.yaml"
    plan.write_text(PLAN.replace("noise_ratio: 0.01", "failure: error"), encoding="utf-8")
    assert command_line.main(["study", "run", "made-1999"]) == 3
    captured = capsys.readouterr()
    assert "reproduced" not in captured.out
    assert "null was told to fail" in captured.err


def test_a_damaged_shelf_is_told_with_file_and_line(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = made / "study.yaml"
    file.write_text(STUDY.replace("year: 1999", "yeer: 1999"), encoding="utf-8")
    assert command_line.main(["study", "show", "made-1999"]) == 2
    error = capsys.readouterr().err
    assert "study.yaml:4:1: " in error
    assert "did you mean 'year'?" in error
