"""CPU of a machine by its physical host: hosts of one type are not equally fast."""

from __future__ import annotations

import contextlib
from pathlib import Path

_PERIOD_US = 20_000
_CGROUPS = Path("/sys/fs/cgroup")


def limit(name: str, pid: int, cpus: float) -> Path | None:
    """Puts a process into a group of its own with so many CPUs; returns the group, None where this
    machine lets nobody make one."""
    quota = str(max(1000, round(cpus * _PERIOD_US)))
    try:
        if (_CGROUPS / "cgroup.controllers").exists():
            group = _CGROUPS / name
            (_CGROUPS / "cgroup.subtree_control").write_text("+cpu")
            group.mkdir()
            (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
        else:
            group = _CGROUPS / "cpu" / name
            group.mkdir()
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(quota)
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        return None
    return group


def release(group: Path | None) -> None:
    """Removes a group whose processes have ended."""
    if group is not None:
        with contextlib.suppress(OSError):
            group.rmdir()
