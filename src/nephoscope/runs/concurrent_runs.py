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
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("/dev/shm/nephoscope-runs")
LOOK_EVERY_S = 1.0
"""Rounds can be milliseconds long; another run lasts for seconds."""
_ATTEMPTS = 3


class ConcurrentRuns:
    """Announces a run on the machines that it measures, and names others on them, once each."""

    def __init__(self, run_id: str, machines: frozenset[str]) -> None:
        self._machines = machines
        self._file = FOLDER / f"{run_id}.{os.getpid()}"
        self._run_id = run_id
        self._named: set[str] = set()
        self._next_look_s = 0.0

    @contextlib.contextmanager
    def announced(self) -> Iterator[None]:
        """Holds the announcement; without a folder that can be written nothing is announced."""
        try:
            FOLDER.mkdir(exist_ok=True)
            with contextlib.suppress(PermissionError):  # another user made it
                FOLDER.chmod(0o1777)
            _remove_leftovers()
            descriptor = self._locked_file()
        except OSError:
            yield
            return
        try:
            values = {"run": self._run_id, "pid": os.getpid(), "machines": sorted(self._machines)}
            os.write(descriptor, json.dumps(values).encode())
            yield
        finally:
            self._file.unlink(missing_ok=True)
            os.close(descriptor)

    def _locked_file(self) -> int:
        """Returns a descriptor of the file, locked; OSError when others keep taking it away."""
        for _ in range(_ATTEMPTS):
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            with contextlib.suppress(OSError):  # a run that removes leftovers holds or removed it
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(descriptor), self._file.stat()):
                    return descriptor
            os.close(descriptor)
        raise OSError(f"{self._file} is removed or locked by another process")

    def new_ones(self) -> list[str]:
        """Returns a sentence for each other run here that was not named before.

        Looks at most once in `LOOK_EVERY_S`.
        """
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return []
        self._next_look_s = now_s + LOOK_EVERY_S
        sentences = []
        with contextlib.suppress(OSError):
            for path in sorted(FOLDER.iterdir()):
                if path != self._file and path.name not in self._named and _is_locked(path):
                    self._named.add(path.name)
                    sentences += self._sentence(path)
        return sentences

    def _sentence(self, path: Path) -> list[str]:
        try:
            other = json.loads(path.read_bytes())
            run, pid, machines = other["run"], other["pid"], other["machines"]
            shared = ", ".join(sorted(self._machines & set(machines)))
        except (OSError, ValueError, KeyError, TypeError):
            return []
        if not shared:
            return []
        return [
            f"Run {run} (process {pid}) measures {shared} at the same time: each run's load "
            "disturbs the other's results."
        ]


def _remove_leftovers() -> None:
    """Removes announcements whose process has ended."""
    for path in FOLDER.iterdir():
        with contextlib.suppress(OSError):  # another user's file, or gone meanwhile
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
