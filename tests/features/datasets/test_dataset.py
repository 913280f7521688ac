"""Data sets: descriptions that the published schemas require, columns of the catalogue, sums."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.results.made import NULL_PLAN, make_run
from tests.store.factory import SPEC, samples

from nephoscope import command_line
from nephoscope.features.datasets import metadata
from nephoscope.store import StoredRun

PLAN = f"{NULL_PLAN}    factors: {{value: [1, 2]}}\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    store = tmp_path_factory.mktemp("store")
    run = make_run(store, PLAN, lambda setting, number, _: samples(100.0 + number), rounds=4)
    run.update(
        fingerprints={
            "local": {
                "cpu": {"model": "A CPU, 2 GHz"},
                "topology": {"allowed_cpus": [0, 1]},
                "identity": {"hostname": "secret-host"},
            }
        }
    )
    return run


def exported(run: StoredRun, folder: Path, *more: str, licence: str = "CC-BY-4.0") -> int:
    options = ["--license", licence, "--creator", "A. Author", "--url", "https://example.org/d"]
    store = str(run.path.parents[1])
    return command_line.main(
        ["export", run.id, "--store", store, "--dataset", str(folder), *options, *more]
    )


@pytest.fixture(scope="module")
def folder(run: StoredRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets") / "a-set"
    assert exported(run, folder, "--title", "A set", "--description", "What it is.") == 0
    return folder


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_croissant_has_what_version_1_0_requires(folder: Path) -> None:
    document = read(folder, metadata.CROISSANT)
    # docs.mlcommons.org/croissant/docs/croissant-spec.html, "Dataset-level Information", required
    for key in ("name", "description", "license", "url", "creator", "datePublished"):
        assert document[key], key
    assert document["@type"] == "sc:Dataset"
    assert document["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert document["@context"]["cr"] == "http://mlcommons.org/croissant/"
    assert document["license"] == "https://spdx.org/licenses/CC-BY-4.0.html"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", document["datePublished"])
    files = {file["@id"]: file for file in document["distribution"]}
    for name, file in files.items():
        assert file["@type"] == "cr:FileObject"
        content = (folder / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest(), name
        assert file["contentSize"] == f"{len(content)} B"
        assert file["encodingFormat"] == "text/csv"
    for records in document["recordSet"]:
        assert records["@type"] == "cr:RecordSet"
        columns = []
        for field in records["field"]:
            assert field["@type"] == "cr:Field"
            assert field["dataType"].startswith("sc:")
            assert field["@id"] == f"{records['@id']}/{field['name']}"
            source = field["source"]
            columns.append(source["extract"]["column"])
        assert columns == [*rows(folder, source["fileObject"]["@id"])[0]]


def test_the_data_package_has_the_columns_of_its_files_in_order(folder: Path) -> None:
    package = read(folder, metadata.DATA_PACKAGE)
    assert re.fullmatch(r"[-a-z0-9._/]+", package["name"])  # the profile's pattern
    assert package["licenses"] == [
        {"name": "CC-BY-4.0", "path": "https://spdx.org/licenses/CC-BY-4.0.html"}
    ]
    assert package["contributors"] == [{"title": "A. Author", "role": "author"}]
    convert = {"string": str, "integer": int, "number": float, "datetime": str}
    convert["boolean"] = {"True": True, "False": False}.__getitem__  # type: ignore[assignment]
    for resource in package["resources"]:
        content = (folder / resource["path"]).read_bytes()
        assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        assert resource["bytes"] == len(content)
        fields = {field["name"]: field for field in resource["schema"]["fields"]}
        own = rows(folder, resource["path"])
        assert own
        assert list(own[0]) == list(fields), resource["name"]
        for row in own:
            for name, text in row.items():
                assert not text or convert[fields[name]["type"]](text) is not None


def test_columns_have_unit_direction_and_text_of_their_declaration(folder: Path) -> None:
    package = read(folder, metadata.DATA_PACKAGE)
    trials = next(each for each in package["resources"] if each["name"] == "trials-null")
    fields = {field["name"]: field for field in trials["schema"]["fields"]}
    metric = SPEC.metric("null_per_s")
    assert fields["null_per_s"]["unit"] == metric.unit == "per_s"
    assert fields["null_per_s"]["direction"] == metric.better.value == "higher"
    assert fields["null_per_s"]["description"] == metric.doc
    assert fields["null_latency_p99_ns"]["unit"] == "ns"
    value = next(param for param in SPEC.params if param.id == "value")
    assert fields["factor_value"]["description"] == value.doc
    listed = {row["metric"]: row for row in rows(folder, "metrics.csv")}
    assert listed["null_ns"]["description"] == SPEC.metric("null_ns").doc
    croissant = (folder / metadata.CROISSANT).read_text()
    assert f"{metric.doc} Unit: per_s. Higher is better." in croissant


def test_values_are_those_of_the_trials(folder: Path) -> None:
    own = [row for row in rows(folder, "trials-null.csv") if not row["factor_op"]]
    assert len(own) == 4 * 2
    for row in own:
        first = 100.0 + int(row["round"])
        # The median of two values; 5 + 1 of 13 values are the lower one: the rest is one above.
        assert float(row["null_ns"]) == first + 1
        assert float(row["null_latency_p50_ns"]) == first + 1
        assert int(row["null_latency_ns_count"]) == 13
    # The warm-up is among the samples, and in no table of trials.
    statuses = {row["warmup"] for row in rows(folder, "samples.csv")}
    assert statuses == {"True", "False"}
    (machine,) = rows(folder, "runs.csv")
    assert (machine["cpu_model"], machine["cpus"]) == ("A CPU, 2 GHz", "2")
    assert not any("secret-host" in path.read_text() for path in folder.iterdir())


def test_sums_are_those_of_sha256sum(folder: Path) -> None:
    sums = dict(
        reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines()
    )
    assert sums.keys() == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_samples_may_be_parquet(run: StoredRun, tmp_path: Path) -> None:
    assert exported(run, tmp_path / "p", "--format", "parquet") == 0
    package = read(tmp_path / "p", metadata.DATA_PACKAGE)
    assert package["resources"][0]["mediatype"] == "application/vnd.apache.parquet"
    table = pq.read_table(tmp_path / "p" / "samples.parquet")
    assert table.schema.names == [
        field["name"] for field in package["resources"][0]["schema"]["fields"]
    ]


@pytest.mark.parametrize(
    ("folder_name", "more", "sentence"),
    [
        ("x", ["--license", ""], "A data set without a licence cannot be used by others."),
        ("x", ["--license", "own; ask"], "'own; ask' is no licence."),
        ("Two Words", [], "'Two Words' is no name of a data set."),
        ("x", ["--format", "jsonl"], "A data set has no format 'jsonl'."),
        ("x", ["--url", "example.org"], "'example.org' is no address."),
        ("there", [], "is there already."),
        ("no/x", [], "there is no directory"),
    ],
)
def test_refusals_are_sentences_and_leave_nothing(
    run: StoredRun,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    folder_name: str,
    more: list[str],
    sentence: str,
) -> None:
    (tmp_path / "there").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert exported(run, tmp_path / folder_name, *more) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert sorted(tmp_path.rglob("*")) == before


OWN = Path(__file__).resolve().parents[3] / "benchmarks" / "datasets"


@pytest.mark.parametrize(
    "own", [path for path in sorted(OWN.iterdir()) if path.is_dir()], ids=lambda path: path.name
)
def test_a_data_set_of_this_repository_is_small_and_as_it_was_written(own: Path) -> None:
    sums = dict(
        reversed(line.split("  ")) for line in (own / "SHA256SUMS").read_text().splitlines()
    )
    assert sums.keys() == {path.name for path in own.iterdir()} - {"SHA256SUMS"}
    for name, digest in sums.items():
        assert hashlib.sha256((own / name).read_bytes()).hexdigest() == digest, name
    assert sum(path.stat().st_size for path in own.iterdir()) <= 300_000
    for resource in read(own, metadata.DATA_PACKAGE)["resources"]:
        columns = [field["name"] for field in resource["schema"]["fields"]]
        if resource["format"] == "csv":
            assert list(rows(own, resource["path"])[0]) == columns
        else:
            assert pq.read_schema(own / resource["path"]).names == columns
