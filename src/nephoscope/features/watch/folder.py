"""The folder of a watch, STORE/watches/NAME: its definition, its events, its two locks.

A process holds `running.lock` as long as it repeats the plan and `measuring.lock` while it
measures. The kernel ends both with the process, so that what runs is known after any kill.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from nephoscope import __version__
from nephoscope.core import limits
from nephoscope.core.errors import LaterFormat, StoreError, UnknownName, UsageError
from nephoscope.core.format_versions import WATCH
from nephoscope.core.reading import jsontext, regular
from nephoscope.core.reading.fields import NAME
from nephoscope.features.watch.records import Definition
from nephoscope.store import Store, digests
from nephoscope.store.files import opened, translating_os_errors, write_atomically

_DEFINITION = TypeAdapter(Definition)
_RELEASE_S = 1.0


class WatchFolder:
    """STORE/watches/NAME."""

    def __init__(self, store: Store, name: str) -> None:
        if not re.fullmatch(NAME, name):
            raise UsageError(
                f"'{name[:80]}' is no name of a watch.",
                "Use up to 40 lower-case letters, digits, '-' and '_'.",
            )
        self.name = name
        self.watches = store.path / "watches"
        self.path = self.watches / name
        self.events = self.path / "events"

    def create(self) -> None:
        """Makes the folder where it is missing."""
        with translating_os_errors(self.path, "created"):
            self.watches.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.events.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, definition: Definition) -> None:
        """Writes the definition. LaterFormat where a later program made the watch."""
        with contextlib.suppress(UnknownName):
            _refuse_later_version(self._definition, self._content())
        values = {"version": WATCH.version, "nephoscope": __version__, **asdict(definition)}
        write_atomically(self._definition, digests.with_own_digest(values))

    @property
    def _definition(self) -> Path:
        return self.path / "watch.json"

    def _content(self) -> bytes:
        """Returns what the definition's file holds. UnknownName where there is none."""
        with translating_os_errors(self._definition, "read"):
            try:
                return regular.read_regular(self._definition, limits.TEXT_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                raise UnknownName(
                    f"There is no watch '{self.name}' in {self.watches.parent}.",
                    "`nephoscope watch --list` prints them.",
                ) from None

    def read(self) -> Definition:
        """Returns the definition.

        UnknownName where there is none, StoreError for a damaged one, LaterFormat for one of a
        later program. A definition without a version is of version 1.
        """
        path, raw = self._definition, self._content()
        _refuse_later_version(path, raw)
        try:
            values = jsontext.parse(raw)
            if not isinstance(values, dict):
                raise ValueError("it is no object")
            for key in (digests.KEY, "version", "nephoscope"):
                values.pop(key, None)
            if not digests.has_own_digest(raw):
                raise ValueError("its content is not what was stored")
            definition = _DEFINITION.validate_python(values)
            if (definition.every_s is None) == (definition.cron is None):
                raise ValueError("it has no schedule, or two")
            return definition
        except (ValueError, AttributeError, ValidationError) as error:
            raise StoreError(
                f"{path} is damaged.", "Start the watch again; its runs and events are kept."
            ) from error

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Holds the watch. StoreError where another process repeats it."""
        with self._locked("running.lock") as got:
            if not got:
                raise StoreError(
                    f"The watch '{self.name}' is running already in {self.watches.parent}.",
                    "Stop it first, or give this one another name with --name.",
                )
            yield

    @contextlib.contextmanager
    def measuring(self, max_runs: int) -> Iterator[bool]:
        """Yields whether a run may start now: the watches of the store have a place left.

        The smallest bound of the watches that run holds for all of them.
        """
        with contextlib.ExitStack() as stack:
            with self._store_locked():
                siblings = [
                    folder
                    for folder in self.siblings()
                    if folder.name != self.name and folder.is_running
                ]
                bounds = [folder.bound() for folder in siblings]
                busy = sum(folder.is_measuring for folder in siblings)
                free = busy < min([max_runs, *bounds])
                free = free and stack.enter_context(self._locked("measuring.lock"))
            yield free

    def bound(self) -> int:
        """Returns the bound of runs that this watch was started with."""
        try:
            return self.read().max_runs
        except (StoreError, UnknownName):
            return 1

    def siblings(self) -> list[WatchFolder]:
        """Returns the watches of the store by name, this one too."""
        if not self.watches.is_dir():
            return []
        with translating_os_errors(self.watches, "read"):
            names = sorted(os.listdir(self.watches))
        store = Store(self.watches.parent)
        return [WatchFolder(store, name) for name in names if re.fullmatch(NAME, name)]

    @property
    def is_running(self) -> bool:
        """States whether a process repeats the plan."""
        return self._is_locked("running.lock")

    @property
    def is_measuring(self) -> bool:
        """States whether a run of the watch is measured now."""
        return self._is_locked("measuring.lock")

    def _is_locked(self, name: str) -> bool:
        if not (self.path / name).exists():
            return False
        with self._locked(name, shared=True) as got:
            return not got

    @contextlib.contextmanager
    def _locked(self, name: str, *, shared: bool = False) -> Iterator[bool]:
        with opened(self.path / name, os.O_RDWR | os.O_CREAT) as descriptor:
            mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            # A process that only asks whether it is locked holds the lock for a moment.
            until_s = time.monotonic() + (0.0 if shared else _RELEASE_S)
            while not (got := _lock(descriptor, mode)) and time.monotonic() < until_s:
                time.sleep(0.01)
            yield got

    @contextlib.contextmanager
    def _store_locked(self) -> Iterator[None]:
        with opened(self.watches, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield


def _refuse_later_version(path: Path, raw: bytes) -> None:
    """Raises LaterFormat for a watch of a later program: its events may mean something else."""
    with contextlib.suppress(ValueError):
        values = jsontext.parse(raw)
        version = values.get("version") if isinstance(values, dict) else None
        if WATCH.is_later(version):
            writer = str(values.get("nephoscope") or "")
            raise LaterFormat(*WATCH.refusal(path, version, writer))


def _lock(descriptor: int, mode: int) -> bool:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
