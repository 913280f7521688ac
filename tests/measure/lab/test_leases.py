"""A lab whose maker has ended is found in whatever state the kill left its folder."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from nephoscope.measure.lab import leases, names, state
from nephoscope.measure.provisioning import UP


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(names, "RUN", tmp_path / "run")
    return tmp_path / "run"


def test_a_folder_is_abandoned_until_the_lab_is_up_or_while_nobody_changes_it(run: Path) -> None:
    with state.making("a"):
        assert leases.abandoned() == []  # no lease yet, and its lock is held
        leases.take("a")
        state.write("a", {"phase": "creating"})
        assert leases.abandoned() == []
        leases.end("a")  # as the kernel does at a kill
        assert leases.abandoned() == ["a"]
        leases.take("a")
        state.write("a", {"phase": UP})
        leases.waive("a")
    assert leases.abandoned() == []  # made by hand


@pytest.mark.parametrize(
    ("content", "abandoned"),
    [(None, ["a"]), ('{"phase": "creating"}', ["a"]), ('{"phase": "up"}', []), ("{damaged", [])],
)
def test_a_folder_without_a_lease(run: Path, content: str | None, abandoned: list[str]) -> None:
    folder = run / "a"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / state.STATE).write_text(content)
    assert leases.abandoned() == abandoned


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = state._open
    removals = iter([True])

    def removed_first(path: Path) -> int | None:
        descriptor = opened(path)
        if next(removals, False):
            path.rmdir()
        return descriptor

    monkeypatch.setattr(state, "_open", removed_first)
    with state.making("a"):
        assert (run / "a").is_dir()
        assert state.is_busy("a")


def test_who_makes_a_lab_waits_for_who_removes_what_looks_left(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = state._open
    locked, done = threading.Event(), threading.Event()

    def remove() -> None:
        with state.changing("a"):
            locked.set()
            done.wait(10)
            (run / "a").rmdir()

    remover = threading.Thread(target=remove)

    def slow(path: Path) -> int | None:
        if threading.current_thread() is threading.main_thread() and not locked.is_set():
            remover.start()
            locked.wait(10)
            done.set()
        return opened(path)

    monkeypatch.setattr(state, "_open", slow)
    with state.making("a"):
        remover.join()
        assert (run / "a").is_dir()
