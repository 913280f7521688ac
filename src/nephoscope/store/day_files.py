"""Day files: the summaries of the runs of one UTC day, one line each, when their trials are gone.

A run is in the store as a folder or as a line of a day file. Its line is written and synced before
its folder is removed; where a kill leaves both, the folder counts. A line that a kill cut off is of
a run whose folder is still there, so that nothing is lost by leaving it out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import zlib
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from nephoscope.core.errors import StoreError
from nephoscope.core.format_versions import DAY_FILE
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.store import journal, summary
from nephoscope.store.digests import digest_of
from nephoscope.store.files import (
    opened,
    remove_leftovers,
    sync_directory,
    translating_os_errors,
    write_atomically,
)
from nephoscope.store.objects.opening import mirror_of
from nephoscope.store.summary import RunMeasurements

WATCH = "watch"
"""Label of the runs of a watch. Each watch has a folder of day files, which it may limit."""
FOLDER = "days"
EVENTS = "events.jsonl"
DAY_S = 86_400
_NAME = re.compile(r"\d{4}-\d{2}-\d{2}\.jsonl")
_RUN = re.compile(rb'\{"run": "([0-9a-z_-]{1,200})"')
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class DayFile:
    """A day file. day: YYYY-MM-DD, UTC. watch: value of the label, empty for runs without it.
    ends_s: end of the day in seconds since the epoch."""

    path: Path
    day: str
    watch: str
    size_bytes: int
    ends_s: float


def folder_of(store: Path, watch: str) -> Path:
    """Returns the folder of a watch's day files; that of all other runs for an empty name."""
    name = quote(watch, safe="")
    if len(name) > _MAX_NAME:
        name = digest_of(watch.encode())
    return store / FOLDER / f"{WATCH}={name}" if watch else store / FOLDER


def path_of(store: Path, run: RunMeasurements) -> Path:
    """Returns the day file of a run: that of the UTC day on which it started."""
    day = datetime.fromtimestamp(run.started_s, UTC).strftime("%Y-%m-%d")
    return folder_of(store, run.labels.get(WATCH, "")) / f"{day}.jsonl"


def day_files(store: Path, watch: str | None = None) -> list[DayFile]:
    """Returns the day files of a store, or of a watch, oldest day first."""
    top = store / FOLDER
    mirror = mirror_of(store)
    if mirror is not None:
        from nephoscope.store.objects.days import refresh_days

        refresh_days(mirror)
    with translating_os_errors(top, "read"):
        if not top.is_dir():
            return []
        folders = [top, *top.glob(f"{WATCH}=*")] if watch is None else [folder_of(store, watch)]
        files = []
        for folder in folders:
            name = unquote(folder.name.partition("=")[2]) if folder != top else ""
            for path in folder.glob("*.jsonl"):
                with contextlib.suppress(ValueError, FileNotFoundError):
                    ends_s = _ends_s(path.name)
                    day = path.name.removesuffix(".jsonl")
                    files.append(DayFile(path, day, name, _size_bytes(path), ends_s))
    return sorted(files, key=lambda file: (file.day, file.watch))


def _size_bytes(path: Path) -> int:
    """Returns the size of a file; 0 of a loop of links, which whoever reads it will name."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        raise
    except OSError:
        return 0


def _ends_s(name: str) -> float:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name} is no day file")
    day = datetime.strptime(name, "%Y-%m-%d.jsonl").replace(tzinfo=UTC)
    return day.timestamp() + DAY_S


def summaries(
    store: Path, problems: list[str], *, without: Container[str] = ()
) -> Iterator[RunMeasurements]:
    """Yields the summaries of the day files, oldest day first; one run at a time is in memory.

    without: ids of runs whose folder was read. problems: receives a sentence for each line that is
    left out, and for each file that cannot be read.
    """
    seen: set[str] = set()
    for file in day_files(store):
        for run in read(file.path, problems):
            if run.run not in seen and run.run not in without:
                seen.add(run.run)
                yield run


def read(
    path: Path, problems: list[str], later: list[str] | None = None
) -> Iterator[RunMeasurements]:
    """Yields the summaries of a day file; adds a sentence to `problems` for each damaged line.

    A file that cannot be read is one problem: the other days do not depend on it.

    later: receives a sentence for all lines of a later format version; None for `problems`.
    """
    unread: Counter[tuple[int, str]] = Counter()
    for number, line in enumerate(_readable_lines(path, problems), start=1):
        if not line.endswith(b"\n"):
            problems.append(f"{path}: the last line is incomplete and left out.")
        elif (measured := summary.parsed(line[:-1])) is not None:
            yield measured
        elif (version := summary.later_version(line[:-1])) is not None:
            unread[version] += 1
        else:
            problems.append(f"{path}: line {number} is damaged and left out.")
    for (number, writer), lines in unread.items():
        runs = "one run is left out, which" if lines == 1 else f"{lines} runs are left out; each"
        sentence = " ".join(DAY_FILE.refusal(f"{path}: {runs}", number, writer))
        (problems if later is None else later).append(sentence)


def _readable_lines(path: Path, problems: list[str]) -> Iterator[bytes]:
    try:
        yield from _lines(path)
    except StoreError as error:
        problems.append(f"{error.message.removesuffix('.')}, and is left out.")


def _lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file; none of one that was removed since its folder was listed."""
    with (
        translating_os_errors(path, "read"),
        contextlib.suppress(FileNotFoundError),
        regular.open_regular(path) as stream,
    ):
        yield from regular.lines_of(stream)


def find(store: Path, name: str) -> tuple[str, Path] | None:
    """Returns the id of a compacted run and its day file, by its id or the beginning of it."""
    for file in reversed(day_files(store)):
        for line in _readable_lines(file.path, []):
            match = _RUN.match(line)
            if match and name and match[1].decode().startswith(name):
                return match[1].decode(), file.path
    return None


@dataclass(slots=True)
class DayWriter:
    """Puts summaries into the day files of a store. Only one process does so, see `locked`."""

    store: Path
    _known: dict[Path, dict[str, int]] = field(default_factory=dict)
    """Of each file that was written to: id of a run -> checksum of its line."""

    def put(self, measured: RunMeasurements) -> Path:
        """Stores a summary durably, instead of an earlier one of the same run; returns the file.

        Raises StoreError, and then leaves the file as it was.
        """
        path = path_of(self.store, measured)
        line = summary.line_of(measured)
        known = self._of(path)
        if known.get(measured.run) == zlib.crc32(line):
            return path
        if measured.run in known:
            self._replace(path, measured.run, line)
        else:
            _append(path, line)
        known[measured.run] = zlib.crc32(line)
        return path

    def _of(self, path: Path) -> dict[str, int]:
        if path not in self._known:
            with translating_os_errors(path.parent, "created"):
                path.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(path.parent)
            self._known[path] = _known_lines(path)
        return self._known[path]

    def _replace(self, path: Path, run: str, new: bytes) -> None:
        with translating_os_errors(path, "read"):
            lines = [*_lines(path)]
        changed = [
            new if (match := _RUN.match(line)) and match[1].decode() == run else line
            for line in lines
        ]
        write_atomically(path, b"".join(changed))


def _known_lines(path: Path) -> dict[str, int]:
    """Returns the checksum of each run's line; removes what a kill left of the last line."""
    known = {}
    end = 0
    for line in _lines(path):
        if not line.endswith(b"\n"):
            with translating_os_errors(path, "written"):
                os.truncate(path, end)
            break
        end += len(line)
        match = _RUN.match(line)
        if match and journal.is_intact(line[:-1]):
            known[match[1].decode()] = zlib.crc32(line)
    return known


def _append(path: Path, line: bytes) -> None:
    is_new = not path.exists()
    # Without a buffer, which would keep what a full disk refused, and write it when it is closed.
    with (
        translating_os_errors(path, "written"),
        regular.open_to_append(path, buffering=0) as stream,
    ):
        end = stream.seek(0, os.SEEK_END)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[stream.write(rest) :]
            os.fsync(stream.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                stream.truncate(end)
            raise
    if is_new:
        with translating_os_errors(path.parent, "written"):
            sync_directory(path.parent)
            sync_directory(path.parent.parent)


def remove(store: Path, file: DayFile, reason: str) -> None:
    """Removes a day file for good, after an event with the reason was written."""
    journal.append(
        store / FOLDER / EVENTS,
        {
            "event": "day_removed",
            "day": file.day,
            "watch": file.watch,
            "bytes": file.size_bytes,
            "reason": reason,
        },
    )
    with translating_os_errors(file.path, "removed"):
        file.path.unlink(missing_ok=True)
        sync_directory(file.path.parent)


def events(store: Path) -> list[dict[str, Any]]:
    """Returns the events of removed days in order."""
    return journal.Journal().read(store / FOLDER / EVENTS).events()


@contextlib.contextmanager
def locked(store: Path) -> Iterator[None]:
    """Held while a process changes day files. Raises StoreError while another one does."""
    folder = store / FOLDER
    with translating_os_errors(folder, "created"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"Another process compacts the store {store}.", "Try again when it has ended."
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
