"""PerfKit Benchmarker's samples; tests/golden/pkb says how the file was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.model import Better
from nephoscope.store import Store, query
from nephoscope.store.imports.importing import import_files
from nephoscope.store.imports.units import unit_of

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "pkb" / "perfkitbenchmarker_results.json"
LINE: dict[str, Any] = {
    "metric": "Throughput",
    "value": 5.0,
    "unit": "Mbits/sec",
    "timestamp": 1760000001.5,
    "test": "iperf",
    "run_uri": "abcd",
    "sample_uri": "x",
    "labels": "|cloud:GCP|,|threads:4|",
}


def write(path: Path, *lines: Any) -> Path:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path.write_text(text)
    return path


def test_the_golden_file_becomes_a_finished_run(tmp_path: Path) -> None:
    run = import_files([GOLDEN], Store(tmp_path))
    assert (run.state, run.manifest.plan_name) == ("finished", "import-pkb")
    assert Store(tmp_path).open("latest").id == run.id
    lines = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    records = run.records()
    assert len(records) == len(lines) == 110
    assert {record.key.round for record in records} == set(range(1, 11))
    rows = query.trial_medians(run)
    assert len(rows) == 110
    fast = [
        r for r in rows if r.metric == "Throughput" and '"sending_thread_count":"4"' in r.factors
    ]
    assert [row.round for row in fast] == list(range(1, 11))
    assert {(row.benchmark, row.unit, row.better) for row in fast} == {
        ("pkb.iperf", "bits_per_s", "higher")
    }
    wanted = [
        line["value"] * 1e6
        for line in lines
        if line["metric"] == "Throughput" and "|sending_thread_count:4|" in line["labels"]
    ]
    assert [row.value for row in fast] == wanted
    assert {row.unit for row in rows if row.metric.endswith("Latency")} == {"ns"}
    assert {row.better for row in rows if row.metric == "Coremark Score"} == {"none"}
    # What only names the run is no factor: else nothing would be a repetition of anything.
    assert not any(word in rows[0].factors for word in ("hostname", "run_uri", "version"))


def test_repetitions_are_in_the_order_of_their_time(tmp_path: Path) -> None:
    late, early = {**LINE, "value": 2.0, "timestamp": 20}, {**LINE, "value": 1.0, "timestamp": 10}
    run = import_files([write(tmp_path / "f", late, "", early)], Store(tmp_path))
    assert [row.value for row in query.trial_medians(run)] == [1e6, 2e6]
    assert run.manifest.started_at == 10


BAD = [
    ({"value": None}, "'value' is missing; a missing value is not a zero"),
    ({"value": "5"}, "'value' is no number"),
    ({"value": True}, "'value' is no number"),
    ({"metric": None}, "'metric' is missing"),
    ({"test": ""}, "'test' is missing"),
    ({"timestamp": None}, "'timestamp' is missing"),
    ({"labels": 5}, "'labels' is no text"),
    ({"labels": "cloud=GCP"}, "'labels' is not of the form"),
]


def left_out(path: Path, store: Path) -> tuple[list[float], str]:
    """The values that are imported, and the sentence on what was left out."""
    run = import_files([path], Store(store))
    values = [row.value for row in query.trial_medians(run)]
    return values, next((text for text in run.manifest.refused if "left out: " in text), "")


@pytest.mark.parametrize(("change", "words"), BAD)
def test_a_bad_line_is_left_out_with_its_number(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    path = write(tmp_path / "samples.json", LINE, {**LINE, **change})
    values, sentence = left_out(path, tmp_path / "store")
    assert values == [5e6]
    assert sentence.startswith(f"1 record was left out: Line 2: {words}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "1 lines: this is no JSON"),
        ("[]", "Line 2: this is no JSON object"),
        ('{"value": NaN}', "Line 2: 'test' is missing or no text"),
        ('{"value": 1', "Line 2: the JSON ends in the middle"),
        ('{"a": "\\ud800"}', "Line 2: it has half of a surrogate pair"),
    ],
)
def test_what_is_no_sample_is_left_out(tmp_path: Path, text: str, words: str) -> None:
    values, sentence = left_out(write(tmp_path / "f", LINE, text), tmp_path)
    assert values == [5e6]
    assert words in sentence


def test_a_file_without_any_good_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"f: nothing in it can be used.*'value' is no number: nan"
    ):
        import_files([write(tmp_path / "f", {**LINE, "value": float("nan")})], Store(tmp_path))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is empty"):
        import_files([write(tmp_path / "empty")], Store(tmp_path))
    with pytest.raises(StoreError, match="cannot be read"):
        import_files([tmp_path / "none"], Store(tmp_path))


def test_samples_count_once_however_often_they_come(tmp_path: Path) -> None:
    twin, other = {**LINE, "owner": "later"}, {**LINE, "sample_uri": "y", "value": 6.0}
    values, sentence = left_out(write(tmp_path / "f", LINE, twin, other), tmp_path / "store")
    assert sorted(values) == [5e6, 6e6]
    assert sentence == ""
    changed = {**LINE, "value": 7.0}
    values, sentence = left_out(write(tmp_path / "g", LINE, changed), tmp_path / "store")
    assert values == [5e6]
    assert "Line 2: Throughput is there twice, with 5 and 7" in sentence


@pytest.mark.parametrize("text", [json.dumps([LINE, {**LINE, "sample_uri": "y"}], indent=1), ""])
def test_an_array_and_pretty_objects_are_samples_too(tmp_path: Path, text: str) -> None:
    other = {**LINE, "sample_uri": "y"}
    text = text or "\n".join(json.dumps(one, indent=2) for one in (LINE, other))
    values, _ = left_out(write(tmp_path / "f", text), tmp_path / "store")
    assert values == [5e6, 5e6]


@pytest.mark.parametrize(
    ("foreign", "unit", "factor", "better"),
    [
        ("seconds", "ns", 1e9, "lower"),
        ("ms", "ns", 1e6, "lower"),
        ("us", "ns", 1e3, "lower"),
        ("minutes", "ns", 60e9, "lower"),
        ("Mbps", "bits_per_s", 1e6, "higher"),
        ("Gbits/sec", "bits_per_s", 1e9, "higher"),
        ("Mb/s", "bits_per_s", 1e6, "higher"),
        ("MB/s", "bytes_per_s", 1e6, "higher"),
        ("MBps", "bytes_per_s", 1e6, "higher"),
        ("KB/s", "bytes_per_s", 1e3, "higher"),
        ("MiB/s", "bytes_per_s", 1024.0**2, "higher"),
        ("KiB/s", "bytes_per_s", 1024.0, "higher"),
        ("GB", "bytes", 1e9, "none"),
        ("ops/sec", "per_s", 1.0, "higher"),
        ("%", "ratio", 0.01, "none"),
        ("", "none", 1.0, "none"),
        ("score", "score", 1.0, "none"),
        ("Mops", "Mops", 1.0, "higher"),
    ],
)
def test_units(foreign: str, unit: str, factor: float, better: str) -> None:
    found = unit_of(foreign)
    assert (found.unit, found.factor, found.better) == (unit, factor, Better(better))


@given(st.text(max_size=20))
def test_any_unit_is_kept_as_text(text: str) -> None:
    assert unit_of(text).unit
