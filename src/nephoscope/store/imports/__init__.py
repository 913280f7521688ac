"""Other tools' result files into the store. One file for each tool, listed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nephoscope.errors import UsageError
from nephoscope.store.imports import pkb
from nephoscope.store.run import StoredRun
from nephoscope.store.store import Store

IMPORTS: Mapping[str, Callable[[Path, Store], StoredRun]] = {
    "pkb": pkb.read_into,
}
"""Tool -> importer: reads its file into a new, finished run. UsageError names the bad line."""


def import_file(path: Path, store: Store, format: str = "pkb") -> StoredRun:
    """A new finished run with the samples of a file. UsageError for what cannot be read."""
    if format not in IMPORTS:
        raise UsageError(f"There is no import of '{format}'.", f"There is: {', '.join(IMPORTS)}.")
    return IMPORTS[format](path, store)


__all__ = ["IMPORTS", "import_file"]
