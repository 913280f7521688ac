"""A WebSocket whose other side closes: what it sent before is received."""

from __future__ import annotations

import asyncio
import struct

import pytest

from nephoscope.measure.targets.exec.websocket import BINARY, WebSocket

PING, CLOSE = 9, 8


def frame(kind: int, payload: bytes) -> bytes:
    return struct.pack("!BB", 0x80 | kind, len(payload)) + payload


class _Gone:
    """A writer whose connection the other side has closed."""

    def write(self, data: bytes) -> None:
        """Writes nowhere."""

    async def drain(self) -> None:
        raise ConnectionResetError("Connection lost")

    def close(self) -> None:
        """There is nothing to close."""


async def received(*frames: bytes) -> list[bytes]:
    reader = asyncio.StreamReader()
    for each in frames:
        reader.feed_data(each)
    reader.feed_eof()
    socket = WebSocket(reader, _Gone())  # type: ignore[arg-type]
    contents = []
    try:
        while (message := await socket.receive()) is not None:
            contents.append(message[1])
    finally:
        socket.close()
    return contents


def test_a_ping_that_cannot_be_answered_loses_nothing_behind_it() -> None:
    sent = (frame(PING, b"?"), frame(BINARY, b"the last words"), frame(CLOSE, b"\x03\xe8"))
    assert asyncio.run(received(*sent)) == [b"the last words"]


def test_an_end_without_a_close_is_a_lost_connection() -> None:
    with pytest.raises(ConnectionError, match="the connection was closed"):
        asyncio.run(received(frame(BINARY, b"x")))
