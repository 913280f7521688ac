"""A child process that never outlives us, whose output never fills our memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nephoscope.targets.channels.streams import LineReader, read_tail
from nephoscope.tasks import uncancelled

GRACE_S = 2.0
"""Time between the polite signal and the one that cannot be refused."""

_PASSED_ON = ("LANG", "PATH", "TMPDIR", "HOME")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended. returncode: negative for a signal. why: '', 'timeout' or 'output'."""

    returncode: int
    stdout: bytes
    stderr_tail: str
    why: str = ""


def environment() -> dict[str, str]:
    """The environment of a probe: what it needs to find files, and no secrets."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


async def run_child(
    command: Sequence[str],
    *,
    timeout_s: float,
    max_bytes: int,
    max_lines: int,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Runs a program to its end, or ends it: after `timeout_s`, too much output, or cancellation.

    Raises OSError when it cannot be started.
    """
    child = await start_child(command, env)
    return await child.rest(timeout_s, max_bytes, max_lines)


async def start_child(command: Sequence[str], env: Mapping[str, str] | None = None) -> Child:
    """Starts a program. Raises OSError when it cannot be started.

    Its standard input is a pipe that closes with us; it is the leader of its own group, so that a
    Ctrl-C at the terminal reaches us alone and we end it in order.
    """
    return Child(
        await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
            env=dict(env if env is not None else environment()),
            process_group=0,
        )
    )


class Child:
    """A child process as a `channel.Program`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.pid = process.pid
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._ahead = LineReader(process.stdout.read)
        self._tail = asyncio.ensure_future(read_tail(process.stderr.read))

    async def send_line(self, line: bytes) -> None:
        """See `Program.send_line`."""
        self._stdin.write(line)
        await self._stdin.drain()

    def close_input(self) -> None:
        """See `Program.close_input`."""
        self._stdin.close()

    async def chunk(self) -> bytes:
        """See `Program.chunk`."""
        return await self._ahead.chunk()

    async def line(self) -> bytes | None:
        """See `Program.line`."""
        return await self._ahead.line()

    async def rest(self, timeout_s: float, max_bytes: int, max_lines: int) -> Ended:
        """See `Program.rest`; why: '', 'timeout' or 'output'. Cancelled, it ends the child."""
        why, stdout = "", b""
        try:
            async with asyncio.timeout(timeout_s):
                stdout, within = await self._ahead.rest(max_bytes, max_lines)
                if within:
                    await self._process.wait()
                else:
                    why = "output"
        except TimeoutError:
            why = "timeout"
        finally:
            # A cancelled trial must not leave its probe behind.
            await self.end()
        done = self._tail.done() and not self._tail.cancelled()
        words = self._tail.result() if done else b""
        assert self._process.returncode is not None
        return Ended(self._process.returncode, stdout, words.decode("utf-8", errors="replace"), why)

    async def end(self) -> None:
        """See `Program.end`."""
        await uncancelled(self._end())

    def ended(self) -> bool:
        """See `Program.ended`."""
        return self._process.returncode is not None

    async def _end(self) -> None:
        if self._process.returncode is None:
            _signal(self._process, signal.SIGTERM)
            try:
                await asyncio.wait_for(_exited(self._process), GRACE_S)
            except TimeoutError:
                _signal(self._process, signal.SIGKILL)
                await _exited(self._process)
        # A grandchild may hold the pipe open; its words are not waited for.
        await asyncio.wait({self._tail}, timeout=GRACE_S)
        self._tail.cancel()
        # asyncio closes the pipes of a child only once they were read to their end; ours may have
        # been left in the middle, and would stay open until the garbage is collected.
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()


async def _exited(child: asyncio.subprocess.Process) -> None:
    """Returns when the child is gone.

    `Process.wait` of some Python versions waits for the pipes too, and we may have left one unread.
    """
    while child.returncode is None:
        await asyncio.sleep(0.005)


def _signal(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(number)
