"""A program on another machine, as a `channel.Program`: over ssh, or by the API of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol, Self

from nephoscope.core.errors import TargetError
from nephoscope.core.tasks import uncancelled
from nephoscope.measure.targets.channels.channel import connection_lost
from nephoscope.measure.targets.channels.child import GRACE_S, Ended, LineReader, read_tail

MAX_NOISE_LINES = 10_000
_KILLED = -9

EndThere = Callable[[str, int], Awaitable[None]]
"""Asks the far side to `term` or `kill` a process id."""


class Session(Protocol):
    """The three streams of one program there. Every method raises OSError when the way is lost."""

    async def write(self, content: bytes) -> None:
        """Writes to its standard input."""

    def write_eof(self) -> None:
        """Ends its standard input. May be called twice."""

    async def read_output(self, size: int) -> bytes:
        """Returns some of its standard output; empty at the end."""

    async def read_errors(self, size: int) -> bytes:
        """Returns some of its standard error; empty at the end."""

    async def wait_closed(self) -> None:
        """Returns when the session is over."""

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None before its end, and where none was told."""

    def close(self) -> None:
        """Gives the session up. May be called twice."""


class RemoteProgram:
    """A program of a `Session`; see `Program`.

    The far side may pass no signals on and end nothing when a session closes (sshd, a kubelet), so
    that a program is ended by what it is asked (the end of its standard input), and by its process
    id. on_end: called once, when the session is over.
    """

    def __init__(
        self,
        where: str,
        session: Session,
        end_there: EndThere,
        on_end: Callable[[], None],
        lost_code: int | None = None,
    ) -> None:
        self.pid = 0
        self._lost_code = lost_code
        self._where = where
        self._session = session
        self._end_there = end_there
        self._ahead = LineReader(session.read_output)
        self._tail = asyncio.ensure_future(read_tail(self._stderr))
        self._gone = asyncio.ensure_future(session.wait_closed())
        self._on_end = on_end

    @classmethod
    async def start(
        cls,
        where: str,
        session: Session,
        mark: str,
        end_there: EndThere,
        on_end: Callable[[], None],
        refused: Callable[[str], TargetError],
        lost_code: int | None = None,
    ) -> Self:
        """Waits until the shell of a new session is about to become the program: until the line
        with `mark` and its process id. `refused` makes the error, of the last words, when that
        does not come. lost_code: exit code of a program in between whose connection was lost."""
        program = cls(where, session, end_there, on_end, lost_code)
        try:
            await program._skip_noise(mark.encode(), refused)
        except BaseException:
            await program.end()
            raise
        return program

    async def send_line(self, line: bytes) -> None:
        """See `Program.send_line`."""
        try:
            await self._session.write(line)
        except OSError as error:
            raise BrokenPipeError(str(error)) from error

    def close_input(self) -> None:
        """See `Program.close_input`."""
        with contextlib.suppress(OSError):
            self._session.write_eof()

    async def chunk(self) -> bytes:
        """See `Program.chunk`."""
        try:
            return await self._ahead.chunk()
        except OSError as error:
            raise connection_lost(self._where, error) from error

    async def line(self) -> bytes | None:
        """See `Program.line`."""
        try:
            return await self._ahead.line()
        except OSError as error:
            raise connection_lost(self._where, error) from error

    async def rest(self, timeout_s: float, max_bytes: int, max_lines: int) -> Ended:
        """See `Program.rest`."""
        why, stdout = "", b""
        try:
            async with asyncio.timeout(timeout_s):
                stdout, within = await self._ahead.rest(max_bytes, max_lines)
                if within:
                    await asyncio.shield(self._gone)
                else:
                    why = "output"
        except TimeoutError:
            why = "timeout"
        except OSError as error:
            raise connection_lost(self._where, error) from error
        finally:
            # A cancelled trial must not leave its probe behind.
            await self.end()
        code = self._session.returncode
        if code is None:
            if not why:
                raise connection_lost(self._where)
            code = _KILLED
        if code == self._lost_code and not why:
            raise connection_lost(self._where)
        return Ended(code, stdout, self._last_words(), why)

    async def end(self) -> None:
        """See `Program.end`."""
        await uncancelled(self._end())

    def ended(self) -> bool:
        """See `Program.ended`."""
        return self._session.returncode is not None or self._gone.done()

    async def _end(self) -> None:
        if not self.ended():
            self.close_input()
            if self.pid:
                await self._end_there("term", self.pid)
            await asyncio.wait({self._gone}, timeout=GRACE_S)
        if not self.ended() and self.pid:
            await self._end_there("kill", self.pid)
            await asyncio.wait({self._gone}, timeout=GRACE_S)
        self._session.close()
        # Where the connection is gone, so is what it would still say.
        await asyncio.wait({self._tail, self._gone}, timeout=GRACE_S)
        self._tail.cancel()
        on_end, self._on_end = self._on_end, lambda: None
        on_end()

    async def _skip_noise(self, mark: bytes, refused: Callable[[str], TargetError]) -> None:
        """Reads up to the line with the mark, and the process id on it."""
        seen: list[bytes] = []
        while (line := await self.line()) is not None and len(seen) < MAX_NOISE_LINES:
            words = line.split()
            if len(words) == 2 and words[0] == mark and words[1].isdigit():
                self.pid = int(words[1])
                return
            seen.append(line)
        await self.end()
        text = b"".join(seen).decode("utf-8", errors="replace") + self._last_words()
        words_there = text.strip().splitlines()
        raise refused(words_there[-1][:200] if words_there else "")

    async def _stderr(self, size: int) -> bytes:
        try:
            return await self._session.read_errors(size)
        except OSError:
            # Whoever waits for the output is told of the lost connection.
            return b""

    def _last_words(self) -> str:
        read = self._tail.done() and not self._tail.cancelled()
        return self._tail.result().decode("utf-8", errors="replace") if read else ""
