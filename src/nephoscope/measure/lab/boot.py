"""How long a host takes to start, in segments, seen from outside: its console and its answers."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path

from nephoscope.core.errors import RunFailed
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass

KERNEL_MARK = "Linux version "
"""In the first line that every kernel prints."""
USERLAND_MARK = "nephoscope: userland"
"""What our init prints first."""
READY_MARK = "nephoscope: ready"
"""What our init prints when its servers have started."""

STEP_S = 0.005
"""How often the console is looked at: the resolution of the marks."""
_LINE_MAX = 300
_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|.)")
_WORTH_SAYING_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class BootTimes:
    """Marks of a start in ns since it was requested; None where there is no mark.

    kernel: the first line of its kernel; userland: the first line of its init; reachable: the first
    answer from inside (the greeting of its ssh server; of a bare host or container, the end of a
    first program); output: the first output of its program, where that is neither of the lines.
    answer, running: of a rented machine, the answer of the cloud and its first list in which the
    machine runs.
    reasons: segment -> why it is None. resolution_ns: by how much a mark may have been seen late:
    the longest time for which nobody looked before one was found.
    """

    kernel_ns: int | None
    userland_ns: int | None
    reachable_ns: int
    reasons: Mapping[str, str] = field(default_factory=dict)
    resolution_ns: int = 0
    output_ns: int | None = None
    answer_ns: int | None = None
    running_ns: int | None = None

    def marks(self) -> Mapping[str, int | None]:
        """Segment -> ns since the request, in order."""
        return {
            "output": self.output_ns,
            "kernel": self.kernel_ns,
            "userland": self.userland_ns,
            "reachable": self.reachable_ns,
        }

    def says(self) -> str:
        """`kernel 0.31 s, userland 2.90 s, reachable 3.12 s`: since the request, for people."""
        times = [f"{n} {at / 1e9:.2f} s" for n, at in self.marks().items() if at is not None]
        if self.resolution_ns > _WORTH_SAYING_NS:
            times.append(f"seen up to {self.resolution_ns / 1e9:.2f} s late")
        return ", ".join(times)


class Console:
    """A console that is written to a file, read while it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = ""
        self.last_line = ""
        self.seen: dict[str, int] = {}
        """Mark -> time.monotonic_ns() at which it was first seen."""
        self.output_ns: int | None = None
        """time.monotonic_ns() at which anything was first seen."""
        self.resolution_ns = 0
        """The longest time between the look that found a mark and the one before it."""
        self._looked_ns = time.monotonic_ns()

    def skip(self) -> None:
        """Leaves out what is there already: the console of an earlier boot."""
        self._offset = self._path.stat().st_size if self._path.exists() else 0

    def poll(self) -> None:
        """Takes in what was written since."""
        before, self._looked_ns = self._looked_ns, time.monotonic_ns()
        try:
            with regular.open_regular(self._path) as file:
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            return
        if not new:
            return
        now = time.monotonic_ns()
        self.output_ns = self.output_ns or now
        self._offset += len(new)
        text = self._rest + new.decode("utf-8", errors="replace")
        for mark in (KERNEL_MARK, USERLAND_MARK, READY_MARK):
            if mark in text and mark not in self.seen:
                self.seen[mark] = now
                self.resolution_ns = max(self.resolution_ns, now - before)
        *lines, self._rest = text.replace("\r", "\n").split("\n")
        for line in (*lines, self._rest):
            text = "".join(ch for ch in _ESCAPES.sub("", line) if ch.isprintable())
            self.last_line = text.strip()[:_LINE_MAX] or self.last_line
        # A mark may lie across two looks, never across two lines.
        self._rest = self._rest[-_LINE_MAX:]


async def watch(
    what: str,
    began_ns: int,
    console: Console,
    alive: Callable[[], bool],
    answers: Callable[[], Awaitable[bool]],
    timeout_s: float,
) -> BootTimes:
    """Follows a boot until it answers.

    what: `host b (qemu)`, for the sentence. began_ns: time.monotonic_ns() of the request.
    alive: whether the guest's process is still there. answers: one try, short, of reaching it.
    Raises RunFailed with the phase it came to and its last words when it ends or takes longer.
    """
    while True:
        console.poll()
        up = USERLAND_MARK in console.seen and await answers()
        now = time.monotonic_ns()
        if up:
            console.poll()
            return _times(console, began_ns, now)
        if not alive():
            console.poll()
            raise _never(what, console, "ended")
        if now - began_ns > timeout_s * 1e9:
            raise _never(what, console, f"was not reachable in {timeout_s:.0f} s")
        await asyncio.sleep(STEP_S)


def _times(console: Console, began_ns: int, reachable_ns: int) -> BootTimes:
    seen = console.seen
    kernel, userland = seen.get(KERNEL_MARK), seen.get(USERLAND_MARK)
    reasons = {} if kernel else {"kernel": "its kernel's first line was not seen on the console"}
    output, first = console.output_ns, kernel or userland
    if output is None or output == first:
        output = None
        line = "its kernel's" if kernel else "its init's"
        reasons["output"] = f"the first output and {line} first line were seen at once"
    return BootTimes(
        kernel - began_ns if kernel else None,
        userland - began_ns if userland else None,
        reachable_ns - began_ns,
        reasons,
        console.resolution_ns,
        output - began_ns if output else None,
    )


def _never(what: str, console: Console, how: str) -> RunFailed:
    seen = console.seen
    if USERLAND_MARK in seen:
        phase = "its userland had begun"
    elif KERNEL_MARK in seen:
        phase = "its kernel had begun, its userland had not"
    else:
        phase = "nothing of it had begun"
    last = f"; its last line was '{console.last_line}'" if console.last_line else ""
    return RunFailed(
        f"{what} {how}: {phase}{last}.",
        "Give it more memory or a larger share of a CPU, or try it alone on this machine.",
    )


def timeout_s(share: float) -> float:
    """Returns how long a boot may take for a host that has at most `share` of one CPU."""
    return 60.0 / min(1.0, max(share, 0.02))
