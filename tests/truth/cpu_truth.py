"""What the truth tests of the CPU share: control groups and reservations."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hardware import Feature, lacking
from tests.tools import needs

needs_chrt = needs("chrt")


class Group:
    """A control group with the CPU controller, version 1 or 2."""

    def __init__(self) -> None:
        name = f"nephoscope-test-{os.getpid()}"
        v1 = Path("/sys/fs/cgroup/cpu")
        self.v2 = not (v1 / "cpu.shares").exists()
        base = Path("/sys/fs/cgroup") if self.v2 else v1
        if self.v2:
            if not (base / "cgroup.controllers").exists():
                lacking(Feature.CONTROL_GROUPS, "no hierarchy with the controller cpu")
            (base / "cgroup.subtree_control").write_text("+cpu")
        self.path = base / name
        self.path.mkdir()

    def favour(self) -> None:
        """The largest weight: whatever else runs here hardly takes from the group."""
        if self.v2:
            (self.path / "cpu.weight").write_text("10000")
        else:
            (self.path / "cpu.shares").write_text("262144")

    def limit(self, quota_us: int, period_us: int) -> None:
        if self.v2:
            (self.path / "cpu.max").write_text(f"{quota_us} {period_us}")
        else:
            (self.path / "cpu.cfs_period_us").write_text(str(period_us))
            (self.path / "cpu.cfs_quota_us").write_text(str(quota_us))

    def inside(self, words: list[str]) -> list[str]:
        enter = 'echo $$ > "$0" && exec "$@"'
        return ["sh", "-c", enter, str(self.path / "cgroup.procs"), *words]

    def remove(self) -> None:
        for _ in range(2400):
            try:
                self.path.rmdir()
                return
            except OSError:  # a process of it is still on its way out
                time.sleep(0.05)
        self.path.rmdir()


@contextmanager
def group() -> Iterator[Group]:
    made = Group()
    try:
        made.favour()
        yield made
    finally:
        made.remove()


def last_cpu() -> int:
    return max(os.sched_getaffinity(0))


def reserved(runtime_ms: int, period_ms: int, words: list[str]) -> list[str]:
    """The command under SCHED_DEADLINE."""
    period = str(period_ms * 1_000_000)
    times = ["--sched-runtime", str(runtime_ms * 1_000_000)]
    times += ["--sched-deadline", period, "--sched-period", period]
    return ["chrt", "-d", *times, "0", *words]
