"""The files of one server type: PROVIDER/TYPE/TASK/FILE, each read within bounds."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from nephoscope.core import limits
from nephoscope.core.reading import jsontext, regular
from nephoscope.core.reading.printable import printable
from nephoscope.core.records import dataclass
from nephoscope.store.imports.moments import moment_s

Stamp = tuple[str, int, int]
"""Path below the type's folder, size in bytes, nanoseconds of the last change."""


@dataclass(frozen=True)
class TypeFolder:
    """The folder of a server type and its files, without links."""

    provider: str
    name: str
    path: Path
    stamps: tuple[Stamp, ...]

    @cached_property
    def digest(self) -> str:
        """Digest of the names, sizes and times of the files: the same as long as none changes."""
        text = "\n".join(f"{name}\0{size}\0{changed}" for name, size, changed in self.stamps)
        return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    @cached_property
    def tasks(self) -> Mapping[str, TaskFolder]:
        """The folder of each task, by name."""
        files: dict[str, dict[str, int]] = {}
        for name, size, _ in self.stamps:
            task, slash, rest = name.partition("/")
            if slash:
                files.setdefault(task, {})[rest] = size
        return {task: TaskFolder(task, self.path / task, sizes) for task, sizes in files.items()}


@dataclass(frozen=True)
class TaskFolder:
    """The files of one task. sizes: bytes of each file, by its path below the folder."""

    task: str
    path: Path
    sizes: Mapping[str, int]

    def has(self, name: str) -> bool:
        """States whether there is such a file with a content."""
        return self.sizes.get(name, 0) > 0

    def text(self, name: str = "stdout") -> str:
        """Returns the text of a file. ValueError with a few words where it cannot be used."""
        if self.sizes.get(name, 0) > limits.MARKET_FILE_BYTES:
            raise ValueError(f"it is larger than {limits.MARKET_FILE_BYTES >> 20} MiB")
        try:
            with regular.open_regular(self.path / name) as stream:
                raw = stream.read(limits.MARKET_FILE_BYTES + 1)
        except OSError as error:
            raise ValueError(f"it cannot be read: {error.strerror}") from None
        if len(raw) > limits.MARKET_FILE_BYTES:
            raise ValueError(f"it is larger than {limits.MARKET_FILE_BYTES >> 20} MiB")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError("it is no UTF-8 text") from None

    def json(self, name: str = "stdout") -> Any:
        """Returns the JSON value of a file. ValueError with a few words where it has none."""
        text = self.text(name)
        try:
            return jsontext.parse(text)
        except ValueError as error:
            at = getattr(error, "lineno", None)
            raise ValueError(f"line {at}: invalid JSON" if at else f"{error}") from None

    def rows(self, columns: tuple[str, ...], name: str = "stdout") -> Iterator[dict[str, str]]:
        """Yields the rows of a CSV file as cells by column. ValueError for other columns."""
        reader = csv.DictReader(io.StringIO(self.text(name)), strict=True)
        try:
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
            if missing:
                raise ValueError(f"the column '{missing[0]}' is missing")
            for cells in reader:
                if None in cells.values() or None in cells:
                    raise ValueError(f"line {reader.line_num}: it has not as many cells as columns")
                yield cells
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num}: invalid CSV ({error})") from None

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """What the task states of its execution; empty where it states nothing usable."""
        try:
            values = self.json("meta.json") if self.has("meta.json") else {}
        except ValueError:
            return {}
        return values if isinstance(values, dict) else {}

    @property
    def ended_at_s(self) -> int:
        """Seconds since 1970 at which the task ended; 0 where it does not state them."""
        return int(moment_s(self.meta.get("end")) or 0)

    @property
    def has_failed(self) -> bool:
        """States whether the task ended with an error."""
        return self.meta.get("exit_code") not in (None, 0)


def scan(root: Path) -> Iterator[TypeFolder]:
    """Yields the folder of each server type in order of provider and name. Links are not followed.

    Raises OSError where a folder cannot be read, ValueError beyond the bounds.
    """
    count = 0
    names: set[tuple[str, str]] = set()
    for provider in _folders(root):
        for server in _folders(root / provider):
            count += 1
            if count > limits.MARKET_TYPES:
                raise ValueError(f"it has more than {limits.MARKET_TYPES:,} server types")
            path = root / provider / server
            stamps = tuple(sorted(_stamps(path, "", 0)))
            key = (readable(provider), readable(server))
            if key in names:  # after what cannot be printed was replaced
                key = (key[0], f"{key[1][:90]}~{count}")
            names.add(key)
            yield TypeFolder(*key, path, stamps)


def readable(name: str) -> str:
    """Returns the name of a file as a text to store and print, of at most 100 characters."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return printable(text).replace("\n", " ").replace("\t", " ")[:100]


def _folders(path: Path) -> list[str]:
    with os.scandir(path) as entries:
        return sorted(
            entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        )


def _stamps(path: Path, inside: str, depth: int) -> list[Stamp]:
    result: list[Stamp] = []
    with os.scandir(path) as entries:
        for entry in entries:
            name = f"{inside}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if depth < 2:
                    result += _stamps(Path(entry.path), f"{name}/", depth + 1)
            elif entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                result.append((name, status.st_size, status.st_mtime_ns))
            if len(result) > limits.MARKET_TYPE_FILES:
                raise ValueError(f"{path} has more than {limits.MARKET_TYPE_FILES:,} files")
    return result
