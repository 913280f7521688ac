"""Runs that measure the same machine at the same time, which disturb each other.

A run announces itself in a file that it holds locked: the lock ends with its process, so a file
that is not locked is a leftover, which the next run removes. Every user of the machine sees the
folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from nephoscope.core.format_versions import ANNOUNCEMENT
from nephoscope.core.reading import jsontext

FOLDER = Path("/dev/shm/nephoscope-runs")
POLL_INTERVAL_S = 1.0
"""Rounds can be milliseconds long; another run lasts for seconds."""
_ATTEMPTS = 3

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Every user of the machine may put a link or a named pipe into the folder."""
_ANNOUNCEMENT_BYTES = 1 << 16


class ConcurrentRuns:
    """Announces a run on the machines that it measures, and names others on them, once each."""

    def __init__(self, run_id: str, machines: frozenset[str]) -> None:
        self._machines = machines
        self._file = f"{run_id}.{os.getpid()}"
        self._run_id = run_id
        self._named: set[str] = set()
        self._next_poll_s = 0.0

    @contextlib.contextmanager
    def announced(self) -> Iterator[None]:
        """Holds the announcement; without a folder that can be written nothing is announced."""
        try:
            with _folder(make=True) as folder:
                _remove_leftovers(folder)
                descriptor = self._locked_file(folder)
        except OSError:
            yield
            return
        try:
            values = {
                "version": ANNOUNCEMENT.version,
                "run": self._run_id,
                "pid": os.getpid(),
                "machines": sorted(self._machines),
            }
            os.write(descriptor, json.dumps(values).encode())
            yield
        finally:
            with contextlib.suppress(OSError), _folder() as folder:
                os.unlink(self._file, dir_fd=folder)
            os.close(descriptor)

    def _locked_file(self, folder: int) -> int:
        """Returns a descriptor of the file, locked; OSError when others keep taking it away."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        for _ in range(_ATTEMPTS):
            descriptor = os.open(self._file, flags, 0o644, dir_fd=folder)
            with contextlib.suppress(OSError):  # a run that removes leftovers holds or removed it
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                named = os.stat(self._file, dir_fd=folder, follow_symlinks=False)
                if os.path.samestat(os.fstat(descriptor), named):
                    return descriptor
            os.close(descriptor)
        raise OSError(f"{self._file} is removed or locked by another process")

    def new_ones(self) -> list[str]:
        """Returns a sentence for each other run here that was not named before.

        Looks at most once in `POLL_INTERVAL_S`.
        """
        now_s = time.monotonic()
        if now_s < self._next_poll_s:
            return []
        self._next_poll_s = now_s + POLL_INTERVAL_S
        sentences = []
        with contextlib.suppress(OSError), _folder() as folder:
            for name in sorted(os.listdir(folder)):
                if name != self._file and name not in self._named and _is_locked(name, folder):
                    self._named.add(name)
                    sentences += self._sentence(name, folder)
        return sentences

    def _sentence(self, name: str, folder: int) -> list[str]:
        try:
            with open(os.open(name, _READ, dir_fd=folder), "rb") as stream:
                if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    return []
                announced = jsontext.parse(stream.read(_ANNOUNCEMENT_BYTES))
            if ANNOUNCEMENT.is_later(announced.get("version", 1)):
                sentence, step = ANNOUNCEMENT.refusal(FOLDER / name, announced["version"])
                return [f"{sentence} Whether that run disturbs this one is unknown. {step}"]
            run, pid, machines = announced["run"], announced["pid"], announced["machines"]
            shared = ", ".join(sorted(self._machines & set(machines)))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return []
        if not shared:
            return []
        return [
            f"Another run is active on {shared} ({run}, process {pid}): the results of both suffer."
        ]


@contextlib.contextmanager
def _folder(*, make: bool = False) -> Iterator[int]:
    """Yields a descriptor of the folder; OSError where there is none or a link is in its place.

    Every user may write to the place where it is. All names are looked up below the descriptor, so
    that whoever owns the folder cannot put another one in its place meanwhile.
    """
    with contextlib.suppress(FileExistsError):
        if make:
            FOLDER.mkdir()
    descriptor = os.open(FOLDER, _READ | os.O_DIRECTORY)
    try:
        if make and os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, 0o1777)
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_leftovers(folder: int) -> None:
    """Removes announcements whose process has ended."""
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):  # another user's file, or gone meanwhile
            descriptor = os.open(name, _READ, dir_fd=folder)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=folder)
            finally:
                os.close(descriptor)


def _is_locked(name: str, folder: int) -> bool:
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
