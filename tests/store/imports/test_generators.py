"""Logs of several generators of one test: merged to the quantiles of all requests."""

from __future__ import annotations

import gzip
import json
import random
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.store.imports.test_several_files import Folder

from nephoscope import command_line
from nephoscope.core.errors import UsageError
from nephoscope.results import analyse_run
from nephoscope.store import StoredRun, query
from nephoscope.store.imports.arrangement import Arrangement
from nephoscope.store.imports.hdr import HdrHistogram, HdrPrecision, added, decode
from nephoscope.store.imports.importing import import_files

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "imports"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def histogram(run: StoredRun, metric: str) -> dict[float, int]:
    (row,) = (row for row in query.histograms(run) if row.metric == metric)
    return dict(zip(row.values.tolist(), row.counts.tolist(), strict=True))


def sentences(run: StoredRun) -> str:
    return " ".join(run.manifest.refused)


def value(run: StoredRun, metric: str) -> float:
    (found,) = (row.value for row in query.trial_medians(run) if row.metric == metric)
    return found


def line(run: StoredRun, metric: str) -> float:
    metrics = {each.metric: each.estimate.value for each in analyse_run.build(run).metrics}
    return metrics[metric]


# Two generators with planted bimodal latencies: (95 x 10, 5 x 500) and (995 x 10, 5 x 500) ms. The
# p99 of the one is 500 and of the other 10; their average is 255, that of the union is 10.
MODES = (((10.0, 95), (500.0, 5)), ((10.0, 995), (500.0, 5)))


def test_hdr_logs_are_added_bucket_by_bucket_at_the_lower_precision(tmp_path: Path) -> None:
    files = [GOLDEN / f"hdrhistogram-{digits}-digits.hlog" for digits in (3, 2)]
    runs = {}
    for name, chosen in (("first", files[:1]), ("second", files[1:]), ("both", files)):
        store = Folder(tmp_path / name)
        store.path.mkdir()
        runs[name] = import_files(
            chosen, store.store, arrangement=Arrangement.PARALLEL, value_unit="us"
        )
    # What the library that wrote them calls the highest equivalent values of 10,000 and 500,000.
    assert histogram(runs["first"], "latency_ns") == {10_007e3: 95, 500_223e3: 5}
    assert histogram(runs["second"], "latency_ns") == {10_047e3: 995, 501_759e3: 5}
    assert histogram(runs["both"], "latency_ns") == {10_047e3: 1090, 501_759e3: 10}
    assert line(runs["first"], "latency_p99_ns") == 500_223e3
    assert line(runs["both"], "latency_p99_ns") == 10_047e3
    assert "Histograms of 2 and 3 significant digits were added in the buckets of 2" in sentences(
        runs["both"]
    )
    assert value(runs["both"], "completed_count") == 1100


def test_hdr_logs_state_no_unit_so_that_it_is_asked_for(folder: Folder) -> None:
    with pytest.raises(UsageError, match="states the unit of its values; add --value-unit"):
        folder.take(GOLDEN / "hdrhistogram-3-digits.hlog")


def test_buckets_of_a_lower_precision_consist_of_whole_ones_of_a_higher() -> None:
    drawn = random.Random(7)
    values = [drawn.randrange(1, 2 ** drawn.randrange(1, 45)) for _ in range(400)]
    precisions = [HdrPrecision(digits, magnitude) for digits in range(6) for magnitude in (0, 7)]
    for precision in precisions:
        for each in values:
            top = precision.top_of(each)
            assert top >= each
            assert top - each <= max(each * precision.relative, 2**precision.magnitude)
            assert precision.top_of(top) == top
    for fine in precisions:
        for coarse in precisions:
            common = fine.coarser(coarse)
            direct = Counter(common.top_of(each) for each in values)
            parts = [
                HdrHistogram(precision, Counter(precision.top_of(each) for each in half))
                for precision, half in ((fine, values[:200]), (coarse, values[200:]))
            ]
            assert added(parts) == HdrHistogram(common, direct), (fine, coarse)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("HIST", "cut off"),
        ("HIST!", "no base64"),
        ("HISTEwAAAAB4nAMAAAAAAQ==", "V2"),
        ("HISTFAAAABB4nJNpmSzMwMDAxAABzAAAAAAA", "histogram"),
    ],
)
def test_a_damaged_histogram_is_a_sentence(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode(text)


def test_a_damaged_interval_is_left_out_by_its_line(folder: Folder) -> None:
    content = (GOLDEN / "hdrhistogram-3-digits.hlog").read_text().splitlines()
    content[-1] = content[-1][:-12]
    run = import_files(
        [folder.write("cut.hlog", "\n".join(content))],
        folder.store,
        value_unit="us",
        note=folder.notes.append,
    )
    assert histogram(run, "latency_ns") == {10_007e3: 95}
    assert f"Line {len(content)}: " in " ".join(folder.notes)


def k6_json(modes: Sequence[tuple[float, int]], failed: int, at: int = 0) -> str:
    lines: list[dict[str, Any]] = [
        {"type": "Metric", "metric": name, "data": {"name": name, "type": kind, "contains": unit}}
        for name, kind, unit in (
            ("http_req_duration", "trend", "time"),
            ("http_reqs", "counter", "default"),
            ("http_req_failed", "rate", "default"),
        )
    ]
    every = [ms for ms, count in modes for _ in range(count)]
    for number, ms in enumerate(every):
        time = f"2026-11-27T10:00:{(number + at) % 60:02d}.5Z"
        values = {"http_req_duration": ms, "http_reqs": 1, "http_req_failed": number < failed}
        lines += [
            {"type": "Point", "metric": name, "data": {"time": time, "value": figure + 0}}
            for name, figure in values.items()
        ]
    return "\n".join(map(json.dumps, lines))


def k6_csv(modes: Sequence[tuple[float, int]]) -> str:
    every = [ms for ms, count in modes for _ in range(count)]
    rows = ["metric_name,timestamp,metric_value,check"]
    for number, ms in enumerate(every):
        rows += [
            f"{name},{1_790_000_000 + number % 60},{figure},"
            for name, figure in (
                ("http_req_duration", ms),
                ("http_reqs", 1),
                ("http_req_failed", 0),
                ("vus", 5),
            )
        ]
    return "\n".join(rows)


@pytest.mark.parametrize("is_csv", [False, True])
def test_points_of_k6_merge_to_the_quantiles_of_the_union(folder: Folder, is_csv: bool) -> None:
    files = [
        folder.write(f"{n}.out", k6_csv(modes) if is_csv else k6_json(modes, failed=3))
        for n, modes in enumerate(MODES)
    ]
    run = folder.take(*files)  # their times tell that they are parts
    assert histogram(run, "http_req_duration") == {10e6: 1090, 500e6: 10}
    assert line(run, "http_req_duration_p99_ns") == 10e6
    assert line(run, "http_req_duration_p999_ns") == 500e6
    assert value(run, "http_reqs.count") == 1100
    failed = 0 if is_csv else 6
    assert value(run, "errors_count") == failed
    assert (
        f"1,100 requests sent by 2 generators = {1100 - failed:,} answered + {failed} failed."
        in sentences(run)
    )


def test_points_without_an_outcome_are_stated_as_lost(folder: Folder) -> None:
    content = k6_json(MODES[0], failed=0).splitlines()
    cut = [text for number, text in enumerate(content) if number != 3]  # a duration
    run = folder.take(folder.write("cut.json", "\n".join(cut)))
    assert (
        "100 requests sent by the generator = 99 answered + 0 failed + 1 lost, without any outcome"
        in sentences(run)
    )


def fortio(modes: Sequence[tuple[float, int]], **more: Any) -> dict[str, Any]:
    total = sum(count for _, count in modes)
    data = [{"Start": 0, "End": ms / 1e3, "Percent": 0, "Count": n} for ms, n in modes]
    return {
        "RunType": "HTTP",
        "StartTime": "2026-11-27T10:00:00Z",
        "RequestedQPS": "8",
        "RequestedDuration": "10s",
        "ActualQPS": total / 10,
        "ActualDuration": 10_000_000_000,
        "NumThreads": 4,
        "DurationHistogram": {"Count": total, "Avg": 0.1, "Min": 0.01, "Max": 0.5, "Data": data},
        "RetCodes": {"200": total - 2, "503": 1, "-1": 1},
        "URL": "http://server/",
        **more,
    }


def test_results_of_fortio_merge_with_a_conservation_check(folder: Folder) -> None:
    files = [folder.write(f"{n}.json", fortio(modes)) for n, modes in enumerate(MODES)]
    run = folder.take(*files)
    assert histogram(run, "latency_ns") == {10e6: 1090, 500e6: 10}
    assert line(run, "latency_p99_ns") == 10e6
    assert value(run, "requests_per_s") == 110
    assert "1,100 requests sent by 2 generators = 1,096 answered + 4 failed." in sentences(run)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"URL": "http://other/"}, "url http://server/ and http://other/"),
        ({"RequestedQPS": "9"}, "rate 8 and 9"),
        (
            {"RequestedDuration": "12s", "URL": "u"},
            "url http://server/ and u; duration 10s and 12s",
        ),
    ],
)
def test_parts_with_other_settings_are_refused_by_name(
    folder: Folder, more: dict[str, Any], words: str
) -> None:
    files = [
        folder.write("0.json", fortio(MODES[0])),
        folder.write("1.json", fortio(MODES[1], **more)),
    ]
    with pytest.raises(UsageError, match="are not parts of one run") as caught:
        folder.take(*files)
    assert words in str(caught.value)
    run = folder.take(*files, arrangement=Arrangement.REPETITIONS)
    assert {row.round for row in query.trial_medians(run)} == {1, 2}


WRK2 = """\
Running 30s test @ http://127.0.0.1:8080/{path}
  1 threads and 10 connections
  Thread calibration: mean lat.: 1.089ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.14ms  355.73us   2.54ms   69.45%
    Req/Sec     2.11k   181.65     3.22k    82.30%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%   10.00ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

{rows}
#[Mean    =        1.138, StdDeviation   =        0.356]
#[Max     =      500.000, Total count    =     {total}]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  {requests} requests in 30.00s, 98.26MB read
Requests/sec:   {rate}
Transfer/sec:      1.64MB
"""


def wrk2(modes: Sequence[tuple[float, int]], path: str = "") -> str:
    total, rows = 0, []
    every = sum(count for _, count in modes)
    for ms, count in modes:
        total += count
        rows.append(f"{ms:12.3f} {total / every:12.6f} {total:12d} {'inf':>12}")
    rows.append(rows[-1])
    return WRK2.format(
        path=path, rows="\n".join(rows), total=every, requests=every + 7, rate=f"{every / 30:.2f}"
    )


def test_spectra_of_wrk2_merge(folder: Folder) -> None:
    files = [folder.write(f"{n}.txt", wrk2(modes)) for n, modes in enumerate(MODES)]
    run = folder.take(*files, arrangement=Arrangement.PARALLEL)
    assert histogram(run, "latency_ns") == {10e6: 1090, 500e6: 10}
    assert line(run, "latency_p99_ns") == 10e6
    assert "the histogram has 100 of 107 requests" in sentences(run)
    assert "closed loop" not in sentences(run)
    other = folder.write("2.txt", wrk2(MODES[0], path="other"))
    with pytest.raises(UsageError, match="url"):
        folder.take(files[1], other, arrangement=Arrangement.PARALLEL)


def test_the_commands_of_the_guide(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (
        Path(__file__).resolve().parents[3] / "docs" / "how-to" / "import-results.md"
    ).read_text()
    section = guide.partition("## Generators of one test")[2].partition("\n## ")[0]
    commands = re.findall(r"^\$ nephoscope (.*)$", section, re.M)
    assert len(commands) == 4
    monkeypatch.chdir(folder.path)
    for number, modes in enumerate(MODES, start=1):
        (folder.path / f"k6-{number}.json.gz").write_bytes(
            gzip.compress(k6_json(modes, 0).encode())
        )
        folder.write(f"fortio-{number}.json", fortio(modes))
        folder.write(f"wrk2-{number}.txt", wrk2(modes))
    for name, digits in (("a", 3), ("b", 2)):
        shutil.copy(GOLDEN / f"hdrhistogram-{digits}-digits.hlog", folder.path / f"{name}.hlog")
    for command in commands:
        words = [*shlex.split(command, comments=True), "--store", str(folder.store.path)]
        assert command_line.main(words) == 0, capsys.readouterr().err
        assert re.search(r"(latency|duration) p99 +10\.0 ms", capsys.readouterr().out), command
