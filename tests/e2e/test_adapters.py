"""A well-known tool by the same commands as any benchmark: bench, run, list, doctor."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.e2e.conftest import Run
from tests.tools import needs

here = needs("postmark")
# Smaller counts end phases within some milliseconds: less than a busy machine takes to see a line.
SMALL = ("--set", "files=4000", "--set", "transactions=500", "--repetitions", "3")


@here
def test_bench_measures_with_the_tool_and_leaves_nothing(nephoscope: Run, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = nephoscope("bench", "postmark", *SMALL, "--set", f"directory={scratch}", "--json")
    assert done.code == 0, done.err
    found = {
        (one["metric"], one["factors"].get("phase")): one["estimate"]
        for one in done.json()["metrics"]
    }
    # Whole seconds would say 500 at most for 500 transactions.
    assert found["transactions_per_s", None]["value"] > 0
    assert found["reported_transactions_per_s", None]["value"] <= 500
    assert found["elapsed_ns", "all"]["value"] > found["elapsed_ns", "create"]["value"] > 0
    assert found["transactions_per_s", None]["n"] >= 3
    assert list(scratch.iterdir()) == []


@here
def test_a_plan_names_it_like_any_benchmark(nephoscope: Run, tmp_path: Path) -> None:
    plan = tmp_path / "mail.yaml"
    plan.write_text(
        "name: mail\n"
        "repeat: {min: 3, max: 3}\n"
        "benchmarks:\n"
        "  - benchmark: postmark\n"
        "    params: {transactions: 500, files: 4000}\n"
        "  - benchmark: disk.files\n"
        "    params: {transactions: 500, files: 500}\n",
        encoding="utf-8",
    )
    done = nephoscope("run", plan, "--json")
    assert done.code == 0, done.err
    named = {one["benchmark"] for one in done.json()["metrics"]}
    assert named == {"postmark", "disk.files"}


def test_without_the_tool_it_says_how_to_install_it(
    nephoscope: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    done = nephoscope("bench", "postmark", *SMALL)
    assert done.code == 4
    assert "There is no program 'postmark' in PATH." in done.err
    assert "apt-get install postmark" in done.err
    assert "Traceback" not in done.err
    told = nephoscope("doctor")
    assert re.search(r"apt-get install [a-z0-9+ -]*\bpostmark\b", told.out)
    listed = nephoscope("list", "postmark")
    assert "missing; install with apt-get install postmark" in " ".join(listed.out.split())


def test_a_tool_of_that_name_that_is_another_one_is_refused(
    nephoscope: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    other = folder / "postmark"
    other.write_text("#!/bin/sh\necho 'postmark: stamps letters'\n", encoding="utf-8")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    done = nephoscope("bench", "postmark", *SMALL)
    assert done.code == 4
    assert "is another program" in done.err
    assert "stamps letters" in done.err


@here
def test_a_tool_that_fails_is_a_failed_trial_with_its_words(nephoscope: Run) -> None:
    done = nephoscope("bench", "postmark", "--set", "files=1", "--set", "transactions=200")
    assert done.code == 3
    assert "it ran out of files" in done.err


@here
def test_bad_parameters_are_one_sentence(nephoscope: Run) -> None:
    done = nephoscope("bench", "postmark", "--set", "transactions=1")
    assert done.code == 2
    assert "must be a whole number from 10" in done.err
    done = nephoscope("bench", "postmark", "--set", "min_bytes=500", "--set", "max_bytes=400")
    assert done.code == 2, done.err
    assert "must be less than max_bytes" in done.err
    assert "Traceback" not in done.err
