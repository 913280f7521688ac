"""A capability is a folder and an entry of the table: shown by one that only this test knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import schemas
from tests.results.made import NULL_PLAN, make_run

from nephoscope.app import FEATURES
from nephoscope.core.model import Sample
from nephoscope.results.feature import load

FOLDER = Path(__file__).parent / "toy"
ENTRY = """
import sys
from nephoscope import app
from nephoscope.results import feature

app.FEATURES += (
    feature.Feature(
        "toy",
        record="toy.records:Extremes",
        analyse="toy.result:analyse",
        applies=lambda data: "null" in data.benchmarks,
        findings=(feature.Rules("toy.findings:RULES", 900),),
        sections=(feature.ReportSection("toy", "toy.section:build", 450),),
        commands=(feature.Command("toy", "Count toys.", "toy.command:toy"),),
    ),
)
"""
CLI = "from nephoscope import command_line\nsys.exit(command_line.main())\n"
SCHEMA = """
import json
from nephoscope.report import report_files
print(json.dumps(report_files.result_schema()))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    make_run(folder, NULL_PLAN, lambda _, number, __: [Sample("null_ns", float(number))])
    return folder


def python(program: str, *words: str) -> str:
    """What a program prints with the toy's entry in the feature."""
    path = os.pathsep.join([str(FOLDER.parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", ENTRY + program, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_record_finding_and_section_are_in_the_documents(store: Path) -> None:
    document = json.loads(python(CLI, "show", "--store", str(store), "--json"))
    assert document["toy"] == {"smallest": 1.0, "largest": 10.0, "span": 9.0}
    assert "toy" in [finding["id"] for finding in document["findings"]]
    page = Path(document["run"]["report"])
    for file in (page, page.with_suffix(".md")):
        assert "From 1 to 10" in file.read_text(encoding="utf-8")
    schema = json.loads(python(SCHEMA))
    schemas.validate(document, schema)
    assert "toy" in schema["required"]
    del document["toy"]["span"]
    with pytest.raises(schemas.ValidationError):
        schemas.validate(document, schema)


def test_its_command_is_on_the_command_line() -> None:
    assert "toy " in python(CLI, "--help")
    assert python(CLI, "toy") == "toy\n"


@pytest.mark.parametrize("entry", FEATURES, ids=lambda entry: entry.name)
def test_every_reference_of_the_table_exists(entry: object) -> None:
    references = [entry.record, entry.analyse]  # type: ignore[attr-defined]
    references += [one.reference for one in entry.commands]  # type: ignore[attr-defined]
    references += [one.build for one in entry.sections]  # type: ignore[attr-defined]
    references += [one.rules for one in entry.findings]  # type: ignore[attr-defined]
    assert all(load(reference) for reference in references)


def test_a_run_loads_the_capabilities_that_it_needs_only(store: Path) -> None:
    loaded = python(
        "from nephoscope import command_line\n"
        "code = command_line.main()\n"
        "print(*(name for name in sys.modules if name.startswith('nephoscope.')))",
        "show", "--store", str(store),
    ).splitlines()[-1].split()  # fmt: skip
    foreign = ("isolation", "simulation", "census", "scheduler", "experiments", "scenarios")
    parts = [name.split(".")[2:] for name in loaded]
    assert not [name for name in parts if name[1:] and name[0] in foreign]
