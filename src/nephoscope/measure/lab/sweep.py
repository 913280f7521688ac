"""Removes everything of a lab, found by its name: processes, mounts, namespaces, groups, files.

Nothing that the lab wrote down is needed for it, so it works after a kill at any moment. What is
not in a namespace, group or folder of this lab is never removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from nephoscope.core.errors import Lacking, RunFailed
from nephoscope.measure.lab import names, processes
from nephoscope.measure.lab.handle import RemovedLab
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.limits.hierarchies import unescaped
from nephoscope.measure.lab.network import namespaces

_GONE_S = 10.0


def exists(lab: str) -> bool:
    """Returns whether anything of a lab is here."""
    return lab in labs_here()


def labs_here() -> set[str]:
    """Labs of which anything is here."""
    labs = names.labs_in(names.RUN) | names.labs_in(names.DISKS) | names.namespace_labs()
    with contextlib.suppress(Lacking):
        labs.update(cgroups.labs())
    return labs


def sweep(lab: str) -> RemovedLab:
    """Removes everything of a lab and counts it. RunFailed when something will not go.

    The caller holds the lab's lock.
    """
    began = time.monotonic()
    removed = RemovedLab(lab)
    # Namespaces last of what processes hold: while one is there, a process in it can be found.
    removed.processes += _kill_all(lab)
    folders = (names.disks(lab), names.directory(lab))
    removed.mounts = sum(_unmount(folder) for folder in folders)
    removed.namespaces = sum(namespaces.remove(path) for path in names.namespaces_of(lab))
    with contextlib.suppress(Lacking):
        # Whoever was just being started joined its group before anything else: a group that can
        # be removed is empty, and nobody joins it any more.
        removed.processes += len(cgroups.processes(lab))
        removed.cgroups = cgroups.remove(lab)
    removed.files = sum(_remove_files(folder) for folder in folders)
    removed.elapsed_s = round(time.monotonic() - began, 3)
    return removed


def _kill_all(lab: str) -> int:
    """Kills what is in the lab's groups or namespaces, until nothing is; how many there were."""
    killed: set[int] = set()
    with contextlib.suppress(Lacking):
        killed.update(cgroups.processes(lab))
        cgroups.kill(lab)
    until = time.monotonic() + _GONE_S
    while inside := set(_inside(names.namespaces_of(lab))):
        for pid in inside:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        killed |= inside
        if time.monotonic() > until:
            raise RunFailed(
                f"Process {min(inside)} in lab {lab} does not end after SIGKILL.",
                "It waits for a device; run the command again once that answers.",
            )
        time.sleep(0.002)
    return len(killed)


def _inside(paths: Iterable[Path]) -> list[int]:
    """Process ids whose network is one of these namespaces; never our own."""
    # A file that is no mount yet has the number of a plain file, which no process can have.
    wanted = {number for path in paths if (number := namespaces.inode(path)) is not None}
    if not wanted:
        return []
    return processes.matching(lambda process: (process / "ns/net").stat().st_ino in wanted)


def _unmount(folder: Path) -> int:
    """Detaches every mount below a folder, the innermost first; how many there were."""
    points = _mounts_below(folder)
    for point in points:
        namespaces.unmount(point)
    left = _mounts_below(folder)
    if left:
        raise RunFailed(f"{left[0]} cannot be unmounted.", "See who uses it: `fuser -m` names it.")
    return len(points)


def _mounts_below(folder: Path) -> list[str]:
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    points = [unescaped(line.split(" ")[4]) for line in text.splitlines()]
    inside = [point for point in points if point.startswith(f"{folder}/") or point == str(folder)]
    return sorted(inside, key=len, reverse=True)


def clear(folder: Path) -> None:
    """Detaches what is mounted below a folder and removes the folder."""
    _unmount(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_files(folder: Path) -> int:
    count = sum(len(files) for _, _, files in os.walk(folder))
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
    with contextlib.suppress(OSError):  # another lab has its folder there, or there was none
        folder.parent.rmdir()
    return count
