"""`nephoscope compact`, and what other commands say of compacted runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.features.compaction.made import drawn_run
from tests.features.history.drawn import DAY_S, START_S

from nephoscope import command_line
from nephoscope.store import day_files

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for number in range(2):
        drawn_run(tmp_path, START_S + (number - 300) * DAY_S, seed=number)
    return tmp_path


@pytest.fixture
def call(store: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command on the store; returns its exit code, output and log."""

    def called(*words: str) -> tuple[int, str, str]:
        code = command_line.main([*words, f"--store={store}"])
        return code, *capsys.readouterr()

    return called


def document(call: Call, *words: str) -> Any:
    return json.loads(call(*words, "--json")[1])


def test_a_dry_run_then_the_compaction_then_history(call: Call) -> None:
    _, text, _ = call("compact", "--keep-raw", "7d", "--dry-run")
    assert text.startswith("2 runs of ")
    assert "would be compacted" in text
    before = document(call, "history", "null_latency_p95_ns")
    assert len(before["series"][0]["points"]) == 2
    assert len(document(call, "compact", "--keep-raw", "7d")["compacted"]) == 2
    assert document(call, "history", "null_latency_p95_ns") == before
    window = document(call, "history", "null_latency_p95_ns", "--window", "52w")
    assert window["series"][0]["points"][0]["estimate"]["n"] == 14
    assert call("compact", "--keep", "1y")[1].startswith("0 runs")


def test_other_commands_name_compacted_runs(call: Call) -> None:
    run = document(call, "compact", "--keep-raw", "7d")["compacted"][0]
    assert (
        "The trials of older runs were compacted into 2 day files, 2025-11-25 to"
        in (call("runs")[2])
    )
    code, _, log = call("show", run)
    assert code == 2
    assert f"The trials of run {run} were compacted into" in log
    code, text, _ = call("verify")
    assert code == 0
    assert "days/2025-11-25.jsonl: 9 trials verified" in text


def test_verify_and_history_name_a_damaged_line(call: Call, store: Path) -> None:
    call("compact", "--keep-raw", "7d")
    path = day_files.day_files(store)[0].path
    path.write_bytes(path.read_bytes()[:-10])
    sentence = f"{path}: the last line is incomplete and left out."
    code, text, _ = call("verify")
    assert code == 1
    assert sentence in text
    assert sentence in call("history", "null_ns")[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "`compact` needs a maximum age or size."),
        (("--keep-raw", "week"), "--keep-raw: 'week' is no duration."),
        (("--keep", "0s"), "--keep: '0s' is out of range"),
        (("--max-size", "much"), "--max-size: 'much' is no size."),
        (("--keep-raw", "7d", "--keep", "1d"), "--keep 1d is shorter than --keep-raw 7d."),
    ],
)
def test_bad_options_are_one_sentence(
    call: Call, store: Path, words: tuple[str, ...], sentence: str
) -> None:
    code, text, log = call("compact", *words)
    assert (code, text) == (2, "")
    assert sentence in log
    assert log.count("\n") == 1
    assert not (store / "days").exists()
