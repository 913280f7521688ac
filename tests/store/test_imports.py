"""Result files of other tools; tests/golden/imports says how each was made."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope import catalog
from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.model import Shape
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.store import Store, StoredRun, query
from nephoscope.store.imports import formats
from nephoscope.store.imports.importing import import_files, read_figures
from nephoscope.store.imports.source import Source

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "imports"


COMPOSITE = (GOLDEN / "phoronix-composite.xml").read_text()
IPERF3 = json.dumps(
    {
        "start": {"timestamp": {"timesecs": 1}, "test_start": {}},
        "end": {"sum_sent": {"bits_per_second": 1}},
    }
)


def imported(tmp_path: Path, *names: str, **conditions: str) -> StoredRun:
    paths = [GOLDEN / name for name in names]
    return import_files(paths, Store(tmp_path / "store"), conditions)


def figures(run: StoredRun) -> dict[str, list[float]]:
    """Metric -> its values, in the order of their rounds."""
    rows = sorted(query.trial_medians(run), key=lambda row: row.round)
    names = dict.fromkeys(row.metric for row in rows)
    return {name: [row.value for row in rows if row.metric == name] for name in names}


def directions(run: StoredRun) -> dict[str, tuple[str, str]]:
    return {row.metric: (row.unit, row.better) for row in query.trial_medians(run)}


def test_executions_of_hyperfine_are_repetitions(tmp_path: Path) -> None:
    run = imported(tmp_path, "hyperfine.json")
    document = json.loads((GOLDEN / "hyperfine.json").read_text())
    wanted = [time * 1e9 for result in document["results"] for time in result["times"]]
    assert sorted(figures(run)["wall_ns"]) == pytest.approx(sorted(wanted))
    assert directions(run)["wall_ns"] == ("ns", "lower")
    missing = " ".join(run.manifest.refused)
    assert "one command after the other" in missing
    assert "No time stamp" in missing
    assert "measured once" not in missing


def test_files_of_several_runs_are_repetitions(tmp_path: Path) -> None:
    one = imported(tmp_path, "iperf3.json")
    assert "measured once" in " ".join(one.manifest.refused)
    run = imported(tmp_path, "iperf3.json", "iperf3-2.json")
    rates = figures(run)["goodput_bits_per_s"]
    ends = [
        json.loads((GOLDEN / name).read_text())["end"] for name in ("iperf3.json", "iperf3-2.json")
    ]
    assert sorted(rates) == sorted(end["sum_received"]["bits_per_second"] for end in ends)
    assert "measured once" not in " ".join(run.manifest.refused)
    assert run.manifest.plan_name == "import-iperf3"


def test_fio_has_rates_and_percentiles_of_each_direction(tmp_path: Path) -> None:
    run = imported(tmp_path, "fio.json")
    (job,) = json.loads((GOLDEN / "fio.json").read_text())["jobs"]
    values = figures(run)
    assert values["read_operations_per_s"] == [job["read"]["iops"]]
    assert values["write_bytes_per_s"] == [job["write"]["bw_bytes"]]
    assert values["read_clat_p99_ns"] == [job["read"]["clat_ns"]["percentile"]["99.000000"]]
    assert directions(run)["read_clat_p99_ns"] == ("ns", "lower")
    assert not any(name.startswith("trim") for name in values)


@pytest.mark.parametrize("name", ["k6-export.json", "k6-handle.json"])
def test_both_summaries_of_k6_give_the_same(tmp_path: Path, name: str) -> None:
    run = imported(tmp_path, name)
    values, kinds = figures(run), directions(run)
    assert values["http_req_duration.p(95)"] == [pytest.approx(5.6e6)]
    assert kinds["http_req_duration.p(95)"] == ("ns", "lower")
    assert values["http_reqs.rate"] == [pytest.approx(240.5)]
    assert kinds["http_reqs.rate"] == ("per_s", "higher")
    assert kinds["data_received.rate"] == ("bytes_per_s", "higher")
    declared = run.metrics_of_shape(Shape.SCALAR).items()
    shares = {name.split(".")[0] for (_, name), metric in declared if metric.share}
    assert "http_req_failed" in shares
    assert shares <= {"http_req_failed", "checks"}


def test_rates_of_k6_are_shares_also_with_tags(tmp_path: Path) -> None:
    file = tmp_path / "k6.json"
    counted = {"passes": 1, "fails": 99, "value": 0.01}
    names = ("http_req_failed{a:b}", "checks{a:b}", "browser_http_req_failed", "own")
    durations = {"http_req_duration{a:b}": {"avg": 2}, "browser_web_vital_cls": {"avg": 0.1}}
    file.write_text(json.dumps({"metrics": {**dict.fromkeys(names, counted), **durations}}))
    run = import_files([file], Store(tmp_path / "store"))
    values, kinds = figures(run), directions(run)
    for name in names:
        assert values[f"{name}.value"] == [0.01]
        assert kinds[f"{name}.value"] == ("ratio", "lower" if "failed" in name else "none")
    assert values["http_req_duration{a:b}.avg"] == [2e6]
    assert kinds["browser_web_vital_cls.avg"] == ("none", "none")


def test_lines_of_sysbench_may_end_as_on_windows(tmp_path: Path) -> None:
    file = tmp_path / "sysbench.txt"
    file.write_bytes((GOLDEN / "sysbench.txt").read_bytes().replace(b"\n", b"\r\n"))
    assert figures(import_files([file], Store(tmp_path / "store"))) == figures(
        imported(tmp_path, "sysbench.txt")
    )


def test_reports_of_sysbench_in_one_file_are_repetitions(tmp_path: Path) -> None:
    run = imported(tmp_path, "sysbench.txt")
    text = (GOLDEN / "sysbench.txt").read_text()
    wanted = [
        float(line.split(":")[1]) for line in text.splitlines() if "events per second" in line
    ]
    assert len(wanted) > 1
    assert figures(run)["events_per_s"] == wanted
    assert {row.benchmark for row in query.trial_medians(run)} == {"sysbench.cpu"}


def test_runs_and_systems_of_the_phoronix_test_suite(tmp_path: Path) -> None:
    run = imported(tmp_path, "phoronix-composite.xml")
    kinds = directions(run)
    assert kinds["MIPS"] == ("MIPS", "higher")
    assert kinds["Seconds"] == ("ns", "lower")
    assert len(figures(run)["MIPS"]) == 6
    assert figures(imported(tmp_path, "phoronix-composite.xml", system="small"))["MIPS"] == [
        *(8034, 7998, 8101)
    ]
    missing = " ".join(run.manifest.refused)
    assert "1 graphs" in missing
    assert "no time zone" in missing


def scores(path: Path, rows: list[tuple[Any, ...]]) -> Path:
    """Writes a database in the layout of Spare Cores."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE benchmark (benchmark_id, framework, unit, higher_is_better)")
        database.execute(
            "CREATE TABLE benchmark_score (vendor_id, server_id, benchmark_id, config, score,"
            " status, observed_at)"
        )
        database.executemany(
            "INSERT INTO benchmark VALUES (?, ?, ?, ?)",
            [("bogomips", "bogomips", "MIPS", 1), ("boot", "boot", "seconds", 0)],
        )
        database.executemany("INSERT INTO benchmark_score VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return path


SCORES = [
    ("aws", "m6i", "bogomips", '{"cores": 2}', 5800.5, "ACTIVE", "2026-01-02 03:04:05"),
    ("gcp", "n2", "bogomips", '{"cores": 2}', 5600.0, "ACTIVE", "2026-01-02 03:04:05"),
    ("gcp", "n2", "boot", "{}", 4.5, "ACTIVE", "2026-01-02 03:04:05"),
    ("gcp", "old", "boot", "{}", 9.5, "INACTIVE", "2026-01-02 03:04:05"),
    ("gcp", "none", "boot", "{}", None, "ACTIVE", "2026-01-02 03:04:05"),
]


def test_scores_of_spare_cores(tmp_path: Path) -> None:
    path = scores(tmp_path / "sc.db", SCORES)
    run = import_files([path], Store(tmp_path / "store"))
    assert figures(run) == {"bogomips": [5800.5, 5600.0], "boot": [4.5e9]}
    assert directions(run) == {"bogomips": ("MIPS", "higher"), "boot": ("ns", "lower")}
    only = import_files([path], Store(tmp_path / "store"), {"vendor": "aws"})
    assert figures(only) == {"bogomips": [5800.5]}
    unknown = scores(tmp_path / "unknown.db", [(*SCORES[0][:2], "unknown", *SCORES[0][3:])])
    with closing(sqlite3.connect(unknown)) as database, database:
        database.execute("INSERT INTO benchmark VALUES ('unknown', 'x', 'points', NULL)")
    assert directions(import_files([unknown], Store(tmp_path / "store"))) == {
        "unknown": ("points", "none")
    }
    with pytest.raises(UsageError, match=r"no figures to import\. Check --where"):
        import_files([path], Store(tmp_path / "store"), {"vendor": "nobody"})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<other/>", "its root is <other>"),
        ("<broken", "it is no XML"),
        ("<!DOCTYPE x><PhoronixTestSuite/>", "document type declaration"),
        ("<PhoronixTestSuite/>", "no figures to import"),
        ('{"start": {}, "end": {}, "error": "unable to connect"}', "unable to connect"),
        ('{"start": {"version": "3"}, "end": {}}', "'test_start' is missing"),
        ('{"start": {}, "end": {}}', "a JSON object with the keys 'start', 'end', and no report"),
        ('{"fio version": "3", "jobs": [{"error": 5}]}', "ended with error 5"),
        ('{"results": [{"command": "x", "times": [1], "exit_codes": [3]}]}', "exit code 3"),
        ('{"results": [{"command": "x", "times": [null]}]}', "missing value is not a zero"),
        ('{"results": [{"times": [1]}]}', "'command' is missing"),
        ('{"results": [{"command": "x", "times": [NaN]}]}', "'wall_ns' is no number: nan"),
        (
            '{"results": [{"command": "x", "times": [1%s]}]}' % ("0" * 400),
            "'wall_ns' is no number: 1",
        ),
        ('{"results": [{"command": "x", "times": [1e99]}]}', "is too large (at most 1e+60): 1e+99"),
        ('{"results": [{"command": "x", "times": [-1]}]}', "of 'x': wall_ns is below 0: -1"),
        (IPERF3.replace('"timesecs": 1', '"timesecs": -1', 1), "no time of the calendar"),
        (IPERF3.replace('"timesecs": 1', '"timesecs": 1e15', 1), "no time of the calendar"),
        ('{"metrics": {"x": {"avg": "a"}}}', "'x.avg' is no number"),
        ('{"type": "Metric", "data": {}}\n', "single points"),
        ("sysbench 1.0.20 (using)\nCPU speed:\n", "Report 1: it was cut off"),
        ("sysbench 1.0.20 (using)\nFATAL: no test\n", "FATAL: no test"),
        ("SQLite format 3\0" + "x" * 200, "its scores cannot be read"),
    ],
)
def test_bad_files_are_refused_with_a_sentence(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        import_files([path], Store(tmp_path / "store"))
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert Store(tmp_path / "store").ids() == []


def left_out(run: StoredRun) -> str:
    """The sentence on what was left out; '' for nothing."""
    return next((text for text in run.manifest.refused if "left out: " in text), "")


def test_a_run_of_the_phoronix_test_suite_that_is_no_number_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "composite.xml"
    file.write_text(COMPOSITE.replace("8034:", "nan:"))
    run = import_files([file], Store(tmp_path / "store"))
    assert len(figures(run)["MIPS"]) == 5
    assert "'MIPS' is no number: nan" in left_out(run)


def test_the_second_unit_of_a_metric_is_left_out(tmp_path: Path) -> None:
    line = {"test": "t", "metric": "m", "value": 1, "timestamp": 1}
    file = tmp_path / "samples.json"
    file.write_text("".join(json.dumps({**line, "unit": unit}) + "\n" for unit in ("ms", "points")))
    run = import_files([file], Store(tmp_path / "store"))
    assert figures(run) == {"m": [1e6]}
    assert "Line 2: m is in points, and earlier in ns" in left_out(run)


def test_a_percentile_of_fio_that_is_no_number_is_named(tmp_path: Path) -> None:
    file = tmp_path / "fio.json"
    file.write_text((GOLDEN / "fio.json").read_text().replace('"99.000000"', '"most"'))
    run = import_files([file], Store(tmp_path / "store"))
    assert "read: the percentile 'most' is no number" in left_out(run)
    assert "read_clat_p99_ns" not in figures(run)
    assert "read_clat_p50_ns" in figures(run)


def test_files_of_two_tools_are_two_imports(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="several tools: fio, iperf3"):
        imported(tmp_path, "fio.json", "iperf3.json")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.*")), ids=lambda path: path.name)
@given(data=st.data())
def test_damage_is_a_sentence(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content)))
    piece = data.draw(st.binary(max_size=8))
    stop = data.draw(st.integers(start, min(len(content), start + 20)))
    damaged = content[:start] + piece + content[stop:]
    source = Source(path, damaged, 0.0)
    with suppress(ValueError, StoreError):
        read_figures(formats.recognise(source), source)


@pytest.mark.slow
def test_many_metrics_are_few_files_and_their_declarations_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {"test": f"t{n}", "metric": "m", "value": n + 1.5, "unit": "s", "timestamp": 1}
        for n in range(400)
    ]
    file = tmp_path / "samples.json"
    file.write_text("".join(json.dumps({**line, "labels": ""}) + "\n" for line in lines))
    run = import_files([file], Store(tmp_path / "store"))
    assert sorted(path.name for path in run.trials_path.iterdir()) == [
        "records.jsonl",
        "samples.parquet",
    ]
    parsed: list[object] = []
    real = catalog.parse
    monkeypatch.setattr(catalog, "parse", lambda values: parsed.append(values) or real(values))
    result = analyse_run.build(run)
    paths = report_files.write(result, run.report_path)
    assert len(result.metrics) == 400
    assert len(parsed) <= 2
    page = paths.html.read_text()
    assert "Charts of 40 of 400 benchmarks" in page
    assert "300 more metrics" in page
    assert all(f"t{n}" in page for n in (0, 199, 399))
