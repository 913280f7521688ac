"""Puts the trials of a run together when it ends; see merged_trials.py for the files.

The manifest that names them is the moment from which they count. A kill before leaves files that
nothing names, a kill after it files of trials that are merged already; both are removed by whoever
locks the run next, and neither is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from nephoscope.store import journal
from nephoscope.store.batch import Batch
from nephoscope.store.files import remove_leftovers, translating_os_errors
from nephoscope.store.manifest import MERGED_SINCE, RunManifest
from nephoscope.store.trial_folder import TrialFile, forget_read_files


class MergedRun(Protocol):
    """What merging needs of a run."""

    @property
    def manifest(self) -> RunManifest:
        """As `StoredRun.manifest`."""
        ...

    @property
    def trials_path(self) -> Path:
        """Folder of the trials."""
        ...

    @property
    def journal_path(self) -> Path:
        """File of the journal."""
        ...

    def batches(self) -> Iterable[Batch]:
        """Returns the samples of all trials."""
        ...

    def event(self, event: Mapping[str, Any]) -> None:
        """Appends an event to the journal."""
        ...


def merge_ended(run: MergedRun, looked: Sequence[TrialFile]) -> dict[str, Any]:
    """Returns the changes of the manifest with which the trials of a run that ends are merged.

    Empty where they keep their files: one is damaged, or the run is of an earlier version.
    """
    manifest = run.manifest
    is_new = manifest.version >= MERGED_SINCE and manifest.merged_trials is None
    if not is_new or not looked or not all(file.readable and file.digest for file in looked):
        return {}
    return merge(run, run.batches(), [file.record.key.name for file in looked])


def merge(run: MergedRun, batches: Iterable[Batch], names: Sequence[str]) -> dict[str, Any]:
    """Writes trials of these names together; returns the changes of the manifest."""
    from nephoscope.store import merged_trials

    remove_leftovers(run.trials_path)  # of a process that was killed while it did this
    entry = merged_trials.write(run.trials_path, batches, len(names))
    forget_read_files()
    run.event(journal.merged_event(names))
    entry["journal_bytes"] = journal.extent(run.journal_path)["bytes"]
    return {"merged_trials": entry}


def remove_unused(folder: Path, list_files: Callable[[], Sequence[TrialFile]] | None) -> None:
    """Removes what does not count: files of merged trials; merged files that nothing names.

    list_files: returns the trials of a run whose manifest names merged files; None for another.
    """
    if list_files is None:
        unused = [folder / name for name in ("samples.parquet", "records.jsonl")]
    elif unused := [*folder.glob("[rw]*.parquet")]:
        merged = {file.record.key.name for file in list_files() if file.merged is not None}
        unused = [path for path in unused if path.stem in merged]
    for path in unused:
        with translating_os_errors(path, "removed"):
            path.unlink(missing_ok=True)
