"""Counters of a process and its descendants, read from /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nephoscope.core.records import dataclass

PROC = Path("/proc")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

ProcessId = tuple[int, int]
"""Number and start time of a process: a number alone may be used again."""


@dataclass(frozen=True, slots=True)
class ProcessCounters:
    """Counters of one process since its start.

    cpu_s: of the process and of the children that it waited for. read_bytes, write_bytes: of
    storage, with those children; None where this user may not read them.
    """

    cpu_s: float
    read_bytes: int | None
    write_bytes: int | None
    major_faults: int
    minor_faults: int
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class Thread:
    """Times of one thread on a CPU and in a run queue, and its state now (R, S, D, …)."""

    run_ns: int
    wait_ns: int
    state: str


@dataclass(frozen=True, slots=True)
class _Stat:
    """The fields of /proc/PID/stat that are used; rest: from the state on."""

    parent: int
    start: int
    rest: tuple[str, ...]


class ProcessTree:
    """A process and its descendants.

    A process stays in the tree after its parent has ended. heir: process that starts the tree and
    inherits its orphans; its children belong to the tree, apart from those that it had `before`.
    """

    def __init__(
        self,
        root: int | None = None,
        *,
        heir: int | None = None,
        before: frozenset[int] = frozenset(),
    ) -> None:
        self._heirs = set() if heir is None else {heir}
        self._before = before
        root_stat = None if root is None else _stat(root)
        self.members: set[ProcessId] = set()
        if root is not None and root_stat is not None:
            self.members.add((root, root_stat.start))

    def refresh(self) -> Mapping[ProcessId, ProcessCounters]:
        """Adds new descendants, forgets ended ones, and returns the counters of all members."""
        stats = dict(_all_stats())
        alive = {(pid, stat.start) for pid, stat in stats.items()}
        self.members &= alive
        self._add_descendants(stats)
        return {(pid, start): _process(pid, stats[pid]) for pid, start in self.members}

    def _add_descendants(self, stats: Mapping[int, _Stat]) -> None:
        numbers = {pid for pid, _ in self.members}
        grew = True
        while grew:
            new = {
                pid
                for pid, stat in stats.items()
                if pid not in numbers
                and (
                    stat.parent in numbers
                    or (stat.parent in self._heirs and pid not in self._before)
                )
            }
            numbers |= new
            grew = bool(new)
        self.members |= {(pid, stats[pid].start) for pid in numbers if pid in stats}

    def threads(self) -> dict[tuple[int, int, int], Thread]:
        """Returns the threads of all members: (process, start, thread) -> its times and state."""
        return {
            (pid, start, number): thread
            for pid, start in self.members
            for number, thread in _threads(pid)
        }


def exists(pid: int) -> bool:
    """Returns whether a process of this number is there."""
    return _stat(pid) is not None


def is_member_alive(member: ProcessId) -> bool:
    """Returns whether this very process is there and not a zombie."""
    stat = _stat(member[0])
    return stat is not None and stat.start == member[1] and stat.rest[0] != "Z"


def allowed_cpus(pid: int) -> int:
    """Returns the number of CPUs on which a process may run."""
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return os.cpu_count() or 1


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _stat(pid: int) -> _Stat | None:
    text = _read(PROC / str(pid) / "stat")
    if text is None or ")" not in text:
        return None
    # A program's name may itself have blanks and brackets.
    rest = tuple(text.rpartition(")")[2].split())
    return _Stat(int(rest[1]), int(rest[19]), rest)


def _all_stats() -> Iterator[tuple[int, _Stat]]:
    for entry in os.listdir(PROC):
        stat = _stat(int(entry)) if entry.isdigit() else None
        if stat is not None:
            yield int(entry), stat


def children_of(pid: int) -> frozenset[int]:
    """Returns the numbers of the children of a process."""
    return frozenset(number for number, stat in _all_stats() if stat.parent == pid)


def _process(pid: int, stat: _Stat) -> ProcessCounters:
    fields = stat.rest
    ticks = sum(int(fields[place]) for place in (11, 12, 13, 14))
    text = _read(PROC / str(pid) / "io") or ""
    moved = {name: int(value) for name, value in re.findall(r"^(\w+): (\d+)$", text, re.M)}
    return ProcessCounters(
        ticks / TICKS_PER_S,
        moved.get("read_bytes"),
        moved.get("write_bytes"),
        int(fields[9]),
        int(fields[7]),
        int(fields[21]) * _PAGE_BYTES,
    )


def _threads(pid: int) -> Iterator[tuple[int, Thread]]:
    folder = PROC / str(pid) / "task"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return
    for number in numbers:
        times = (_read(folder / number / "schedstat") or "").split()
        state = (_read(folder / number / "stat") or "").rpartition(")")[2].split()
        if len(times) >= 2 and state:
            yield int(number), Thread(int(times[0]), int(times[1]), state[0])
