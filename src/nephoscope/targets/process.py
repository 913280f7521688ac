"""A child process that never outlives us, whose output never fills our memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

GRACE_S = 2.0
"""Time between the polite signal and the one that cannot be refused."""

STDERR_TAIL_BYTES = 4096
_CHUNK = 1 << 16
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

    Its standard input is a pipe that closes with us; it is the leader of its own group, so that a
    Ctrl-C at the terminal reaches us alone and we end it in order. Raises OSError when it cannot
    be started.
    """
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd="/",
        env=dict(env if env is not None else environment()),
        process_group=0,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    tail = asyncio.ensure_future(_tail(child.stderr))
    reading = asyncio.ensure_future(_bounded(child.stdout, max_bytes, max_lines))
    why = ""
    try:
        async with asyncio.timeout(timeout_s):
            stdout, within = await reading
            if within:
                await child.wait()
            else:
                why = "output"
    except TimeoutError:
        stdout, why = b"", "timeout"
    finally:
        reading.cancel()
        # A cancelled trial must not leave its probe behind.
        await _uncancelled(_end(child, tail))
    words = tail.result() if tail.done() and not tail.cancelled() else b""
    assert child.returncode is not None
    return Ended(child.returncode, stdout, words.decode("utf-8", errors="replace"), why)


async def _end(child: asyncio.subprocess.Process, tail: asyncio.Future[bytes]) -> None:
    """Ends a child: asked, then killed. Returns when it is gone and its last words are read."""
    if child.returncode is None:
        _signal(child, signal.SIGTERM)
        try:
            await asyncio.wait_for(_exited(child), GRACE_S)
        except TimeoutError:
            _signal(child, signal.SIGKILL)
            await _exited(child)
    # A grandchild may hold the pipe open; its words are not waited for.
    await asyncio.wait({tail}, timeout=GRACE_S)
    tail.cancel()
    # asyncio closes the pipes of a child only once they were read to their end; ours may have been
    # left in the middle, and would stay open until the garbage is collected.
    transport = getattr(child, "_transport", None)
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


async def _uncancelled(work: Awaitable[None]) -> None:
    """Waits for `work` to its end; a cancellation that comes meanwhile is raised afterwards."""
    task: asyncio.Future[None] = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError


async def _bounded(
    stream: asyncio.StreamReader, max_bytes: int, max_lines: int
) -> tuple[bytes, bool]:
    """All that the stream says, and whether it kept to the bounds; stops reading beyond them."""
    chunks: list[bytes] = []
    size = lines = 0
    while chunk := await stream.read(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        lines += chunk.count(b"\n")
        if size > max_bytes or lines > max_lines:
            return b"".join(chunks), False
    return b"".join(chunks), True


async def _tail(stream: asyncio.StreamReader) -> bytes:
    """The last words of a stream; reads on, so that the writer never waits for us."""
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept = (kept + chunk)[-STDERR_TAIL_BYTES:]
    return kept
