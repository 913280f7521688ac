"""Copies of files and of figures: whatever comes twice counts once."""

from __future__ import annotations

import hashlib
import json
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
    by_digest: dict[str, list[Source]] = {}
    for source in sources:
        alike = by_digest.setdefault(source.digest, [])
        if twin := next((known for known in alike if _is_same(known, source)), None):
            note(f"{source.path} is a copy of {twin.path}, and counts once.")
        else:
            alike.append(source)
            unique.append(source)
    longest = _longest_versions(unique)
    for source in list(unique):
        if longer := longest.get(source.digest):
            note(f"{source.path} is the beginning of {longer.path}, and counts once.")
            unique.remove(source)
    return unique


def _longest_versions(sources: Sequence[Source]) -> dict[str, Source]:
    """Returns, by the digest of a file that others begin with, the longest of those."""
    files = [source for source in sources if source.content not in (b"", DATABASE)]
    longest: dict[str, Source] = {}
    # In this order, all files that begin with another one follow it.
    nested: list[Source] = []
    for source in [*sorted(files, key=lambda source: source.content), None]:
        while nested and not (source and source.content.startswith(nested[-1].content)):
            inner = nested.pop()
            if nested:
                candidates = (longest.get(nested[-1].digest), longest.get(inner.digest, inner))
                longest[nested[-1].digest] = max(
                    filter(None, candidates), key=lambda source: len(source.content)
                )
        if source:
            nested.append(source)
    return longest


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


class EarlierImports:
    """The imports of a store, read once for all files that are imported now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs: dict[str, dict[str, str]] = {}
        self._files: dict[str, dict[tuple[int, str], str]] = {}

    def same(
        self, sources: Sequence[Source], prefix: str, settings: Mapping[str, Any], note: Note
    ) -> StoredRun | None:
        """Returns the run that is the import of the same files, by this version and with these
        settings.

        Notes files that are in other runs, as they are or as a shorter version of themselves.
        """
        if prefix not in self._runs:
            self._read(prefix)
        digests = [source.digest for source in sources]
        run_id = self._runs[prefix].get(_identity(digests, settings)) if all(digests) else None
        if run_id is not None:
            return self._store.open_or_none(run_id)
        _note_earlier(sources, self._files[prefix], note)
        return None

    def add(self, run: StoredRun, prefix: str) -> None:
        """Takes in an import that can be read; a later one stands for an earlier one."""
        record = run.manifest.imported
        if not isinstance(record, dict):
            return
        files = [entry for entry in record.get("files") or [] if isinstance(entry, dict)]
        if run.manifest.nephoscope == __version__:
            digests = [str(file.get("sha256")) for file in files]
            self._runs[prefix][_identity(digests, record.get("settings"))] = run.id
        self._files[prefix] |= {
            (int(file.get("bytes") or 0), str(file.get("sha256"))): run.id for file in files
        }

    def _read(self, prefix: str) -> None:
        self._runs[prefix], self._files[prefix] = {}, {}
        for run_id in self._store.ids():
            run = self._store.open_or_none(run_id) if f"-import-{prefix}-" in run_id else None
            if run is not None:
                self.add(run, prefix)


def _identity(digests: Iterable[str], settings: Any) -> str:
    return json.dumps([sorted(digests), settings], sort_keys=True)


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
