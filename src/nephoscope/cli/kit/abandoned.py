"""Labs of processes that were killed: the next command, of any kind, removes them and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nephoscope.core.errors import NephoscopeError
from nephoscope.measure.lab import leases

if TYPE_CHECKING:
    from nephoscope.measure.lab.handle import RemovedLab


def remove_abandoned_labs() -> list[RemovedLab]:
    """Removes the labs that no process has any more; a failure is a sentence, and no more."""
    return [gone for name in leases.abandoned() if (gone := _removed(name)) is not None]


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
