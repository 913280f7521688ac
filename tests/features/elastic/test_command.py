"""Options that have no effect are refused, whatever else a command line states."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.conftest import run_inside

URL = ["--url", "http://127.0.0.1:9/", "--observe", "echo 1", "--capacity", "40"]


def test_options_without_effect_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.csv").write_text("time_s,rate_per_s\n0,10\n10,50\n", encoding="utf-8")
    for words, sentence in (
        ([*URL, "--max", "3"], "--max is of the lab's autoscaler. Omit --url, or omit --max."),
        ([*URL, "--rule", "rate=3"], "--rule is of the lab's autoscaler."),
        (["--capacity", "40", "--observe-interval", "2s"], "--observe-interval is of --url."),
        (["--trace", "trace.csv", "--high", "90"], "--trace states the rates, and so does --high."),
        (["--capacity", "40", "--budget", "1min"], "nothing is searched within --budget"),
        (["--capacity", "40", "--rule", "rate=30|40"], "target has several values"),
        (
            ["--url", "http://127.0.0.1:9/", "--capacity", "40"],
            "--capacity needs the number of instances of --url. Add --observe or --autoscaler",
        ),
        (["--observe", "echo 1", "--capacity", "40"], "--observe is of --url. Add --url"),
        ([*URL, "--autoscaler", "hpa:a/b"], "--observe and --autoscaler exclude each other."),
        ([*URL, "--generators", "3"], "Several generators are for --url alone"),
        (
            ["--url", "http://127.0.0.1:9/", "--profile", "sine"],
            "seen by ramps, and not by --profile sine.",
        ),
        (
            ["--url", "http://127.0.0.1:9/", "--high", "20"],
            "The rates 20/s and 20/s make no ramp.",
        ),
        (
            ["--url", "http://127.0.0.1:9/", "-d", "5s"],
            "no 8 steps that each show whether p99 < 200 ms holds. Use --duration",
        ),
    ):
        done = run_inside(["elastic", *words, "--dry-run"])
        assert done.code == 2, words
        assert sentence in " ".join(done.err.split()), (words, done.err)
