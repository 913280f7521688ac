"""Programs of a target that used its CPUs between two readings of /proc.

A process that ended in between counts for the process that waited for it, so that a build counts
for `make` where its compilers were too short-lived to be seen.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from nephoscope.core.records import dataclass

BUSY_PROGRAMS = "busy_programs"
"""Name of the document of a trial that holds them."""

COMMAND = ("sh", "-c", "echo $$; cat /proc/[0-9]*/stat 2>/dev/null; exit 0")
"""Prints the number of the reading process, then a line for each process."""

TICKS_PER_S = 100
"""USER_HZ: fixed in what Linux shows to programs, whatever its timer does."""

_LEAST_CPUS = 0.01
_MAX_PROGRAMS = 10


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """CPU time of a process, and of the children that it waited for, in ticks since their start."""

    name: str
    parent: int
    started: int
    own: int
    children: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Processes by number. at_s: on the clock of the controller. own: those that read, with all
    their ancestors, to which the measurement itself is charged."""

    processes: Mapping[int, ProcessTimes]
    at_s: float
    own: frozenset[int]


def reading(text: str, at_s: float) -> Reading:
    """Returns what COMMAND printed; lines that cannot be read are left out."""
    first, _, rest = text.partition("\n")
    processes: dict[int, ProcessTimes] = {}
    for line in rest.splitlines():
        with contextlib.suppress(ValueError, IndexError):
            number, times = _process(line)
            processes[number] = times
    own: set[int] = set()
    number = int(first) if first.strip().isdigit() else 0
    while number and number not in own:
        own.add(number)
        number = processes[number].parent if number in processes else 0
    return Reading(processes, at_s, frozenset(own))


def _process(line: str) -> tuple[int, ProcessTimes]:
    number, _, rest = line.partition(" (")
    name, _, text = rest.rpartition(") ")
    fields = text.split(" ")
    own, children = (sum(map(int, fields[at : at + 2])) for at in (11, 13))
    return int(number), ProcessTimes(name, int(fields[1]), int(fields[19]), own, children)


def busy_programs(before: Reading, after: Reading) -> list[dict[str, Any]]:
    """Returns the programs that used CPUs between two readings, the busiest first.

    Each with its name and the CPUs that it used on average. The measurement itself is left out.
    """
    elapsed_s = after.at_s - before.at_s
    if elapsed_s <= 0:
        return []
    own = before.own | after.own
    ticks: dict[int, int] = {}
    for number, now in after.processes.items():
        then = before.processes.get(number)
        known = then is not None and then.started == now.started
        used = now.own + now.children
        ticks[number] = used - (then.own + then.children if known and then else 0)
    for number, then in before.processes.items():
        # What it used before the first reading is in its parent's sum since it ended.
        if number not in after.processes and then.parent in ticks:
            ticks[then.parent] -= then.own + then.children
    by_name: Counter[str] = Counter()
    for number, used in ticks.items():
        if number not in own:
            by_name[after.processes[number].name] += max(0, used)
    cpus = {name: used / TICKS_PER_S / elapsed_s for name, used in by_name.most_common()}
    return [
        {"program": name, "cpus": round(value, 3)}
        for name, value in list(cpus.items())[:_MAX_PROGRAMS]
        if value >= _LEAST_CPUS
    ]
