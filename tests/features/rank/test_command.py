"""`nephoscope rank` on files and stored runs: published vectors, a published table, bad input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.results.made import NULL_PLAN, TWO_TARGETS, make_run

from nephoscope import command_line
from nephoscope.core.model import Sample, Setting
from nephoscope.store import Store

STUDY = Path(__file__).resolve().parents[3] / "studies" / "nadeem-2015" / "ranking.csv"

SYSTEMS = ((10, 11, 14), (20, 21, 26), (5, 5.5, 6), (8, 8.2, 9), (30, 29, 35), (12, 13, 15))
A = (102, 98, 101, 97, 103, 99, 100, 104, 96, 100, 105, 95, 101, 99, 130)
B = (107, 103, 109, 104, 106, 108, 105, 110, 102, 106, 111, 101, 107, 104, 140)


def ranked(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert command_line.main(["rank", *words, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert command_line.main(["rank", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def write(path: Path, rows: Sequence[Sequence[object]], head: str) -> str:
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


def test_friedman_and_geometric_means_of_six_benchmarks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        (f"b{number}", name, value)
        for number, values in enumerate(SYSTEMS)
        for name, value in zip("ABC", values, strict=True)
    ]
    document = ranked(capsys, write(tmp_path / "v.csv", rows, "metric,alternative,value"))
    test = document["overall"]["agreement"]
    assert test["chi_square"] == pytest.approx(10.3333, rel=1e-4)
    assert test["p"] == pytest.approx(0.005704, rel=1e-4)
    assert test["agreement"] == pytest.approx(10.3333 / 12, rel=1e-4)  # Kendall's W
    assert test["mean_ranks"] == pytest.approx({"A": 7 / 6, "B": 11 / 6, "C": 3})
    cells = document["overall"]["cells"]
    ratios = [cell["ratio"]["value"] for cell in cells]
    assert ratios == pytest.approx([1, 1.05307, 1.23702], rel=1e-5)
    assert [cell["rank"] for cell in cells] == [1, 2, 3]
    assert {cell["rank_low"] for cell in cells} == {None}, "one value each has no interval"
    assert {cell["ratio"]["low"] for cell in cells} == {None}
    assert [cell["rank_without_high"] for cell in cells] == [1, 2, 3]


def test_consistency_of_one_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("t", name, value) for name, values in (("A", A), ("B", B)) for value in values]
    document = ranked(capsys, write(tmp_path / "v.csv", rows, "metric,alternative,value"))
    (row,) = document["rows"]
    consistency = row["cells"][0]["consistency"]
    assert consistency["cv"] == pytest.approx(0.080845, abs=1e-6)
    assert consistency["robust_cv"] == pytest.approx(0.029652, abs=1e-6)
    assert consistency["quartile_dispersion"] == pytest.approx(0.019900, abs=1e-6)
    assert [cell["consistency_rank_low"] for cell in row["cells"]] == [1, 1]
    assert [cell["consistency_rank_high"] for cell in row["cells"]] == [2, 2]


TABLE_1 = {
    ("Response efficiency", "Response time"): (2, 3, 1),
    ("CPU throughput", "Combinations"): (3, 2, 1),
    ("Memory", "Copy"): (3, 1, 2),
    ("Memory", "Scale"): (3, 1, 2),
    ("Memory", "Triad"): (3, 2, 1),
    ("Memory", "Add"): (3, 2, 1),
    ("Memory", "Average"): (3, 2, 1),
    ("Memory", "Performance consistency"): (1, 1, 1),
    ("Cache performance", "Read"): (2, 2, 1),
    ("Cache performance", "Write"): (2, 1, 2),
    ("Cache performance", "Read/Modify/Write"): (2, 2, 1),
    ("Cache performance", "Performance consistency"): (2, 1, 3),
    ("File system I/O performance", "Disk read"): (1, 3, 2),
    ("File system I/O performance", "Disk write"): (3, 2, 1),
    ("File system I/O performance", "Performance consistency"): (3, 1, 1),
    ("Application performance", "File compression"): (2, 1, 3),
    ("Application performance", "Database operations"): (3, 2, 1),
    ("Application performance", "Performance consistency"): (2, 3, 1),
}
"""Ranks of UEC, XCP and PVE as section 4.4 of Nadeem 2015 states them."""
CLAIMED_BEST = {
    "Response efficiency": "PVE",
    "CPU throughput": "PVE",
    "File system I/O performance": "UEC",
    "Application performance": "PVE",
}
"""Section 6 there."""


def test_the_published_table_is_reproduced_with_its_contradictions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = ranked(capsys, str(STUDY))
    assert document["alternatives"] == ["UEC", "XCP", "PVE"]
    ranks = {
        (row["parameter"], row["metric"]): tuple(cell["rank"] for cell in row["cells"])
        for row in document["rows"]
    }
    assert ranks == TABLE_1
    assert not any(row["tested"] for row in document["rows"])
    for row in document["rows"]:
        rank = {cell["alternative"]: cell["rank"] for cell in row["cells"]}
        best = CLAIMED_BEST.get(row["parameter"])
        wrong = best and row["kind"] == "value" and rank[best] > 1
        if row["kind"] == "consistency":  # XCP and PVE are called more consistent than UEC
            wrong = max(rank["XCP"], rank["PVE"]) > rank["UEC"]
        assert row["note"] or not wrong, row["metric"]
    notes = {row["metric"]: row["note"] for row in document["rows"] if row["kind"] != "consistency"}
    assert "20.4 times" in notes["Response time"]
    assert "slowest writer" in notes["Disk write"]
    assert "slowest here" in notes["File compression"]
    advice = {item["domain"]: (item["word"], item["choice"]) for item in document["domains"]}
    assert advice["CPU-bound"] == advice["database"] == advice["web"] == ("not tested", ["PVE"])
    assert advice["read-heavy"] == ("not tested", ["UEC"])
    assert advice["write-heavy"] == ("not tested", ["PVE"])


def test_the_published_table_is_printed_as_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["rank", str(STUDY), "--ranks-only"]) == 0
    out = capsys.readouterr().out
    assert "Parameter" in out
    assert "Performance consistency" in out
    assert "slowest writer" in " ".join(out.split())


def noisy(setting: Setting, number: int, target: str) -> Sequence[Sample]:
    return [Sample("null_ns", 100.0 + (7 * number) % 5 + 20 * (target == "two"))]


def test_targets_of_a_run_are_alternatives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "store", TWO_TARGETS, noisy, rounds=8)
    document = ranked(capsys, run.id, "--store", str(tmp_path / "store"))
    (row,) = document["rows"]
    assert [cell["rank"] for cell in row["cells"]] == [1, 2]
    assert row["cells"][1]["ratio"]["low"] > 1.1


BY_PLATFORM = """
name: platforms
benchmarks:
  - benchmark: "null"
    factors: {value: [1, 2]}
repeat: {min: 8, max: 8}
"""


def test_levels_of_a_factor_are_alternatives_and_a_report_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def sampler(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        slow = setting.factors["value"] == 2
        return [Sample("null_ns", (100.0 + (7 * number) % 5) * (2 if slow else 1))]

    run = make_run(tmp_path / "store", BY_PLATFORM, sampler, rounds=8)
    words = [run.id, "--store", str(tmp_path / "store"), "--by", "value"]
    document = ranked(capsys, *words)
    assert len(document["alternatives"]) == 2
    assert [cell["rank"] for cell in document["rows"][0]["cells"]] == [1, 2]
    for ending in ("html", "md", "json"):
        page = tmp_path / f"page.{ending}"
        assert command_line.main(["rank", *words, "-o", str(page)]) == 0
        assert "relative to" in page.read_text() or ending == "json"
    capsys.readouterr()
    assert "has no factor 'platform'" in refused(capsys, *words[:3], "--by", "platform")


def test_separate_runs_are_named_and_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    runs = [make_run(store, NULL_PLAN, noisy, rounds=8, machine=name).id for name in ("x", "y")]
    names = [f"{name}={run}" for name, run in zip("AB", runs, strict=True)]
    document = ranked(capsys, *names, "--store", str(store))
    assert document["alternatives"] == ["A", "B"]
    cells = document["rows"][0]["cells"]
    assert [(cell["rank_low"], cell["rank_high"]) for cell in cells] == [(1, 2), (1, 2)]
    assert "separate runs" in document["warnings"][0]
    assert document["hidden_settings"] == []  # the machines are what is compared
    Store(store).open(runs[1]).update(probe="0.0.9")
    (hidden,) = ranked(capsys, *names, "--store", str(store))["hidden_settings"]
    assert (hidden["name"], hidden["count"]) == ("nephoscope-probe", 2)
    for words in (runs, runs[:1]):
        assert "only alternative" in refused(capsys, *words, "--store", str(store))
    assert "two values of null" in refused(capsys, names[0], *runs, "--store", str(store))


def test_other_parameters_are_no_alternative(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    plan = 'name: n\nbenchmarks:\n  - {benchmark: "null", params: {value: %s}}\n'
    runs = [make_run(store, plan % value, noisy, rounds=8).id for value in (1, 2)]
    line = refused(capsys, f"A={runs[0]}", f"B={runs[1]}", "--store", str(store))
    assert "no metric in common" in line
    assert "other parameters" in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metric,alternative\nm,a\n", "the column 'value' is missing"),
        ("metric,alternative,valeu\n", "unknown column 'valeu' (did you mean 'value'?)"),
        ("metric,alternative,value\nm,a,0\n", "v.csv:2: '0' is not above 0"),
        ("metric,alternative,value\nm,a,1e299\n", "v.csv:2: '1e299' is too large"),
        ("metric,alternative,value\nm,a,5e-324\n", "'5e-324' is too near to 0"),
        ("metric,alternative,value,round\nm,a,1,1\nm,a,2,1\n", "two values of 'm' in round 1"),
        ("metric,alternative,value\nm,a,1\nn,b,1\n", "such as m of 'a'; b: no value"),
        ("metric,alternative,value\nm,a,nan\n", "'nan' is not a number"),
        ("metric,alternative,value\nm,a,1e200\n", "v.csv:2: '1e200' is too large"),
        ("metric,alternative,value\nm,,1\n", "'alternative' is empty"),
        ("metric,alternative,value\nm,a\n", "2 fields under 3 columns"),
        ("metric,alternative,value,better\nm,a,1,more\n", "unknown better 'more'"),
        ("metric,alternative,value,round\nm,a,1,x\n", "round 'x' is no number"),
        ("metric,alternative,value,unit\nm,a,1,s\nm,a,1,ms\n", "another unit"),
        ("metric,alternative,value,unit\nm,a,1,s\nm,b,1,ms\n", "another unit"),
        ("metric,alternative,value\nm,a,1\n", "'a' is the only alternative"),
        ("metric,alternative,value\nm,a,1\nm,b,\n", "no metric in common"),
        ("", "no values"),
        ('metric,alternative,value\n"m,a,1\n', "invalid CSV"),
    ],
)
def test_a_bad_file_is_one_sentence(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "v.csv"
    file.write_text(text)
    assert message in refused(capsys, str(file))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.csv"], "there is no such file"),
        (["v.csv", "latest"], "ranked alone"),
        (["v.csv", "--weight", "m"], "--weight takes NAME=NUMBER"),
        (["v.csv", "--weight", "m=-1"], "--weight takes NAME=NUMBER"),
        (["v.csv", "--weight", "x=1"], "nothing is named 'x'"),
        (["v.csv", "--reference", "z"], "no alternative 'z'"),
        (["v.csv", "-o", "page.txt"], "unsupported file type"),
        (["=latest"], "names no run"),
    ],
)
def test_bad_options_are_one_sentence(
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "v.csv", [("m", "a", 1), ("m", "b", 2)], "metric,alternative,value")
    assert message in refused(capsys, *words)


def test_a_weight_may_be_above_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "v.csv"
    file.write_text("metric,alternative,value\nm,a,1\nm,b,2\nn,a,8\nn,b,1\n")
    assert (
        command_line.main(["rank", str(file), "--weight", "m=3", "--weight", "n=100%", "--json"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)["overall"]
    assert found["weights"] == {"m": 0.75, "n": 0.25}
    assert found["cells"][1]["ratio"]["value"] == pytest.approx(2**0.75 / 8**0.25)


def test_runs_of_different_benchmarks_are_ranked_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def hashing(setting: Setting, number: int, target: str) -> Sequence[Sample]:
        return [Sample("hash_bytes_per_s", 1e6 * (1 + 0.01 * (number % 3) + (target == "two")))]

    store = tmp_path / "store"
    plan = TWO_TARGETS.replace('"null"', "cpu.hash").replace("null", "cpu.hash")
    runs = [
        make_run(store, TWO_TARGETS, noisy, rounds=8).id,
        make_run(store, plan, hashing, rounds=8).id,
    ]
    document = ranked(capsys, *runs, "--store", str(store))
    assert document["overall"]["benchmarks"] == ["null", "cpu.hash"]
    assert [[cell["rank"] for cell in row["cells"]] for row in document["rows"]] == [[1, 2], [2, 1]]
    assert document["warnings"] == []
