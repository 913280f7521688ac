"""CPU of a machine by its physical host: hosts of one type are not equally fast."""

from __future__ import annotations

import contextlib
import threading
import time
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
        move(group, pid)
    except OSError:
        return None
    return group


def move(group: Path, pid: int) -> None:
    """Moves the process of a machine into a group. Its first process, which waits for its network,
    may be a child by now."""
    (group / "cgroup.procs").write_text(str(pid))
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        (group / "cgroup.procs").write_text(child)


def release(group: Path | None) -> None:
    """Removes a group whose processes have ended."""
    if group is not None:
        for each in (group, _accounts(group)):
            with contextlib.suppress(OSError):
                each.rmdir()


def groups() -> list[Path]:
    """Where the groups of machines are."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [_CGROUPS / "cpu", _CGROUPS / "cpuacct"]


def remove_tree(group: Path) -> None:
    """Removes a group and those in it, as far as no process is left in them."""
    for each in sorted(filter(Path.is_dir, group.rglob("*")), reverse=True):
        with contextlib.suppress(OSError):
            each.rmdir()
    with contextlib.suppress(OSError):
        group.rmdir()


def _accounts(group: Path) -> Path:
    """The group that counts CPU time; of the first version of control groups another one."""
    return group if (group / "cpu.max").exists() else _CGROUPS / "cpuacct" / group.name


class CreditBucket:
    """A machine that lives on CPU credits, as the T types do: a group may use `burst` CPUs while
    credit lasts and `baseline` afterwards; what it uses less than the baseline comes back.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/burstable-credits-baseline-concepts.html
    """

    STEP_S = 0.02

    def __init__(
        self, group: Path, pid: int, *, burst: float, baseline: float, credit: float
    ) -> None:
        accounts = _accounts(group)
        accounts.mkdir(exist_ok=True)
        move(accounts, pid)
        self._group, self._size, self._left = group, credit, credit
        self._burst, self._baseline = burst, baseline
        self._ended = threading.Event()
        self.empty_s: list[float] = []
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        self._allow(self._burst)
        used, at = self._used(), time.monotonic()
        is_empty = False
        while not self._ended.wait(self.STEP_S):
            now, now_used = time.monotonic(), self._used()
            spent = now_used - used - self._baseline * (now - at)
            used, at = now_used, now
            self._left = min(self._size, max(0.0, self._left - spent))
            if not is_empty and self._left <= 0:
                is_empty = True
                self.empty_s.append(now)
                self._allow(self._baseline)
            elif is_empty and self._left > 0.02 * self._size:
                is_empty = False
                self._allow(self._burst)

    def _used(self) -> float:
        """CPU seconds of the group so far."""
        try:
            if (self._group / "cpu.max").exists():
                first = (self._group / "cpu.stat").read_text().split("\n")[0]
                return int(first.split()[1]) / 1e6
            return int((_accounts(self._group) / "cpuacct.usage").read_text()) / 1e9
        except (OSError, ValueError):
            return 0.0

    def _allow(self, cpus: float) -> None:
        quota = str(max(1000, round(cpus * _PERIOD_US)))
        with contextlib.suppress(OSError):
            if (self._group / "cpu.max").exists():
                (self._group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
            else:
                (self._group / "cpu.cfs_quota_us").write_text(quota)

    def end(self) -> None:
        self._ended.set()
        self._thread.join(2)
