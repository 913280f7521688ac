"""How programs are started on a machine: as a child, inside a lab host, over ssh.

A target's verbs are the same everywhere; only this differs. To add a way of reaching a machine,
write a channel and let `Target` do the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from nephoscope.core.errors import TargetError, words_of
from nephoscope.core.programs import PROBE
from nephoscope.measure.targets.channels.child import Ended


class Program(Protocol):
    """A program that runs on the machine, its standard input and output in our hands.

    It ends when its standard input does. `line` and `rest` raise TargetError when the machine is
    gone.
    """

    async def send_line(self, line: bytes) -> None:
        """Writes one line to its standard input. BrokenPipeError when it has ended."""

    def close_input(self) -> None:
        """Ends its standard input."""

    async def chunk(self) -> bytes:
        """Some of what it prints next; empty at the end."""

    async def line(self) -> bytes | None:
        """The next line of its standard output, with its line feed; None at the end."""

    async def rest(self, timeout_s: float, max_bytes: int, max_lines: int) -> Ended:
        """Reads what is left and waits for the end; `Ended.stdout` has the lines not yet taken.

        Ends it after `timeout_s`, beyond the bounds, and when cancelled.
        """

    async def end(self) -> None:
        """Ends it: asked, then killed. Returns when it is gone. May be called twice."""

    def ended(self) -> bool:
        """Returns whether it has ended."""


def connection_lost(where: str, error: Exception | None = None) -> TargetError:
    """Returns the failure of a target whose connection has ended."""
    why = f": {words_of(error)}" if error and str(error) else ""
    return TargetError(
        f"{where}: the connection was lost{why}.",
        "What was measured is kept; check the machine and the way to it, then run it again.",
    )


class Channel(Protocol):
    """A way to a machine."""

    name: str
    directory: str
    """Where its programs start, and so where relative paths begin; known once it is open."""
    prefix: Sequence[str]
    """Words in front of every command: of a program that goes to another place of the machine."""

    async def open(self, timeout_s: float) -> None:
        """Reaches the machine; again, when the way to it was lost.

        Raises TargetError with one sentence when that fails, Lacking when something is missing
        here. Removes what a killed process of ours left there.
        """

    async def probe(self, name: str = PROBE) -> str:
        """Path there of the probe for that machine, brought there first when it has to be.

        name: of the program; `programs.STORAGE` is the probe with the libraries of services.
        """

    async def start(self, command: Sequence[str]) -> Program:
        """Starts a program with these arguments (never through a shell that would read them).

        Raises TargetError when it cannot be started.
        """

    async def work(self) -> str:
        """Path there of a folder of our own; it vanishes with `close`, or the next `open`."""

    async def put(self, source: Path, there: str) -> None:
        """Copies a file there; whole, or not at all. Makes the folder it lies in."""

    async def get(self, there: str, destination: Path) -> None:
        """Copies a file here; whole, or not at all."""

    async def close(self) -> None:
        """Hangs up and removes the work folder. May be called twice."""
