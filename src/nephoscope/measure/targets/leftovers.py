"""Where the programs of trials on this machine leave something if they are killed.

A measured command may start processes that outlive it. The probe adopts and ends them; should it be
killed, or end late on a contended machine, they are known by a mark in their environment.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from nephoscope import catalog
from nephoscope.catalog import instruments
from nephoscope.core import leases
from nephoscope.core.programs import STORAGE
from nephoscope.measure.targets import marked, merging
from nephoscope.measure.targets.probe import storage


def lease(benchmark: str, params: Mapping[str, Any], directory: str) -> None:
    """Names the place in which a trial has its files or objects, before it starts.

    directory: from which relative paths count.
    """
    lease_of_machine(benchmark, params)
    if benchmark == instruments.STORAGE_DURABILITY:
        return  # What it stores is to stay for months.
    if storage.program(benchmark, params) == STORAGE:
        # Credentials are in the environment or in a file, and never among the parameters.
        place = {"params": dict(params), "directory": directory}
        leases.lease(leases.OBJECTS, place)
    else:
        lease_folders(params, directory)


def lease_of_machine(benchmark: str, params: Mapping[str, Any]) -> None:
    """Names what a trial leaves in the machine as a whole: processes and settings of the kernel."""
    if benchmark == instruments.LOAD_MERGING:
        merging.lease()
    if benchmark in (catalog.COMMAND, catalog.DUET):
        keeps = bool(params.get("keep_children"))
        marked.set_mark("" if keeps else leases.lease_processes())
        if not keeps:
            _end_marked_at_exit()


@cache
def _end_marked_at_exit() -> None:
    atexit.register(marked.end_own)


def lease_folders(params: Mapping[str, Any], directory: str) -> None:
    """Names the directory in which a trial has its files; see `lease`."""
    wanted = str(params.get("directory") or _default_directory())
    leases.lease(leases.FOLDERS, {"directory": os.path.join(directory, wanted)})


def _default_directory() -> str:
    """Returns where the probe makes its folders by default: /tmp often lies in memory."""
    folder = os.environ.get("TMPDIR") or ""
    return folder if os.path.isdir(folder) else "/var/tmp"
