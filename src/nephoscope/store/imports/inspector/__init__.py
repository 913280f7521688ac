"""The measurements of Spare Cores as its repository has them: data/PROVIDER/TYPE/TASK/FILE.

Read type by type. After each batch a part is written, so that a killed import goes on from there;
types whose files did not change since are not read again.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.reading.printable import printable
from nephoscope.store.files import translating_os_errors
from nephoscope.store.imports.inspector.folder import TypeFolder, scan
from nephoscope.store.imports.inspector.tasks import FACTS, REDUNDANT, TASKS, read_type
from nephoscope.store.market import catalogue
from nephoscope.store.market.records import LACKS, TypeReading

_BATCH_FIGURES = 25_000
"""Figures of a part: a killed import reads at most so many again, half a second of work."""
_BATCH_TYPES = 200
_NAMED = 200
"""Sentences on unusable files that are stored."""
SOURCE = "Spare Cores"

Progress = Callable[[str], object]


@dataclass(slots=True)
class TreeImport:
    """What an import did. read, unchanged: types; resumed: of the unchanged, types that an import
    which did not end had read.

    files, files_read: of the types that were read. left_out: 'file: reason', the first ones.
    left_out_count: of all. not_read: task -> files. stored: types, figures, launches of the store.
    """

    root: str
    read: int = 0
    unchanged: int = 0
    resumed: int = 0
    files: int = 0
    files_read: int = 0
    without_value: int = 0
    failed_tasks: int = 0
    left_out: list[str] = field(default_factory=list)
    left_out_count: int = 0
    not_read: dict[str, int] = field(default_factory=dict)
    stored_types: int = 0
    stored_figures: int = 0
    stored_launches: int = 0
    elapsed_s: float = 0.0
    lacks: str = LACKS


def find_root(path: Path) -> Path | None:
    """Returns the folder of the providers of such a tree: `data/` in a clone, or itself.

    None for a folder in which no PROVIDER/TYPE/TASK is of the layout.
    """
    for root in (path / "data", path):
        try:
            if any(_is_type(folder) for folder in _first(root)):
                return root
        except (OSError, ValueError):
            continue
    return None


def _first(root: Path, most: int = 50) -> Iterator[TypeFolder]:
    for number, folder in enumerate(scan(root)):
        if number >= most:
            return
        yield folder


def _is_type(folder: TypeFolder) -> bool:
    known = set(folder.tasks) & (TASKS.keys() | FACTS | REDUNDANT)
    return bool(known) and any(
        {"meta.json", "stdout"} & task.sizes.keys() for task in folder.tasks.values()
    )


def import_tree(
    path: Path, store: Path, *, note: Progress = lambda sentence: None, every_s: float = 10.0
) -> TreeImport:
    """Imports a folder of measurements into a store; goes on where an earlier import was killed.

    note: gets a sentence on the progress every `every_s`. Raises UsageError for a folder of another
    layout, StoreError where it or the store cannot be used.
    """
    root = find_root(path)
    if root is None:
        raise UsageError(
            f"{path}: this directory has no PROVIDER/TYPE/TASK/stdout of Spare Cores.",
            "Name a clone of SpareCores/sc-inspector-data, or a result file of another tool.",
        )
    name = os.fsencode(root.resolve()).decode("utf-8", "backslashreplace")
    folder = catalogue.folder_of(store)
    began = time.monotonic()
    with translating_os_errors(folder, "written"):
        folder.mkdir(parents=True, exist_ok=True)
    with _only_import(folder):
        folders = list(_folders(root))
        present = {(each.provider, each.name): each.digest for each in folders}
        done = _stored(folder, name)
        result = TreeImport(name)
        batch: list[TypeReading] = []
        number = catalogue.next_number(catalogue.parts_of(folder))
        spoken = time.monotonic()
        folders.reverse()
        while folders:  # what was read is let go
            each = folders.pop()
            key = (each.provider, each.name)
            if done.get(key, ("", False))[0] == each.digest:
                result.unchanged += 1
                result.resumed += done[key][1]
                continue
            batch.append(read_type(each, name))
            _count(result, batch[-1])
            if _is_full(batch):
                catalogue.write_part(folder, number, batch)
                number, batch = number + 1, []
            if time.monotonic() - spoken > every_s:
                spoken = time.monotonic()
                note(f"{result.read + result.unchanged:,} of {len(present):,} server types read.")
        if batch:
            catalogue.write_part(folder, number, batch)
        merged = catalogue.merge(folder, name, present, _facts(result))
    result.stored_types = len(merged.types)
    result.stored_figures = merged.figures
    result.stored_launches = len(merged.metadata.launches)
    result.elapsed_s = time.monotonic() - began
    return result


def _folders(root: Path) -> Iterator[TypeFolder]:
    try:
        yield from scan(root)
    except OSError as error:
        raise StoreError(
            f"{error.filename or root} cannot be read: {error.strerror}.", "Check its permissions."
        ) from error
    except ValueError as error:
        raise UsageError(f"{root}: {error}.", "Import a part of it.") from error


def _stored(folder: Path, root: str) -> dict[tuple[str, str], tuple[str, bool]]:
    """Returns the digest of each type of a folder that is stored already, and whether it is in a
    part of an import that did not end."""
    done: dict[tuple[str, str], tuple[str, bool]] = {}
    complete = folder / "catalogue.parquet"
    for path in [*([complete] if complete.is_file() else []), *catalogue.parts_of(folder)]:
        for server in catalogue.read_metadata(path).types:
            if server.root == root:
                done[server.key] = (server.digest, path != complete)
    return done


def _is_full(batch: list[TypeReading]) -> bool:
    return len(batch) >= _BATCH_TYPES or sum(len(r.figures) for r in batch) >= _BATCH_FIGURES


def _count(result: TreeImport, reading: TypeReading) -> None:
    result.read += 1
    result.files += reading.counts.get("files", 0)
    result.files_read += reading.counts.get("files read", 0)
    result.without_value += reading.counts.get("without a value", 0)
    result.failed_tasks += reading.counts.get("tasks with an error", 0)
    result.left_out_count += len(reading.left_out)
    result.left_out += [
        printable(text)[:300] for text in reading.left_out[: _NAMED - len(result.left_out)]
    ]
    result.not_read = dict(Counter(result.not_read) + Counter(reading.not_read))


def _facts(result: TreeImport) -> dict[str, object]:
    """Returns what the store retains of an import."""
    return {
        "tool": SOURCE,
        "at": time.time(),
        "left_out": result.left_out,
        "left_out_count": result.left_out_count,
        "lacks": LACKS,
    }


@contextmanager
def _only_import(folder: Path) -> Iterator[None]:
    """Holds the folder, so that two imports at the same time do not write the same parts."""
    with translating_os_errors(folder / ".lock", "written"):
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"{folder} is held by another import.", "Wait until it has ended."
            ) from None
        yield
    finally:
        os.close(descriptor)
