"""A feature is a folder and its record: shown by a package that only these tests install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests import schemas
from tests.results.made import NULL_PLAN, make_run

from nephoscope.app import FEATURES
from nephoscope.core.model import Sample
from nephoscope.results.feature import Feature, load

FOLDER = Path(__file__).parent / "installed"
"""A folder of installed packages, of which one adds a feature and an adapter."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    make_run(folder, NULL_PLAN, lambda _, number, __: [Sample("null_ns", float(number))])
    return folder


def nephoscope(*words: str, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    """Runs the command line where the packages of a folder are installed."""
    return subprocess.run(
        [sys.executable, "-m", "nephoscope", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "100"},
    )


def printed(*words: str) -> str:
    done = nephoscope(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_record_finding_and_section_are_in_the_documents(store: Path) -> None:
    document = json.loads(printed("show", "--store", str(store), "--json"))
    assert document["toy"] == {"smallest": 1.0, "largest": 10.0, "span": 9.0}
    assert "toy" in [finding["id"] for finding in document["findings"]]
    page = Path(document["run"]["report"])
    for file in (page, page.with_suffix(".md")):
        assert "From 1 to 10" in file.read_text(encoding="utf-8")
    schema = json.loads(printed("schema", "result"))
    schemas.validate(document, schema)
    assert "toy" in schema["required"]
    del document["toy"]["span"]
    with pytest.raises(schemas.ValidationError):
        schemas.validate(document, schema)


def test_its_command_is_on_the_command_line_and_its_document_among_the_schemas() -> None:
    assert re.search(r"^  toy +Print the name of a toy.$", printed("help", "tools"), re.MULTILINE)
    assert printed("toy", "bear") == "bear\n"
    schema = json.loads(printed("schema", "commands"))
    document = json.loads(printed("toy", "bear", "--json"))
    schemas.validate(document, {**schema, "$ref": "#/$defs/greeting"})
    assert document["toy"] == "bear"


def test_its_adapter_is_a_benchmark(tmp_path: Path) -> None:
    assert "toy.sleep" in printed("list")
    words = ("toy.sleep", "--set", "milliseconds=2", "--repetitions", "2", "--json")
    document = json.loads(printed("bench", *words, "--store", str(tmp_path)))
    (line,) = (one for one in document["metrics"] if one["metric"] == "slept_ns")
    assert line["estimate"]["value"] >= 2e6
    assert document["toy"]["smallest"] >= 2e6


def installed(folder: Path, package: str, points: str, code: str) -> None:
    """Installs a package of one module, as pip would."""
    (folder / f"{package}.py").write_text(code)
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)


FEATURE = "from nephoscope.results.feature import Feature\n"
BROKEN = {
    "no_module": ("import nothing_of_this_name\n", "No module named 'nothing_of_this_name'"),
    "no_object": ("", "has no attribute 'IT'"),
    "no_feature": ("IT = 5\n", "it is no Feature"),
    "name_taken": (f"{FEATURE}IT = Feature('isolation')\n", "the name 'isolation' is taken"),
    "command_taken": (
        f"{FEATURE}IT = Feature('new', commands=('command_taken:survey',))\ndef survey(): pass\n",
        "the name 'command survey' is taken",
    ),
    "no_record": (
        f"{FEATURE}IT = Feature('more', record='no_record:None_', analyse='no_record:run')\n",
        "has no attribute 'None_'",
    ),
}


def test_a_package_that_cannot_be_used_is_named_in_one_sentence_and_left_out(
    tmp_path: Path,
) -> None:
    for package, (code, _) in BROKEN.items():
        points = f"[nephoscope.features]\n{package} = {package}:IT\n"
        installed(tmp_path, package, points, code)
    installed(
        tmp_path, "adapter_taken", "[nephoscope.adapters]\nx = adapter_taken:IT\n", "IT = 5\n"
    )
    done = nephoscope("--help", folder=tmp_path)
    assert done.returncode == 0
    assert "survey " in done.stdout
    sentences = {line.split("'")[1]: line for line in done.stderr.splitlines()}
    assert sentences.keys() == BROKEN.keys()
    assert len(done.stderr.splitlines()) == len(BROKEN)
    for package, (_, reason) in BROKEN.items():
        assert reason in sentences[package]
        assert f"of the package {package} is left out" in sentences[package]
    listed = nephoscope("list", "null", folder=tmp_path)
    assert listed.returncode == 0
    (sentence,) = listed.stderr.splitlines()
    assert "it is no Adapter" in sentence


@pytest.mark.parametrize("entry", FEATURES, ids=lambda entry: entry.name)
def test_every_reference_of_a_feature_exists(entry: Feature) -> None:
    assert all(load(reference) for reference in entry.references)


def test_a_run_loads_the_features_that_it_needs_only(store: Path) -> None:
    program = (
        "from nephoscope import command_line\n"
        f"command_line.main(['show', '--store', {str(store)!r}])\n"
        "import sys; print(*(name for name in sys.modules if name.startswith('nephoscope.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    parts = [name.split(".")[1:] for name in done.stdout.splitlines()[-1].split()]
    assert ["features", "machine", "result"] in parts
    foreign = ("isolation", "simulation", "census", "scheduler", "experiments")
    loaded = [name for name in parts if name[0] == "features" and name[1:2] and name[1] in foreign]
    assert not [name for name in loaded if name[2:] not in ([], ["feature"])]
