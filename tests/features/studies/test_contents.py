"""contents.yaml of each study: everything that the study lists, and what answers it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.features.studies.listed import LISTED, listed

from nephoscope import command_line
from nephoscope.cli.kit import command as kit
from nephoscope.core.errors import NephoscopeError
from nephoscope.features.studies import catalogue, terminal
from nephoscope.features.studies.definition.contents import STATES, ContentsEntry, counts

STUDIES = catalogue.load_all()
NOT_PLANNED_MAX = 5
COMMANDS = {name for name, _ in kit.walk(command_line.program)}


def test_every_table_and_figure_of_a_study_is_listed_and_no_other() -> None:
    assert sorted(LISTED) == catalogue.names()
    for study in STUDIES:
        entries = [
            (entry.name, entry.title)
            for entry in study.contents
            if re.match(r"(Table|Figure) ", entry.name)
        ]
        assert entries == listed(study.name), study.name


def test_what_published_figures_and_comparisons_name_is_listed() -> None:
    for study in STUDIES:
        names = {entry.name for entry in study.contents}
        printed = {table.name for table in study.tables}
        drawn = {drawing.figure for part in study.definition.parts for drawing in part.figures}
        assert printed <= names, study.name
        for figure in drawn:
            kind, _, rest = figure.partition(" ")
            if kind.rstrip("s") in ("Figure", "Table"):
                numbers = re.findall(r"\d+(?:\.\d+)?", rest)
                assert {f"{kind.rstrip('s')} {number}" for number in numbers} <= names, figure


def test_every_part_answers_something() -> None:
    for study in STUDIES:
        named = {part for entry in study.contents for part in entry.parts}
        assert named == {part.name for part in study.definition.parts if not part.not_yet}, (
            study.name
        )


def test_every_command_exists() -> None:
    for study in STUDIES:
        for entry in study.contents:
            for words in map(str.split, entry.commands):
                assert {words[0], " ".join(words[:2])} & COMMANDS, (study.name, entry.name)


def test_few_are_not_planned_and_each_has_one_state() -> None:
    every = tuple(entry for study in STUDIES for entry in study.contents)
    by_state = counts(every)
    assert sum(by_state.values()) == len(every)
    assert by_state["not planned"] <= NOT_PLANNED_MAX


def test_an_entry_has_one_answer_or_one_reason() -> None:
    cases = {
        "runs here": {"parts": ("a",)},
        "runs with a requirement": {"commands": ("cloud census",), "needs": "a cloud"},
        "nothing to run": {"nothing_to_run": "a drawing"},
        "not built yet": {"not_built": "a reason"},
        "not planned": {"not_planned": "a reason"},
    }
    assert tuple(cases) == STATES
    for state, keys in cases.items():
        assert ContentsEntry(name="Table 1", title="t", **keys).state == state
    for keys in ({}, {"parts": ("a",), "not_built": "x"}, {"not_planned": "x", "needs": "y"}):
        with pytest.raises(ValueError, match="Table 1"):
            ContentsEntry(name="Table 1", title="t", **keys)


def test_an_unknown_part_and_a_double_entry_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "caldwell-2011"
    shutil.copytree(catalogue.folder() / "caldwell-2011", folder)
    file = folder / "contents.yaml"
    original = file.read_text(encoding="utf-8")
    file.write_text(original.replace("parts: [network]", "parts: [netwrk]"), encoding="utf-8")
    with pytest.raises(NephoscopeError, match=r"netwrk.*network|network.*netwrk"):
        catalogue.read(folder)
    line = "  - {name: Table 1, title: same, nothing_to_run: x}\n"
    file.write_text(f"{original}{line}{line}", encoding="utf-8")
    with pytest.raises(NephoscopeError, match="listed twice: Table 1, same"):
        catalogue.read(folder)


def test_the_text_has_every_entry_under_its_state() -> None:
    study = catalogue.load("delgado-2010")
    text = " ".join(terminal.published(study).split())
    assert "CONTENTS" in text
    for entry in study.contents:
        assert f"{entry.name}, {entry.title}: {entry.explanation}" in text
