"""From the command to the figures: run, bench, show, export, compare, import."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from tests import schemas
from tests.e2e.conftest import Run

from nephoscope.core.documents import schema_of
from nephoscope.features.comparison.repeats import RepeatedRuns
from nephoscope.features.comparison.result import Comparisons


def test_a_plan_finds_the_truth_that_it_was_given(
    nephoscope: Run, plan: Path, tmp_path: Path
) -> None:
    done = nephoscope("run", plan, "--json")
    assert done.code == 0, done.err
    found = {
        (metric["metric"], metric["factors"]["value"]): metric for metric in done.json()["metrics"]
    }
    for value in (100, 200):
        estimate = found["null_ns", value]["estimate"]
        assert (estimate["value"], estimate["low"], estimate["high"]) == (value, value, value)
        assert estimate["n"] == 10
        assert "All 10 values are equal" in estimate["note"]

    told = nephoscope("show")
    assert told.code == 0
    assert max(map(len, told.out.splitlines()[:-1])) < 80
    assert told.out.splitlines()[-1].endswith("report.html")
    assert Path(told.out.splitlines()[-1]).is_file()
    assert "\x1b[" not in told.out

    runs = nephoscope("runs", "--json").json()["runs"]
    assert [(run["state"], run["trials"]) for run in runs] == [("finished", 20)]
    assert nephoscope("show", runs[0]["id"][:17], "--json").out == done.out

    exported = nephoscope("export", "latest", "--format", "csv").out
    rows = [row for row in csv.DictReader(io.StringIO(exported)) if row["metric"] == "null_ns"]
    assert {row["value"] for row in rows} == {"100.0", "200.0"}
    assert len([row for row in rows if row["warmup"] == "False"]) == 20
    file = tmp_path / "samples.parquet"
    assert nephoscope("export", "latest", "--format", "parquet", "-o", file).code == 0
    assert file.read_bytes()[:4] == b"PAR1"


def test_bench_prints_every_metric_with_its_interval(nephoscope: Run) -> None:
    words = ("--set", "samples=40", "--repetitions", 10, "--seed", 5)
    done = nephoscope("bench", "null", *words)
    assert done.code == 0, done.err
    assert nephoscope("show", "--json").json()["run"]["seed"] == 5
    for word in ("  null ", "null latency p50", "100 ns", "[", "10 valid trials"):
        assert word in done.out
    assert max(map(len, done.out.splitlines()[:-1])) < 100


def test_two_targets_of_one_run_are_compared_by_round(nephoscope: Run, tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text(
        "version: 1\nname: twice\nrepeat: {min: 12, max: 12}\n"
        "targets:\n  - {name: one, kind: local}\n  - {name: two, kind: local}\n"
        'benchmarks:\n  - benchmark: "null"\n    params: {noise_ratio: 0.002}\n'
    )
    assert nephoscope("run", path, "--json").code == 0
    for words in (("latest",), ("latest:one", "latest:two")):
        done = nephoscope("compare", *words, "--json")
        assert done.code == 0, done.err
        told = done.json()
        schemas.validate(told, schema_of(Comparisons, "comparison"))
        for line in told["comparisons"]:
            assert line["design"] == "paired by round"
            assert line["comparison"]["verdict"]["word"] in (
                "equivalent",
                "different but negligible",
            )
    wrong = nephoscope("compare", "latest:one", "latest:three")
    assert wrong.code == 2
    assert "no target 'three'" in wrong.sentence


def test_two_separate_runs_are_said_not_to_be_interleaved(nephoscope: Run) -> None:
    ids = []
    for value in (100, 1000):  # far beyond what is assumed to lie between two runs
        words = ("--set", f"value={value}", "--set", "noise_ratio=0.01", "--repetitions", 12)
        ids.append(nephoscope("bench", "null", *words, "--json").json()["run"]["id"])
    done = nephoscope("compare", *ids, "--json")
    assert done.code == 0, done.err
    told = done.json()
    schemas.validate(told, schema_of(Comparisons, "comparison"))
    assert "not interleaved" in told["warnings"][0]
    words = {line["metric"]: line["comparison"]["verdict"]["word"] for line in told["comparisons"]}
    assert (words["null_ns"], words["null_per_s"]) == ("worse", "better")
    paired = nephoscope("compare", *ids, "--paired")
    assert paired.code == 2
    assert "no pairs" in paired.sentence


def test_two_plans_are_interleaved_and_compared_by_round(nephoscope: Run, tmp_path: Path) -> None:
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for file, value in zip(files, (100, 150), strict=True):
        file.write_text(
            "name: made\nrepeat: {min: 12, max: 12}\n"
            f'benchmarks: [{{benchmark: "null", params: {{value: {value}}}}}]\n'
        )
    done = nephoscope("compare", "--interleave", *files, "--json")
    assert done.code == 0, done.err
    told = done.json()
    (line,) = (line for line in told["comparisons"] if line["metric"] == "null_ns")
    assert line["design"] == "paired by round"
    assert line["comparison"]["ratio"]["value"] == pytest.approx(1.5)
    assert line["comparison"]["verdict"]["word"] == "worse"
    assert (line["a"], line["b"]) == ("local-a", "local-b")
    assert told["next_step"] == ""


def test_repeated_runs_are_stored_and_analysed_together(nephoscope: Run, tmp_path: Path) -> None:
    plan = tmp_path / "made.yaml"
    plan.write_text('name: made\nrepeat: {min: 6, max: 6}\nbenchmarks: [{benchmark: "null"}]\n')
    done = nephoscope("run", plan, "--repeat-runs", 3, "--gap", "0s", "--json")
    assert done.code == 0, done.err
    told = done.json()
    schemas.validate(told, schema_of(RepeatedRuns, "repeats"))
    assert len(told["runs"]) == 3
    assert all(line["estimate"]["n"] == 3 for line in told["metrics"])
    stored = nephoscope("runs", "--json").json()["runs"]
    assert {run["id"] for run in stored} == set(told["runs"])
    done = nephoscope("compare", *told["runs"][:2])
    assert "from 1 earlier" not in done.out
    assert "Next step: `nephoscope run made.yaml --repeat-runs 3 --gap 10min" in done.out


def test_files_of_numbers_are_compared(nephoscope: Run, tmp_path: Path) -> None:
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("# before\n102\n98\n101\n97\n103\n99\n100\n104\n96\n100\n")
    b.write_text("112\n108\n111\n107\n113\n109\n110\n114\n106\n110\n")
    done = nephoscope("compare", a, b)
    assert done.code == 0
    assert done.out.startswith("B is worse than A: +")
    assert "lower is better" in done.out
    better = nephoscope("compare", a, b, "--better", "higher", "--paired").out
    assert better.startswith("B is better than A: +")
    told = nephoscope("compare", a, b, "--json", "--margin", "20%").json()
    schemas.validate(told, schema_of(Comparisons, "comparison"))
    assert told["comparisons"][0]["comparison"]["verdict"]["word"] == "different but negligible"
    b.write_text("1\ntwo\n")
    bad = nephoscope("compare", a, b)
    assert bad.code == 2
    assert f"{b}:2: 'two' is not a number." in bad.sentence


def test_samples_of_perfkit_benchmarker_get_our_analysis(nephoscope: Run, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    lines = [
        {
            "metric": "Throughput",
            "value": 900.0 + number * 7 % 11,
            "unit": "Mbits/sec",
            "timestamp": 1_700_000_000.0 + number,
            "test": "iperf",
            "run_uri": "abc",
            "sample_uri": str(number),
            "owner": "me",
            "product_uri": "PerfKitBenchmarker",
            "official": False,
            "labels": "|ip_type:internal|",
        }
        for number in range(1, 11)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = nephoscope("import", path, "--json")
    assert done.code == 0, done.err
    result = done.json()
    schemas.validate(result, schemas.result_schema())
    (metric,) = result["metrics"]
    estimate = metric["estimate"]
    assert estimate["n"] == 10
    assert estimate["value"] == pytest.approx(905.5e6)
    assert 902e6 < estimate["low"] < 903e6
    assert 908e6 < estimate["high"] < 909e6
    lines[4].pop("value")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    partial = nephoscope("import", path)
    assert partial.code == 0
    assert "1 record was left out: Line 5: 'value' is missing" in partial.err
    assert re.search(r"\b9\b", partial.out), "the nine others are used"
