"""Counters of the whole machine and of a control group: pressure (PSI) and block devices."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from nephoscope.core.records import dataclass

_PRESSURE = Path("/proc/pressure")
_SECTOR_BYTES = 512
_NO_DEVICE = re.compile(r"(loop|ram|zram|dm-|md|sr|fd)\d+")
"""Devices that are memory, that lie on other devices and would count twice, or hold no storage."""


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """A block device: time with requests in flight and bytes moved, since the machine's start."""

    busy_ms: int
    moved_bytes: int


def devices() -> dict[str, BlockDevice]:
    """Returns the whole block devices of this machine; none where they are hidden."""
    try:
        lines = Path("/proc/diskstats").read_text(encoding="utf-8").splitlines()
        whole = set(os.listdir("/sys/block"))
    except OSError:
        return {}
    rows = (line.split() for line in lines)
    return {
        row[2]: BlockDevice(int(row[12]), _SECTOR_BYTES * (int(row[5]) + int(row[9])))
        for row in rows
        if len(row) > 12 and row[2] in whole and not _NO_DEVICE.fullmatch(row[2])
    }


def pressure(folder: Path | None = None) -> dict[str, int]:
    """Returns the stall times in µs by name, such as 'io some'; none where they are hidden.

    folder: of a control group; the whole machine without one.
    """
    stalls = {}
    for resource in ("cpu", "memory", "io"):
        file = _PRESSURE / resource if folder is None else folder / f"{resource}.pressure"
        with suppress(OSError):
            for kind, total in re.findall(r"^(\w+) .*\btotal=(\d+)", file.read_text(), re.M):
                stalls[f"{resource} {kind}"] = int(total)
    return stalls


def own_group(pid: int, members: frozenset[int]) -> Path | None:
    """Returns the control group (version 2) of a process if it holds no other processes."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    name = next((line[3:] for line in lines if line.startswith("0::")), "/")
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        folder = Path(mount + name)
        try:
            inside = {int(word) for word in (folder / "cgroup.procs").read_text().split()}
        except (OSError, ValueError):
            continue
        if name != "/" and inside <= members:
            return folder
    return None


def stall_ratios(
    first: Mapping[str, int], last: Mapping[str, int], seconds: float
) -> dict[str, float]:
    """Returns the shares of the time between two readings that were stalled, by name."""
    return {
        name: min(1.0, max(0.0, (last[name] - first[name]) / 1e6 / seconds))
        for name in first
        if name in last
    }
