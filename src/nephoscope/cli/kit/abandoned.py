"""What killed processes left here: the next command, of any kind, removes it and says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.core import leases as places
from nephoscope.core.errors import NephoscopeError
from nephoscope.measure.lab import leases

if TYPE_CHECKING:
    from nephoscope.measure.lab.handle import RemovedLab


def remove_abandoned() -> list[RemovedLab]:
    """Removes labs, scratch folders and objects that no process has any more; returns the labs.

    A failure is a sentence, and no more.
    """
    removed = [gone for name in leases.abandoned() if (gone := _removed(name)) is not None]
    for kind, place in places.abandoned():
        if kind == places.FOLDERS:
            _remove_folders(Path(str(place.get("directory"))))
        elif kind == places.OBJECTS:
            _remove_objects(place)
    return removed


def _removed(name: str) -> RemovedLab | None:
    import asyncio

    from nephoscope.cli.kit import output
    from nephoscope.measure.lab import needs
    from nephoscope.measure.lab.provisioner import LABS

    if needs.missing_capabilities():
        return None  # of another user, who has them
    try:
        removed = asyncio.run(LABS.remove_abandoned(name))
    except (NephoscopeError, OSError) as error:
        output.log(
            f"Lab {name} was left by a process that was killed, and cannot be removed: {error}"
        )
        return None
    if removed is not None:
        output.log(f"Lab {name} was left by a process that was killed; it is removed.")
    return removed


def _remove_folders(directory: Path) -> None:
    from nephoscope.cli.kit import output
    from nephoscope.measure.targets import removal

    if count := removal.remove_folders(directory):
        folders = "A scratch folder" if count == 1 else f"{count} scratch folders"
        verb, now = ("was", "it is") if count == 1 else ("were", "they are")
        output.log(
            f"{folders} in {directory} {verb} left by a process that was killed; {now} removed."
        )


def _remove_objects(place: Mapping[str, Any]) -> None:
    import asyncio

    from nephoscope.cli.kit import output
    from nephoscope.measure.targets import removal

    params = place.get("params")
    if not isinstance(params, dict):
        return
    where = " ".join(
        str(params[key])
        for key in ("service", "endpoint", "bucket", "directory")
        if params.get(key)
    )
    try:
        notes = asyncio.run(removal.remove_objects(params, str(place.get("directory") or "")))
    except (NephoscopeError, OSError) as error:
        output.log(
            f"A process that was killed may have left objects in {where}, which cannot be removed "
            f"now: {error} The next trial there removes them."
        )
        return
    for note in notes:
        output.log(f"{where}: {note}")
