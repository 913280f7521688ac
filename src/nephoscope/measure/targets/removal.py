"""Removes what killed trials left on this machine and in storage services; see `leftovers`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core import leases
from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.local import LocalTarget

PATIENCE_S = 2.5
"""A probe whose parent was killed removes its folder itself, and ends within a second of it."""
_SERVICE_S = 20.0
_SMALLEST_TRIAL = {"object_bytes": [1], "objects": 1, "clients": 1, "transactions_ns": 0}


def remove_folders(directory: Path) -> int:
    """Removes the scratch folders in a directory that nobody uses; returns how many it removed."""
    until = time.monotonic() + PATIENCE_S
    removed = 0
    remaining = leases.scratch_folders(directory)
    while remaining:
        unused = [folder for folder in remaining if leases.remove_unused(folder)]
        removed += len(unused)
        remaining = [each for each in remaining if each not in unused and each.exists()]
        if not remaining or time.monotonic() > until:
            break
        time.sleep(0.05)
    return removed


async def remove_objects(params: Mapping[str, Any], directory: str) -> tuple[str, ...]:
    """Removes the objects of killed trials in a storage service, as each trial there does first.

    Returns the trial's note about it; empty where nothing was left. Raises TargetError and
    BenchmarkFailed.
    """
    await asyncio.sleep(PATIENCE_S)
    target = LocalTarget(directory=directory)
    await target.open()
    try:
        trial = await target.run(
            instruments.STORAGE_TRANSFER, {**params, **_SMALLEST_TRIAL}, _SERVICE_S
        )
    finally:
        await target.close()
    if trial.done is None:
        raise trial.failure or TargetError("The trial that removes them did not end.")
    return tuple(note for note in trial.done.notes if note.startswith("Objects of "))
