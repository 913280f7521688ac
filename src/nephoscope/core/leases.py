"""Leases of what a process of this program leaves where it works, should it be killed.

    $XDG_STATE_HOME/nephoscope/leases/PID-NOISE.jsonl   else ~/.local/state; one place per line

The process holds a lock on its file; the kernel releases it when the process ends, also when it is
killed. A file without a lock names the places in which the next command looks for leftovers.
Scratch folders have a lock of their own, so that nobody removes one that is in use; the probe makes
its folders under the same name, with the same lock.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nephoscope.core.reading import regular

FOLDERS = "folders"
"""Kind of a place: a directory in which scratch folders are made (`directory`)."""
OBJECTS = "objects"
"""Kind of a place: a storage service in which objects are made (parameters of the benchmark)."""
PROCESSES = "processes"
"""Kind of a place: processes that have a mark in their environment (`mark`)."""
MERGING = "merging"
"""Kind of a place: the kernel's merging of equal pages (`boot`, `settings` to restore)."""

MARK = "NEPHOSCOPE_MARK"
"""Variable of a program that a measured command may have started. Its value has one length, because
the size of the environment can change how fast a program runs."""

_PREFIX = ".nephoscope-folder-"
_FOLDER = re.compile(re.escape(_PREFIX) + "[0-9a-f]{16}")
_READ_BYTES = 1 << 20


def state_root() -> Path:
    """Returns the folder in which this program keeps what commands of this user share."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "nephoscope"


class _Lease:
    """The file of one process, and the places that it names so far."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.mark = secrets.token_hex(8)
        self.places: set[str] = set()
        folder = _leases()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder / f"{self.pid}-{self.mark}.jsonl"
        # Nobody sees the file under its name before it is locked.
        aside = self.path.with_suffix(".new")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(aside, flags, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        aside.rename(self.path)

    def add(self, place: str) -> None:
        """Writes a place down before anything is made there."""
        if place not in self.places:
            os.write(self._descriptor, place.encode() + b"\n")
            self.places.add(place)

    def end(self) -> None:
        """Removes the file, unless this is a fork of its process."""
        if self.pid == os.getpid():
            self.path.unlink(missing_ok=True)


_own: list[_Lease] = []
_examined: set[Path] = set()
"""Files of ended processes that `abandoned` has locked."""


def lease(kind: str, place: Mapping[str, Any]) -> None:
    """Names a place in which this process may leave something, until the process ends.

    Where the lease cannot be written, the next user of the same place removes what is left.
    """
    if (own := _lease_of_this_process()) is not None:
        with contextlib.suppress(OSError):
            own.add(json.dumps({"kind": kind, **place}, sort_keys=True))


def lease_processes() -> str:
    """Returns the mark of the processes that this one starts; empty where no lease can be written.

    They are ended by the next command if this one is killed.
    """
    own = _lease_of_this_process()
    if own is None:
        return ""
    lease(PROCESSES, {"mark": own.mark})
    return own.mark


def _lease_of_this_process() -> _Lease | None:
    if not _own or _own[-1].pid != os.getpid():
        try:
            made = _Lease()
        except OSError:
            return None
        _own[:] = [made]
        atexit.register(made.end)
    return _own[-1]


def is_leased(kind: str) -> bool:
    """Returns whether a process that is alive has a place of this kind."""
    for path in set(_files()) - _examined:
        with contextlib.suppress(OSError), regular.open_regular(path, follow=False) as file:
            places = [_place(line) for line in file.read(_READ_BYTES).splitlines()]
            if not any(place is not None and place[0] == kind for place in places):
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
    return False


def abandoned() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the places of processes that have ended without removing their lease: kind and place.

    A lease is locked while its places are yielded, and removed after the last: a process that is
    killed in between leaves it to the next one.
    """
    for path in _files():
        with contextlib.suppress(OSError), regular.open_regular(path, follow=False) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not path.exists():
                continue
            _examined.add(path)
            try:
                for line in file.read(_READ_BYTES).splitlines():
                    if (place := _place(line)) is not None:
                        yield place
                path.unlink()
            finally:
                _examined.discard(path)


def _files() -> list[Path]:
    try:
        return sorted(path for path in _leases().iterdir() if path.suffix == ".jsonl")
    except OSError:
        return []  # There are none, or they are another user's.


def _place(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Returns kind and place of a line; None of one that was being written."""
    try:
        place = dict(json.loads(line))
        return str(place.pop("kind")), place
    except (ValueError, KeyError, TypeError):
        return None


def _leases() -> Path:
    return state_root() / "leases"


class ScratchFolder:
    """A folder of this process, which the next command removes if the process is killed.

    directory: where it is made; that of temporary files unless one is named. Raises OSError where
    it cannot be made.
    """

    def __init__(self, directory: Path | None = None) -> None:
        directory = (directory or Path(tempfile.gettempdir())).absolute()
        lease(FOLDERS, {"directory": str(directory)})
        self.path = directory / f"{_PREFIX}{secrets.token_hex(8)}"
        self.path.mkdir(mode=0o700)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Removes the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


def scratch_folders(directory: Path) -> list[Path]:
    """Returns the scratch folders of this user in a directory, also those in use."""
    try:
        entries = [
            entry
            for entry in os.scandir(directory)
            if _FOLDER.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]
        user = os.geteuid()
        return [
            Path(entry.path)
            for entry in entries
            if entry.stat(follow_symlinks=False).st_uid == user
        ]
    except OSError:
        return []


def remove_unused(folder: Path) -> bool:
    """Removes a scratch folder that nobody holds; returns whether it did."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(folder, flags)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked, there = os.fstat(descriptor), folder.lstat()
        if (locked.st_dev, locked.st_ino) != (there.st_dev, there.st_ino):
            return False
        shutil.rmtree(folder)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
