"""A child process that never outlives us, and readers of streams that never fill our memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import IO

from nephoscope.core.tasks import uncancelled
from nephoscope.measure.targets import marked

GRACE_S = 2.0
"""Time between the polite signal and the one that cannot be refused."""

_PASSED_ON = ("LANG", "PATH", "TMPDIR", "HOME", "SSL_CERT_FILE")
_POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a child. returncode: negative for a signal. why: '', 'timeout' or 'output'."""

    returncode: int
    stdout: bytes
    stderr_tail: str
    why: str = ""


def environment() -> dict[str, str]:
    """The environment of a probe: what it needs to find files, and no secrets."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**passed_on, **marked.environment()}


def start_child(command: Sequence[str], directory: str | None = None) -> Child:
    """Starts a program in a directory, ours by default. Raises OSError when it cannot be started.

    Its standard input is a pipe that closes with us; it is the leader of its own group, so that a
    Ctrl-C at the terminal reaches us alone and we end it in order.
    """
    return Child(
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=directory,
            env=environment(),
            process_group=0,
        )
    )


class _Pipe:
    """Our end of a pipe, or of a process: readable once that has ended.

    The streams of asyncio, with a thread for each child, take 0.7 ms of CPU time a trial more.
    """

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._descriptor = stream.fileno()
        self._ready: asyncio.Future[None] | None = None
        os.set_blocking(self._descriptor, False)

    @property
    def closed(self) -> bool:
        """Returns whether it was closed."""
        return self._stream.closed

    async def read(self, size: int) -> bytes:
        """Returns some of what comes next; empty at the end, and once the pipe was closed."""
        while not self.closed:
            try:
                return os.read(self._descriptor, size)
            except BlockingIOError:
                await self.until_ready()
        return b""

    async def write(self, content: bytes) -> None:
        """Writes all of it. BrokenPipeError when nobody reads it any more."""
        while content:
            if self.closed:
                raise BrokenPipeError
            try:
                content = content[os.write(self._descriptor, content) :]
            except BlockingIOError:
                await self.until_ready(writing=True)

    async def until_ready(self, *, writing: bool = False) -> None:
        """Waits until it can be read or written, or was closed."""
        if self._ready is None:
            loop = asyncio.get_running_loop()
            self._ready = loop.create_future()
            (loop.add_writer if writing else loop.add_reader)(self._descriptor, self._wake)
        # Several may wait, and one that is cancelled must not stop the others.
        await asyncio.shield(self._ready)

    def close(self) -> None:
        """Closes it and wakes up whoever waits at it. May be called twice."""
        if not self.closed:
            self._wake()
            self._stream.close()

    def _wake(self) -> None:
        if self._ready is not None:
            loop, ready, self._ready = self._ready.get_loop(), self._ready, None
            loop.remove_reader(self._descriptor)
            loop.remove_writer(self._descriptor)
            ready.set_result(None)


class Child:
    """A child process as a `channel.Program`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        self._process = process
        self._stdin, stdout, stderr = map(_Pipe, (process.stdin, process.stdout, process.stderr))
        self._pipes = [self._stdin, stdout, stderr]
        self._exit: _Pipe | None = None
        with contextlib.suppress(OSError):  # a kernel before 5.3, or a sandbox
            self._exit = _Pipe(os.fdopen(os.pidfd_open(process.pid), "rb", buffering=0))
            self._pipes.append(self._exit)
        self._ahead = LineReader(stdout.read)
        self._tail = asyncio.ensure_future(read_tail(stderr.read))

    async def send_line(self, line: bytes) -> None:
        """See `Program.send_line`."""
        await self._stdin.write(line)

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
                    await self._exited()
                else:
                    why = "output"
        except TimeoutError:
            why = "timeout"
        finally:
            # A cancelled trial must not leave its probe behind.
            await self.end()
        assert self._process.returncode is not None
        words = self._tail.result().decode("utf-8", errors="replace")
        return Ended(self._process.returncode, stdout, words, why)

    async def end(self) -> None:
        """See `Program.end`."""
        if not (self._tail.done() and all(pipe.closed for pipe in self._pipes)):
            await uncancelled(self._end())

    def ended(self) -> bool:
        """See `Program.ended`."""
        return self._process.poll() is not None

    async def _end(self) -> None:
        if not self.ended():
            self._process.terminate()
            try:
                await asyncio.wait_for(self._exited(), GRACE_S)
            except TimeoutError:
                self._process.kill()
                await self._exited()
        # A grandchild may hold the pipe open; its words are not waited for.
        await asyncio.wait({self._tail}, timeout=GRACE_S)
        for pipe in self._pipes:
            pipe.close()
        await self._tail

    async def _exited(self) -> None:
        while not self.ended():
            await (self._exit.until_ready() if self._exit else asyncio.sleep(_POLL_S))


STDERR_TAIL_BYTES = 4096
MAX_LINE_BYTES = 1 << 20
_CHUNK = 1 << 16


class LineReader:
    """A stream of bytes of which lines are taken one by one, and then all the rest.

    Nothing is lost when a wait for a line is cancelled or times out.
    """

    def __init__(self, read: Callable[[int], Awaitable[bytes]]) -> None:
        self._read = read
        self._held = b""

    async def line(self) -> bytes | None:
        """The next line with its line feed; None at the end, with what was cut off still held.

        Longer lines than `MAX_LINE_BYTES` count as the end: nobody here asks for one by itself.
        """
        while (end := self._held.find(b"\n") + 1) == 0:
            chunk = await self._read(_CHUNK) if len(self._held) < MAX_LINE_BYTES else b""
            if not chunk:
                return None
            self._held += chunk
        line, self._held = self._held[:end], self._held[end:]
        return line

    async def chunk(self) -> bytes:
        """Some of what comes next; empty at the end."""
        held, self._held = self._held, b""
        return held or await self._read(_CHUNK)

    async def rest(self, max_bytes: int, max_lines: int) -> tuple[bytes, bool]:
        """All that the stream still says, and whether it kept to the bounds; stops beyond them."""
        chunks = [self._held]
        size, lines = len(self._held), self._held.count(b"\n")
        while chunk := await self._read(_CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            lines += chunk.count(b"\n")
            if size > max_bytes or lines > max_lines:
                return b"".join(chunks), False
        return b"".join(chunks), True


def last_words(tail: str) -> str:
    """Returns the last line of what a program said, for the end of a sentence."""
    words = tail.strip().splitlines()
    return f" Its last words: {words[-1][:200]}" if words else ""


async def read_tail(read: Callable[[int], Awaitable[bytes]]) -> bytes:
    """The last words of a stream; reads on, so that the writer never waits for us."""
    tail = b""
    while chunk := await read(_CHUNK):
        tail = (tail + chunk)[-STDERR_TAIL_BYTES:]
    return tail
