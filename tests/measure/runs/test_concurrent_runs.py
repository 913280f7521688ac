"""Two runs on one machine at the same time name each other."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nephoscope.measure.runs import concurrent_runs
from nephoscope.measure.runs.concurrent_runs import ConcurrentRuns


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    """Every test here needs the folder in which FOLDER lies."""


def test_two_runs_on_one_machine_name_each_other_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrent_runs, "POLL_INTERVAL_S", 0.0)
    first = ConcurrentRuns("one", frozenset({"this machine"}))
    second = ConcurrentRuns("two", frozenset({"this machine", "ssh:far"}))
    elsewhere = ConcurrentRuns("three", frozenset({"ssh:other"}))
    with first.announced():
        assert first.new_ones() == []
        with second.announced(), elsewhere.announced():
            assert second.new_ones() == [
                f"Another run is active on this machine (one, process {os.getpid()}): the results "
                "of both suffer."
            ]
            (sentence,) = first.new_ones()
            assert sentence.startswith("Another run is active on this machine (two, ")
            assert first.new_ones() == [], "named once"
            assert elsewhere.new_ones() == []
    assert list(concurrent_runs.FOLDER.iterdir()) == []


def test_leftovers_and_rubbish_are_no_runs() -> None:
    run = ConcurrentRuns("one", frozenset({"this machine"}))
    concurrent_runs.FOLDER.mkdir()
    left = {"run": "old", "pid": 1, "machines": ["this machine"]}
    (concurrent_runs.FOLDER / "old.1").write_text(json.dumps(left))
    (concurrent_runs.FOLDER / "rubbish").write_text("[")
    with run.announced():
        assert run.new_ones() == []
        assert [path.name for path in concurrent_runs.FOLDER.iterdir()] == [f"one.{os.getpid()}"]


def test_others_are_looked_for_once_a_second() -> None:
    first = ConcurrentRuns("one", frozenset({"this machine"}))
    assert first.new_ones() == []
    with ConcurrentRuns("two", frozenset({"this machine"})).announced():
        assert first.new_ones() == []


def test_without_a_folder_nothing_is_announced() -> None:
    concurrent_runs.FOLDER.write_text("")
    run = ConcurrentRuns("one", frozenset({"this machine"}))
    with run.announced():
        assert run.new_ones() == []


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """Every user may write there: a link to a folder of root's would have its files removed."""
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "file").write_text("x")
    concurrent_runs.FOLDER.symlink_to(private)
    run = ConcurrentRuns("one", frozenset({"this machine"}))
    with run.announced():
        assert run.new_ones() == []
        assert [path.name for path in private.iterdir()] == ["file"]
    assert private.stat().st_mode & 0o7777 == 0o700


def test_pipes_and_links_inside_are_no_runs(tmp_path: Path) -> None:
    concurrent_runs.FOLDER.mkdir()
    os.mkfifo(concurrent_runs.FOLDER / "pipe.1")
    (tmp_path / "file").write_text("x")
    (concurrent_runs.FOLDER / "link.1").symlink_to(tmp_path / "file")
    run = ConcurrentRuns("one", frozenset({"this machine"}))
    with run.announced():
        assert run.new_ones() == []
    assert (tmp_path / "file").read_text() == "x"
