"""The journal of a run, journal.jsonl: one event a line, each with a checksum of its own.

A line that was changed afterwards is named and left out, whatever it says now. Journals of versions
without checksums are read as they are.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.reading import jsontext, regular
from nephoscope.store.digests import digest_of
from nephoscope.store.files import translating_os_errors

DAMAGED = "line_damaged"
"""Event that stands for a line whose checksum is not that of its text."""

_STORED, _MERGED = "trials_stored", "trials_merged"
_FILE = re.compile(r"[rw]\d+-s[^/\0]{1,200}\.parquet")
"""Name of a trial's file: in the run's folder, whatever else a line may hold."""
_SUM = re.compile(rb', "crc32": "([0-9a-f]{8})"\}\Z')
_SUM_BYTES = len(', "crc32": "01234567"}')


def stored_event(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Returns the event of trial files (name -> content) that were put into their place."""
    return {"event": _STORED, "sha256": {name: digest_of(text) for name, text in files.items()}}


def removed_event(names: Iterable[str]) -> dict[str, Any]:
    """Returns the event of trial files that were taken away again."""
    return {"event": _STORED, "sha256": dict.fromkeys(names)}


def merged_event(names: Iterable[str]) -> dict[str, Any]:
    """Returns the event of trials that were put together, by name; see merged_trials.py."""
    return {"event": _MERGED, "trials": [*names]}


def append(path: Path, event: Mapping[str, Any]) -> None:
    """Adds one line, with the time and its checksum."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    with translating_os_errors(path, "written"), regular.open_to_append(path) as stream:
        _remove_cut_off_line(stream)
        stream.write(with_checksum({"at": at, **event}))


def with_checksum(values: Mapping[str, Any]) -> bytes:
    """Returns a line of JSON that ends with the checksum of its text."""
    text = json.dumps(values, allow_nan=False, default=str)
    return f'{text[:-1]}, "crc32": "{zlib.crc32(text.encode()):08x}"}}\n'.encode()


def _remove_cut_off_line(stream: Any) -> None:
    """Removes what a kill left of a last line, which would swallow the next one."""
    size = stream.seek(0, 2)
    if size:
        stream.seek(size - 1)
        if stream.read(1) != b"\n":
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)


def _content(path: Path) -> bytes:
    """Returns a journal as it is; empty where there is none."""
    try:
        return regular.read_regular(path, limits.JOURNAL_BYTES)
    except FileNotFoundError:
        return b""


def extent(path: Path) -> dict[str, Any]:
    """Returns length and digest of a journal, for the manifest of a run that ends."""
    with translating_os_errors(path, "read"):
        content = _content(path)
    return {"bytes": len(content), "sha256": digest_of(content)}


class Journal:
    """The events of one journal; a later reading continues where the one before ended.

    start: byte from which on it is read.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = self._offset = start
        self._lines: list[tuple[dict[str, Any] | None, bool]] = []
        """Of each line the event, None where it cannot be read, and whether its checksum holds."""

    def read(self, path: Path) -> Journal:
        """Reads what was added since; a last line that was cut off is left out."""
        with translating_os_errors(path, "read"):
            try:
                added = regular.read_regular(path, limits.JOURNAL_BYTES, start=self._offset)
            except FileNotFoundError:
                return self
        whole, newline, _ = added.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        if newline:
            self._lines += map(parsed_line, whole.split(b"\n"))
        return self

    @property
    def has_checksums(self) -> bool:
        """States whether a version that writes checksums wrote it."""
        return any(holds for _, holds in self._lines)

    def events(self) -> list[dict[str, Any]]:
        """Returns the events in order; DAMAGED stands for a line that was changed."""
        if not self.has_checksums:
            return [event for event, _ in self._lines if event is not None]
        return [
            event if holds and event is not None else {"at": None, "event": DAMAGED, "line": number}
            for number, (event, holds) in enumerate(self._lines, start=1)
        ]

    def digests(self) -> dict[str, str]:
        """Returns the digest of each trial file by its name; the last one where it was rewritten.

        The trials of a line that was cut off or damaged have none.
        """
        known: dict[str, Any] = {}
        for event in self.events():
            digests = event.get("sha256") if event.get("event") == _STORED else None
            if isinstance(digests, dict):
                known |= {name: digest for name, digest in digests.items() if _FILE.fullmatch(name)}
        return {name: str(digest) for name, digest in known.items() if digest}

    def merged(self) -> set[str]:
        """Returns the names of all trials that were put together."""
        return {
            str(name)
            for event in self.events()
            if event.get("event") == _MERGED and isinstance(event.get("trials"), list)
            for name in event["trials"]
        }

    def problems(self, path: Path, ended: Mapping[str, Any] | None) -> list[str]:
        """Returns a sentence for what is damaged. ended: `extent` when the run ended, if it did."""
        lines = [str(event["line"]) for event in self.events() if event.get("event") == DAMAGED]
        if lines:
            which = f"lines {', '.join(lines)} are" if len(lines) > 1 else f"line {lines[0]} is"
            return [f"{path}: {which} damaged and left out."]
        if ended is None:
            return []
        with translating_os_errors(path, "read"):
            content = _content(path)
        if digest_of(content[: ended["bytes"]]) == ended["sha256"]:
            return []
        return [f"{path} is damaged: it is not what was stored when the run ended."]


def parsed_line(line: bytes) -> tuple[dict[str, Any] | None, bool]:
    """Returns what a line holds, None where that is no JSON, and whether its checksum is right."""
    text, holds = _text(line)
    try:
        event = jsontext.parse(text)
    except ValueError:
        return None, holds
    return (event if isinstance(event, dict) else None), holds


def is_intact(line: bytes) -> bool:
    """States whether a line, without its newline, has the checksum of its text."""
    return _text(line)[1]


def _text(line: bytes) -> tuple[bytes, bool]:
    """Returns a line without its checksum, and whether that is right."""
    match = _SUM.search(line, max(0, len(line) - _SUM_BYTES))
    text = line[: match.start()] + b"}" if match else line
    return text, match is not None and zlib.crc32(text) == int(match[1], 16)
