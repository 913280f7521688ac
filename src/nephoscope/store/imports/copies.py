"""Copies of files and of figures: whatever comes twice counts once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nephoscope import __version__
from nephoscope.store.imports.rows import ImportedFigures, ImportedRow
from nephoscope.store.imports.source import DATABASE, Source
from nephoscope.store.run import StoredRun
from nephoscope.store.store import Store

Note = Callable[[str], object]


def without_copies(sources: Sequence[Source], note: Note) -> list[Source]:
    """Returns the files without those whose content another one has; each is named in a note."""
    unique: list[Source] = []
    for source in sources:
        if twin := next((known for known in unique if _is_same(known, source)), None):
            note(f"{source.path} is a copy of {twin.path}, and counts once.")
        else:
            unique.append(source)
    longest_first = sorted(unique, key=lambda source: -len(source.content))
    for source in list(unique):
        if source.content == DATABASE or not source.content:
            continue
        for longer in longest_first:
            if len(longer.content) <= len(source.content):
                break
            if longer.content.startswith(source.content):
                note(f"{source.path} is the beginning of {longer.path}, and counts once.")
                unique.remove(source)
                break
    return unique


def _is_same(first: Source, second: Source) -> bool:
    if DATABASE in (first.content, second.content):
        return first.content == second.content and os.path.samefile(first.path, second.path)
    return first.content == second.content


def count_once(figures: ImportedFigures) -> None:
    """Leaves out copies of figures (rows of one identity), and says how many there were."""
    first: dict[str, ImportedRow] = {}
    unique: list[ImportedRow] = []
    copies = 0
    for row in figures.rows:
        known = first.setdefault(row.identity, row) if row.identity else row
        if known is row:
            unique.append(row)
        elif known.figure == row.figure:
            copies += 1
        else:
            figures.left_out.append(
                f"{row.place}: {row.metric} is there twice, with {known.value:g} and {row.value:g}"
            )
    figures.rows = unique
    if copies:
        figures.missing.append(f"{copies} samples are copies of others, and count once.")


def description(sources: Iterable[Source]) -> list[dict[str, Any]]:
    """Returns name, size and digest of each file, for the manifest of the run."""
    return [
        {
            "name": source.path.name,
            "bytes": len(source.content),
            "sha256": source.digest,
            "changed_at": source.changed_at_s,
        }
        for source in sources
    ]


def imported_before(
    sources: Sequence[Source], prefix: str, settings: Mapping[str, Any], store: Store, note: Note
) -> StoredRun | None:
    """Returns the run that is the import of the same files, by this version, with these settings.

    Notes files that are in other runs, as they are or as a shorter version of themselves.
    """
    digests = sorted(source.digest for source in sources)
    same: StoredRun | None = None
    known: dict[tuple[int, str], str] = {}
    for run_id in store.ids():
        if f"-import-{prefix}-" not in run_id:
            continue
        run = store.open_or_none(run_id)
        record = run.manifest.imported if run is not None else None
        if run is None or not isinstance(record, dict):
            continue
        files = [entry for entry in record.get("files") or [] if isinstance(entry, dict)]
        if (
            all(digests)
            and sorted(str(file.get("sha256")) for file in files) == digests
            and record.get("settings") == settings
            and run.manifest.nephoscope == __version__
        ):
            same = run
        known |= {(int(file.get("bytes") or 0), str(file.get("sha256"))): run_id for file in files}
    if same is None:
        _note_earlier(sources, known, note)
    return same


def _note_earlier(
    sources: Sequence[Source], known: Mapping[tuple[int, str], str], note: Note
) -> None:
    sizes = sorted({size for size, _ in known if size})
    for source in sources:
        if not source.digest:
            continue
        hashed, position = hashlib.sha256(), 0
        for size in (size for size in sizes if size <= len(source.content)):
            hashed.update(source.content[position:size])
            position = size
            run_id = known.get((size, hashed.hexdigest()))
            if run_id is not None:
                what = (
                    "was"
                    if size == len(source.content)
                    else "is a longer version of a file that was"
                )
                note(
                    f"{source.path} {what} imported before, as run {run_id}: the two runs are not "
                    "independent."
                )
