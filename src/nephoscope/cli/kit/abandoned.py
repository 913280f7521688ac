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
    """Removes what no process has any more: labs, scratch folders, objects, processes of commands,
    settings of the kernel; returns the labs.

    A failure is a sentence, and no more.
    """
    removed = [gone for name in leases.abandoned() if (gone := _removed(name)) is not None]
    for kind, place in places.abandoned():
        if kind == places.FOLDERS:
            _remove_folders(Path(str(place.get("directory"))))
        elif kind == places.OBJECTS:
            _remove_objects(place)
        elif kind == places.PROCESSES:
            _end_processes(str(place.get("mark")))
        elif kind == places.MERGING:
            _restore_merging(place)
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


def _end_processes(mark: str) -> None:
    from nephoscope.cli.kit import output
    from nephoscope.measure.targets import marked, removal

    if count := marked.end(mark, removal.PATIENCE_S):
        processes, verb = ("A process", "was") if count == 1 else (f"{count} processes", "were")
        output.log(
            f"{processes} of a measured command {verb} left by a process that was killed, and "
            f"{verb} ended."
        )


def _restore_merging(place: Mapping[str, Any]) -> None:
    from nephoscope.cli.kit import output
    from nephoscope.measure.targets import merging, removal

    try:
        if merging.restore(place, removal.PATIENCE_S):
            output.log(
                "The kernel's merging of equal pages was left on by a process that was killed; it "
                "is off, and has its former settings."
            )
    except OSError as error:
        output.log(
            "The kernel's merging of equal pages was left on by a process that was killed, and "
            f"cannot be switched off: {error}. As root: echo 2 > {merging.FOLDER}/run."
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
