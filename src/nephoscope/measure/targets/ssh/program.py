"""A program on the far side of an ssh connection, as a `channel.Program`."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Sequence

import asyncssh

from nephoscope.core.errors import TargetError
from nephoscope.core.tasks import uncancelled
from nephoscope.measure.targets.channels.channel import connection_lost
from nephoscope.measure.targets.channels.child import GRACE_S, Ended, LineReader, read_tail
from nephoscope.measure.targets.channels.shell_scripts import command_line

MAX_NOISE_LINES = 10_000
_KILLED = -9

EndThere = Callable[[str, int], Awaitable[None]]
"""Asks the far side to `term` or `kill` a process id."""


class SessionRefused(TargetError):
    """The server opens no further session on the connection; nothing was started."""


class SshProgram:
    """A session of a connection; see `Program`.

    sshd passes no signals to the programs of root and ends none when a session closes, so that a
    program is ended by what it is asked (the end of its standard input), and by its process id.
    """

    def __init__(
        self, where: str, process: asyncssh.SSHClientProcess[bytes], end_there: EndThere
    ) -> None:
        self.pid = 0
        self._where = where
        self._process = process
        self._end_there = end_there
        self._ahead = LineReader(process.stdout.read)
        self._tail = asyncio.ensure_future(read_tail(self._stderr))
        self._gone = asyncio.ensure_future(process.wait_closed())
        self._on_end: Callable[[], None] = lambda: None

    @classmethod
    async def start(
        cls,
        where: str,
        connection: asyncssh.SSHClientConnection,
        command: Sequence[str],
        end_there: EndThere,
        on_end: Callable[[], None],
    ) -> SshProgram:
        """Starts a program and waits until the shell there is about to become it.

        on_end: called once, when the session is over. Raises TargetError.
        """
        mark = f"nephoscope-{secrets.token_hex(8)}"
        try:
            process = await connection.create_process(
                command_line(command, mark),
                encoding=None,
                stdin=asyncssh.PIPE,
                request_pty=False,
                x11_forwarding=False,
                env=None,
                send_env=None,
            )
        except BaseException as error:
            on_end()
            if isinstance(error, asyncssh.Error | OSError):
                raise _refused(where, error) from error
            raise
        program = cls(where, process, end_there)
        program._on_end = on_end
        try:
            await program._skip_noise(mark.encode())
        except BaseException:
            await program.end()
            raise
        return program

    async def send_line(self, line: bytes) -> None:
        """See `Program.send_line`."""
        try:
            self._process.stdin.write(line)
            await self._process.stdin.drain()
        except (asyncssh.Error, OSError) as error:
            raise BrokenPipeError(str(error)) from error

    def close_input(self) -> None:
        """See `Program.close_input`."""
        with contextlib.suppress(asyncssh.Error, OSError):
            self._process.stdin.write_eof()

    async def chunk(self) -> bytes:
        """See `Program.chunk`."""
        try:
            return await self._ahead.chunk()
        except (asyncssh.Error, OSError) as error:
            raise connection_lost(self._where, error) from error

    async def line(self) -> bytes | None:
        """See `Program.line`."""
        try:
            return await self._ahead.line()
        except (asyncssh.Error, OSError) as error:
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
        except (asyncssh.Error, OSError) as error:
            raise connection_lost(self._where, error) from error
        finally:
            # A cancelled trial must not leave its probe behind.
            await self.end()
        code = self._process.returncode
        if code is None:
            if not why:
                raise connection_lost(self._where)
            code = _KILLED
        return Ended(code, stdout, self._last_words(), why)

    async def end(self) -> None:
        """See `Program.end`."""
        await uncancelled(self._end())

    def ended(self) -> bool:
        """See `Program.ended`."""
        return self._process.exit_status is not None or self._gone.done()

    async def _end(self) -> None:
        if not self.ended():
            self.close_input()
            if self.pid:
                await self._end_there("term", self.pid)
            await asyncio.wait({self._gone}, timeout=GRACE_S)
        if not self.ended() and self.pid:
            await self._end_there("kill", self.pid)
            await asyncio.wait({self._gone}, timeout=GRACE_S)
        self._process.close()
        # Where the connection is gone, so is what it would still say.
        await asyncio.wait({self._tail, self._gone}, timeout=GRACE_S)
        self._tail.cancel()
        on_end, self._on_end = self._on_end, lambda: None
        on_end()

    async def _skip_noise(self, mark: bytes) -> None:
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
        last = f" It said: {words_there[-1][:200]}" if words_there else ""
        raise TargetError(
            f"{self._where}: the login shell there ran no command.{last}",
            "Log in with `ssh` and run `echo ok`; nephoscope needs a shell that can do that.",
        )

    async def _stderr(self, size: int) -> bytes:
        try:
            return await self._process.stderr.read(size)
        except (asyncssh.Error, OSError):
            # Whoever waits for the output is told of the lost connection.
            return b""

    def _last_words(self) -> str:
        read = self._tail.done() and not self._tail.cancelled()
        return self._tail.result().decode("utf-8", errors="replace") if read else ""


def _refused(where: str, error: Exception) -> TargetError:
    if isinstance(error, asyncssh.ChannelOpenError) and "closed" not in str(error).lower():
        return SessionRefused(
            f"{where}: the server opens no further session: {error}.",
            "Let it open more at once (MaxSessions in its sshd_config; 10 is the default).",
        )
    return connection_lost(where, error)
