"""The registry of formats: each file has one, and what has none gets a sentence."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nephoscope.catalog.adapters import ADAPTERS, Output
from nephoscope.core import limits
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Shape
from nephoscope.store import Store
from nephoscope.store.imports import formats, tool_reports
from nephoscope.store.imports.importing import import_files, read_figures
from nephoscope.store.imports.rows import ImportedFigures
from nephoscope.store.imports.source import Source

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def read(content: str | bytes, name: str = "file") -> tuple[str, ImportedFigures]:
    """The prefix of a content's format, and its figures."""
    raw = content.encode() if isinstance(content, str) else content
    source = Source(Path(name), raw, 0.0)
    format_ = formats.recognise(source)
    return format_.prefix, read_figures(format_, source)


def values(figures: ImportedFigures) -> dict[str, float]:
    """Metric -> value in our unit; of several rows the last."""
    return {row.metric: row.figure for row in figures.rows}


def reports() -> list[Any]:
    """The report of each adapter that is imported, as its tool printed it."""
    found = []
    for name in tool_reports.MARKS:
        captures = [
            json.loads(path.read_text())["tool"]
            for path in sorted((GOLDEN / name).glob("*.json"))
            if path.name != "version.json"
        ]
        good = [one for one in captures if one["exit"] == 0]
        found.append(pytest.param(name, good, id=name))
    return found


@pytest.mark.parametrize(("name", "captures"), reports())
def test_a_report_of_a_tool_is_what_its_adapter_reads(
    name: str, captures: list[Mapping[str, Any]]
) -> None:
    adapter, compared = ADAPTERS[name], 0
    metrics = {metric.id: metric for metric in adapter.spec.metrics}
    for capture in captures:
        text = (
            capture["stdout"]
            if tool_reports.is_report(name, capture["stdout"])
            else capture["stderr"]
        )
        source = Source(Path("report"), text.encode(), 0.0)
        try:
            samples = adapter.parse(Output(capture["stdout"], capture["stderr"]))
        except Exception:
            continue
        recognised = [one.prefix for one in formats.FORMATS if one.recognise(source)]
        assert recognised == [name]
        figures = read_figures(formats.recognise(source), source)
        scalars = [one for one in samples if metrics[one.metric].shape is Shape.SCALAR]
        assert [(row.metric, row.figure) for row in figures.rows] == [
            (one.metric, one.value) for one in scalars
        ]
        assert {row.unit.better for row in figures.rows} <= {one.better for one in metrics.values()}
        compared += 1
    assert compared


@pytest.mark.parametrize("path", sorted((GOLDEN / "imports").glob("*.*")), ids=lambda p: p.name)
def test_each_golden_file_has_the_marks_of_one_format(path: Path) -> None:
    if path.suffix == ".md":
        return
    source = Source(path, path.read_bytes(), 0.0)
    assert len([one for one in formats.FORMATS if one.recognise(source)]) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("command,mean,stddev,median,user,system,min,max\nls,1,1,1,1,1,1,1\n", "--export-json"),
        ("| Command | Mean [s] |\n|:---|---:|\n", "--export-json"),
        ("[ ID] Interval           Transfer     Bitrate\n", "run iperf3 with --json"),
        ("job: (groupid=0)\n  read: IOPS=10.7k, BW=42MiB/s\n", "--output-format=json"),
        ("     http_req_duration..........: avg=1ms\n", "--summary-export"),
        ("metric_name,timestamp,metric_value\n", "there are no figures to import"),
        ('{"metadata": {}, "version": 4, "x_values": [0], "results": {"a": [1]}}', "flent"),
        ('{"results": [1, 2]}', "a JSON object with the keys 'results'"),
        ('{"results": {"a": 1}}', "a JSON object with the keys 'results'"),
        ('{"a": {"b": [1, 2', "the JSON ends in the middle, on line 1"),
        ('{"a": 1,, "b": 2}\n', "line 1: this is no JSON"),
        ("[1, 2]", "JSON without any object"),
        ("PK\x03\x04", "ZIP archive"),
        ("Label,elapsed,success\na,1,true\n", "a table with the columns Label, elapsed, success"),
        ("[OVERALL], RunTime(ms), 10\n[READ], Operations, 5\n", "it is text, and no report"),
        ("hello", "it is text, and no report of a tool that is known: 7z, ab,"),
        (b"\x80\x81abc", "no UTF-8 text"),
        (" \n", "it is empty"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_imported_gets_a_sentence(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError) as caught:
        import_files([file], Store(tmp_path / "store"))
    assert str(caught.value).startswith(f"{file}: ")
    assert words in str(caught.value)
    assert "hyperfine: " not in str(caught.value)
    assert Store(tmp_path / "store").ids() == []


HYPERFINE = '{"results": [{"command": "é", "times": [1.0, 2.0]}]}'


@pytest.mark.parametrize(
    "content",
    [
        HYPERFINE,
        "\ufeff" + HYPERFINE,
        HYPERFINE.encode("utf-16"),
        HYPERFINE.encode("utf-16-le"),
        "warning: something\n[note] else\n" + HYPERFINE + "\ndone\n",
        HYPERFINE.replace(" ", "\r\n"),
    ],
)
def test_encodings_and_lines_around_the_json(content: str | bytes) -> None:
    prefix, figures = read(content)
    assert (prefix, [row.figure for row in figures.rows]) == ("hyperfine", [1e9, 2e9])


def test_compressed_files_are_read_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(HYPERFINE.encode()))
    assert import_files([tmp_path / "a.json.gz"], Store(tmp_path / "store")).id
    monkeypatch.setattr(limits, "IMPORT_BYTES", 1 << 20)
    whole = gzip.compress(bytes(3 << 20))
    for name, content, words in (
        ("bomb.gz", whole, "larger than 256 MiB when decompressed"),
        ("half.gz", gzip.compress(b"x" * 1000)[:-9], "end in the middle"),
        ("bad.gz", b"\x1f\x8b\x08\x00xxxxxxxxxxxxx", "are damaged"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=words):
            import_files([tmp_path / name], Store(tmp_path / "store"))


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 500_000,
        " " * 500_000,
        '{\n "transactions":\n' * 10_000,
        "PING " + "(" * 500_000,
        "- benchmark " + "1" * 500_000,
        "A (" * 150_000,
        "A_\n(" * 30_000,
        "BYTE UNIX Benchmarks\nBenchmark Run: \nx" + " " * 300_000,
        "Running 1s test @ x\n Thread Stats\n1 requests in \nRequests/sec: 1\n 1% "
        + "1" * 300_000
        + " x",
        "sysbench 1.0\nNumber of threads: 1\n" * 20_000,
        "[ 1, " * 100_000,
    ],
)
def test_recognition_and_readers_are_bounded_in_time(text: str) -> None:
    began = time.process_time()
    with suppress(ValueError):
        read(text)
    assert time.process_time() - began < 10


def test_the_docs_have_the_table_of_formats() -> None:
    guide = Path(__file__).resolve().parents[3] / "docs/how-to/import-results.md"
    assert formats.table() in guide.read_text()
