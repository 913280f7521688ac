"""Streams of a program that is not trusted to be brief, and waits that must not be cut short."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

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
    kept = b""
    while chunk := await read(_CHUNK):
        kept = (kept + chunk)[-STDERR_TAIL_BYTES:]
    return kept
