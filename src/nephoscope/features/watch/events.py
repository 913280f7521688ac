"""Events of a watch: lines with checksums in numbered files, and the state that follows from them.

The events are the only memory of a watch. Each file begins with the state at that moment, so that a
restart reads one file. Files that are full are compressed; the oldest ones are removed.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.errors import StoreError
from nephoscope.core.reading import regular
from nephoscope.features.watch.digest import Day
from nephoscope.store import journal
from nephoscope.store.files import translating_os_errors, write_atomically

FILE_BYTES = 1 << 20
"""Size from which a new file is begun."""
MAX_FILES = 200
"""Files that are kept, about 20 MB when compressed; at one run in 5 min those of three years."""
MAX_WAITING = 100_000
"""Events that are kept in memory while they cannot be written."""
CONTINUED = "continued"


@dataclass(slots=True)
class State:
    """What the events of a watch amount to.

    counts: events by kind. due_s: newest moment of the schedule that was used or skipped, epoch s.
    run: id of the newest run. open: a repetition has begun and not ended. failing: target (empty:
    the whole repetition) -> failures in a row, starts that are still skipped, sentence. alarms: key
    of an alarm -> when its command last ran, epoch s. day: of which there is no digest yet.
    """

    counts: dict[str, int] = field(default_factory=dict)
    series: int = 0
    plan_hash: str = ""
    due_s: float | None = None
    open: bool = False
    run: str = ""
    last_run: str = ""
    last_end: str = ""
    verdict: str = ""
    failing: dict[str, list[Any]] = field(default_factory=dict)
    alarms: dict[str, float] = field(default_factory=dict)
    day: Day = field(default_factory=Day)

    def apply(self, event: Mapping[str, Any]) -> None:
        """Takes one event in."""
        kind = str(event["event"])
        if kind == CONTINUED:
            return
        self.counts[kind] = self.counts.get(kind, 0) + int(event.get("count", 1))
        self.due_s = event.get("due_s", self.due_s)
        if kind in ("repetition_started", "start_skipped"):
            for entry in self.failing.values():
                entry[1] = max(0, entry[1] - 1)
        if kind == "series_started":
            self.series, self.plan_hash = int(event["series"]), str(event["plan_hash"])
        elif kind == "repetition_started":
            self.open, self.run = True, ""
        elif kind == "run_created":
            self.run = str(event["run"])
        elif kind in ("repetition_ended", "repetition_interrupted", "repetition_failed"):
            self.open = False
            self.last_end = str(event["at"])
            self.last_run = self.run or self.last_run
            self.verdict = str(event.get("verdict") or event.get("sentence") or "")
        self._note_failures(kind, event)
        self.day.apply(event)

    def _note_failures(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "alarm_handled":
            self.alarms[str(event["alarm"])] = float(event["at_s"])
        elif kind in ("target_failed", "repetition_failed"):
            entry = [int(event["failures"]), int(event["skips"]), str(event["sentence"])]
            self.failing[str(event.get("target", ""))] = entry
        elif kind in ("target_answers", "repetition_ended"):
            self.failing.pop(str(event.get("target", "")), None)


class EventLog:
    """Appends the events of the one process that repeats the plan.

    What cannot be written (a full disk) waits in memory and is written before the next event.
    """

    def __init__(self, folder: Path, now_s: Callable[[], float]) -> None:
        self._folder = folder
        self._now_s = now_s
        self._waiting: deque[dict[str, Any]] = deque(maxlen=MAX_WAITING)
        self.state = state_of(folder)
        self._file = max(_files(folder).values(), default=folder / "000001.jsonl")
        if self._file.suffix == ".gz":
            self._file = _next(self._file)

    def append(self, kind: str, *, sync: bool = False, **details: Any) -> StoreError | None:
        """Adds an event; returns the reason for which it waits in memory, None when written.

        sync: so that it outlives a power failure.
        """
        event = self._event(kind, **details)
        self.state.apply(event)
        self._waiting.append(event)
        try:
            self._flush()
            if sync:
                with regular.open_regular(self._file) as stream:
                    os.fsync(stream.fileno())
        except (StoreError, OSError) as error:
            return error if isinstance(error, StoreError) else StoreError(f"{self._file}: {error}.")
        return None

    def _event(self, kind: str, **details: Any) -> dict[str, Any]:
        at = datetime.fromtimestamp(self._now_s(), UTC).isoformat(timespec="milliseconds")
        return {"at": at, "event": kind, **details}

    def _flush(self) -> None:
        while self._waiting:
            journal.append(self._file, self._waiting[0])
            self._waiting.popleft()
        if self._file.stat().st_size >= FILE_BYTES:
            self._begin_file()

    def _begin_file(self) -> None:
        full, self._file = self._file, _next(self._file)
        journal.append(self._file, self._event(CONTINUED, state=asdict(self.state)))
        with translating_os_errors(full, "compressed"):
            content = regular.read_regular(full, limits.JOURNAL_BYTES)
            write_atomically(full.with_suffix(".jsonl.gz"), gzip.compress(content))
            full.unlink()
            for path in sorted(_files(self._folder).values())[:-MAX_FILES]:
                path.unlink()


def events(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the events that are kept, oldest first; a damaged line is left out."""
    for _, path in sorted(_files(folder).items()):
        yield from _events_of(path)


def state_of(folder: Path) -> State:
    """Returns the state after the last event; reads back to the newest state that is readable."""
    newest_first = sorted(_files(folder).items(), reverse=True)
    later: list[list[dict[str, Any]]] = []
    state = State()
    for _, path in newest_first:
        read = _events_of(path)
        later.append(read)
        if read and read[0]["event"] == CONTINUED:
            known = {name.name for name in fields(State)}
            state = State(**{key: v for key, v in read[0]["state"].items() if key in known})
            state.day = Day(**(read[0]["state"].get("day") or {}))
            break
    for read in reversed(later):
        for event in read:
            state.apply(event)
    return state


def _events_of(path: Path) -> list[dict[str, Any]]:
    """Returns the events of a file without lines that are damaged or cut off.

    It may have been compressed, or removed, since the folder was listed.
    """
    content = b""
    for file in (path, path.with_suffix(".jsonl.gz")):
        with translating_os_errors(file, "read"), contextlib.suppress(FileNotFoundError):
            content = regular.read_regular(file, limits.JOURNAL_BYTES)
            break
    if content and file.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise StoreError(f"{path} is damaged.", "Move it away; later files go on.") from error
    parsed = map(journal.parsed_line, content.split(b"\n")[:-1])
    return [event for event, holds in parsed if holds and event is not None]


def _files(folder: Path) -> dict[str, Path]:
    """Returns the files by number; of one that was being compressed the original."""
    if not folder.is_dir():
        return {}
    with translating_os_errors(folder, "read"):
        paths = [path for path in folder.iterdir() if path.name[0] != "."]
    return {path.name.partition(".")[0]: path for path in sorted(paths, reverse=True)}


def _next(path: Path) -> Path:
    return path.with_name(f"{int(path.name.partition('.')[0]) + 1:06d}.jsonl")
