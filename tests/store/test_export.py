from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.model import Sample, TrialStatus
from nephoscope.store.export import FORMATS, write

from .factory import SPEC, exported, filled, new_run, record, samples

COLUMNS = [
    "run",
    "trial",
    "position",
    "round",
    "warmup",
    "status",
    "target",
    "benchmark",
    "metric",
    "unit",
    "better",
    "value",
    "count",
    "at_ns",
    "recorded",
]


def test_all_formats_hold_the_same_rows(tmp_path: Path) -> None:
    run, settings = filled(tmp_path, rounds=1)
    invalid = record(settings[0], 2, 90, status=TrialStatus.INVALID, reasons=("x",))
    run.append(invalid, samples(5.0), SPEC)
    from_csv = list(csv.DictReader(io.StringIO(exported([run], "csv").decode())))
    from_json = [json.loads(line) for line in exported([run], "jsonl").decode().splitlines()]
    from_parquet = pq.read_table(io.BytesIO(exported([run], "parquet"))).to_pylist()
    assert [row.pop("schema_version") for row in from_json] == [1] * len(from_json)
    assert from_json == from_parquet
    assert len(from_csv) == len(from_json) == 5 * len(samples(1.0))
    assert list(from_csv[0]) == [*COLUMNS, "factor_op", "factor_value"]
    for text, row in zip(from_csv, from_json, strict=True):
        assert float(text["value"]) == row["value"]
        assert text["factor_op"] == (row["factor_op"] or "")
    assert {row["status"] for row in from_json} == {"valid", "invalid"}
    assert sum(row["warmup"] for row in from_json) == 2 * len(samples(1.0))
    assert from_json[0]["factor_value"] == 1.0


def test_levels_of_several_types_become_texts(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    run.append(record(settings[0], 1, 0), [Sample("null_ns", 1.0, factors={"x": 1})], SPEC)
    run.append(record(settings[1], 1, 1), [Sample("null_ns", 1.0, factors={"x": "a"})], SPEC)
    run.append(record(settings[0], 2, 2), [Sample("null_ns", 1.0, factors={"x": True})], SPEC)
    rows = [json.loads(line) for line in exported([run], "jsonl").decode().splitlines()]
    assert [row["factor_x"] for row in rows] == ["1", "a", "true"]


def test_a_factor_may_be_called_like_a_column(tmp_path: Path) -> None:
    run, settings = new_run(tmp_path)
    run.append(record(settings[0], 1, 0), [Sample("null_ns", 1.0, factors={"run": "x"})], SPEC)
    (row,) = [json.loads(line) for line in exported([run], "jsonl").decode().splitlines()]
    assert (row["run"], row["factor_run"]) == (run.id, "x")


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_run_can_be_exported(tmp_path: Path, format: str) -> None:
    run, _ = new_run(tmp_path)
    content = exported([run], format)
    assert (content == b"") == (format == "jsonl")


def test_the_earlier_name_of_json_lines_is_accepted(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    assert exported([run], "json") == exported([run], "jsonl") != b""


def test_another_format_is_refused(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path)
    with pytest.raises(UsageError, match="no format 'xls'"):
        exported([run], "xls")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    out = tmp_path / "deep" / "out.csv"
    with pytest.raises(UsageError, match=r"there is no directory .*deep") as caught:
        write([run], "csv", out)
    assert caught.value.hint == f"Create it: `mkdir -p {out.parent}`."
    assert not out.parent.exists(), "an export makes no folders"
    out.parent.mkdir()
    write([run], "csv", out)
    assert out.read_bytes() == exported([run], "csv")
    with pytest.raises(StoreError):
        write([run], "csv", out / "below-a-file")
    assert [path.name for path in out.parent.iterdir()] == ["out.csv"]


def test_a_device_can_be_written(tmp_path: Path) -> None:
    run, _ = filled(tmp_path, rounds=1)
    write([run], "csv", Path("/dev/null"))
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("text", ["=1+1", "+a", "-a", "@a", "\ta"])
def test_no_cell_of_csv_is_a_formula(tmp_path: Path, text: str) -> None:
    run, settings = new_run(tmp_path)
    run.append(record(settings[0], 1, 0), [Sample("null_ns", -1.0, factors={"op": text})], SPEC)
    (row,) = csv.DictReader(io.StringIO(exported([run], "csv").decode()))
    assert row["factor_op"] == f"'{text}"
    assert row["value"] == "-1.0"
    assert json.loads(exported([run], "jsonl"))["factor_op"] == text
