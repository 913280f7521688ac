"""Places that a killed process leaves things in are yielded once; what is in use stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nephoscope.core import leases

HOLDING = """
import sys
from pathlib import Path
from nephoscope.core import leases
folder = leases.ScratchFolder(Path(sys.argv[1]))
(folder.path / "content").write_text("x")
leases.lease(leases.OBJECTS, {"params": {"bucket": "b"}, "directory": "/"})
print(folder.path, flush=True)
sys.stdin.read()
if sys.argv[2:]:
    folder.remove()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where folders are made, with a state of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(leases, "_own", [])
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def holder(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with a folder there, ready to be killed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip()
        yield process
        process.kill()


def test_what_a_killed_process_left_is_named_once_and_removed(
    place: Path, holder: subprocess.Popen[str]
) -> None:
    (folder,) = leases.scratch_folders(place)
    assert list(leases.abandoned()) == []
    assert not leases.remove_unused(folder)
    assert (folder / "content").exists()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert list(leases.abandoned()) == [
        (leases.FOLDERS, {"directory": str(place)}),
        (leases.OBJECTS, {"params": {"bucket": "b"}, "directory": "/"}),
    ]
    assert list(leases.abandoned()) == []
    assert leases.remove_unused(folder)
    assert list(place.iterdir()) == []


def test_a_process_that_removes_is_killed_and_the_next_one_goes_on(
    place: Path, holder: subprocess.Popen[str]
) -> None:
    holder.kill()
    holder.wait()
    places = leases.abandoned()
    next(places)
    places.close()  # type: ignore[attr-defined]
    assert len(list(leases.abandoned())) == 2


def test_a_process_that_ends_leaves_nothing(place: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDING, str(place), "remove"]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert list(place.iterdir()) == []
    assert [path for path in (tmp_path / "state").rglob("*") if path.is_file()] == []


def test_nothing_but_leases_and_scratch_folders_is_touched(place: Path, tmp_path: Path) -> None:
    folder = leases.state_root() / "leases"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "1-pipe.jsonl")
    (folder / "2-link.jsonl").symlink_to("/etc/passwd")
    (folder / "3-text.jsonl").write_text('{"kind": "folders"}\n{"kind": 1\n[1]\n\n7\n{"x": 1}\n')
    assert list(leases.abandoned()) == [(leases.FOLDERS, {})]
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (place / ".nephoscope-folder-0123456789abcdef").symlink_to(foreign)
    for name in (".nephoscope-folder-short", "nephoscope-folder-0123456789abcdef", "data"):
        (place / name).mkdir()
    assert leases.scratch_folders(place) == []
    assert not leases.remove_unused(place / ".nephoscope-folder-0123456789abcdef")
    assert foreign.exists()
