"""A search for a capacity as a stored result: a file in the folder of each of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nephoscope.core import documents, limits
from nephoscope.core.reading import jsontext, regular
from nephoscope.features.load.records import CapacityResult
from nephoscope.store import Store, StoredRun
from nephoscope.store.files import write_atomically

FILE = "capacity.json"
"""The document of `nephoscope capacity --json`, in the folder of a run."""


def write(runs: Iterable[StoredRun], result: CapacityResult) -> None:
    """Stores a search with each of its runs, so that any of them leads to it."""
    text = documents.to_text(documents.versioned(result)).encode("utf-8", "replace")
    for run in runs:
        write_atomically(run.path / FILE, text)


def path_of(run: StoredRun) -> Path | None:
    """Returns the file with the search of a run; None where there is none of this version."""
    return None if document_of(run) is None else run.path / FILE


def document_of(run: StoredRun) -> Mapping[str, Any] | None:
    """Returns the document of a run's search; None without, or where it cannot be read."""
    try:
        text = regular.read_regular(run.path / FILE, limits.STATE_BYTES)
        values = jsontext.parse(text) if documents.is_of_this_version(text) else None
    except (OSError, ValueError):
        return None
    return values if isinstance(values, dict) else None


def runs_of(store: Store, run: StoredRun) -> list[StoredRun]:
    """Returns the runs of the search to which a run belongs; itself where it belongs to none."""
    names = (document_of(run) or {}).get("runs")
    if not isinstance(names, list) or run.id not in names:
        return [run]
    return [store.open(name) for name in names if isinstance(name, str)]
