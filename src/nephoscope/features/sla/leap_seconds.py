"""Leap seconds in files of events: a minute that has a second 60.

Seconds since 1970 have no leap second, and readers of times refuse 23:59:60. It is read as the
last microsecond of the minute, so that the event keeps its place: behind second 59 and before the
next minute.
"""

from __future__ import annotations

import io
import re
from typing import IO

_BLOCK_BYTES = 1 << 20
_LEAP = re.compile(rb":([0-5]\d):60(?:\.(\d+))?(?=[Zz+\-,;\s\"']|$)")
_FRACTION_DIGITS = 3
"""Digits of a fraction of a leap second that a time in nanoseconds still has."""


class LeapSeconds(io.RawIOBase):
    """The bytes of a text file, line by line, with each leap second in the minute before it."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self._ready = memoryview(b"")
        self._rest = b""

    def readable(self) -> bool:
        """States that bytes can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fills the buffer as far as bytes are ready; returns their number, 0 at the end."""
        while not self._ready:
            block = self._stream.read(_BLOCK_BYTES)
            text = self._rest + block
            if not text:
                return 0
            # A time may go on in the next block, a line does not.
            end = text.rfind(b"\n") + 1 if block else len(text)
            self._rest, text = text[end:], text[:end]
            if b":60" in text:
                text = _LEAP.sub(_in_the_minute_before, text)
            self._ready = memoryview(text)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def _in_the_minute_before(match: re.Match[bytes]) -> bytes:
    fraction = (match[2] or b"")[:_FRACTION_DIGITS]
    return b":" + match[1] + b":59.999999" + fraction
