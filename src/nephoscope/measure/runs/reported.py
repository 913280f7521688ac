"""A run whose report was written is finished."""

from __future__ import annotations

from nephoscope.store import FINISHED, MEASURED, StoredRun


def mark_reported(run: StoredRun) -> None:
    """The report of a measured run was written: the run is finished.

    What another process changed meanwhile, such as labels, stays. Raises StoreError while one holds
    the run.
    """
    if run.state == MEASURED:
        with run.lock():
            if run.state == MEASURED:
                run.finish(FINISHED)
