"""A client of WebSocket (RFC 6455) on a stream: as much of it as the APIs of clusters need."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import secrets
import struct
from collections.abc import Sequence

from nephoscope.measure.targets.exec.rest import CONNECT_S, READ_S, RestServer

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, TEXT, BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_MESSAGE_BYTES = 1 << 24
_PING_S = 20.0
"""Balancers cut connections that are silent for a minute, sometimes half of one."""


class HandshakeRefused(ConnectionError):
    """The server speaks HTTP and opens no WebSocket. status: of HTTP; the text is its reason."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class WebSocket:
    """An open connection. One task may receive while others send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sending = asyncio.Lock()
        self._heard = True
        self._pings = asyncio.ensure_future(self._ping())

    @classmethod
    async def open(
        cls, server: RestServer, path: str, protocols: Sequence[str] = ()
    ) -> tuple[WebSocket, str]:
        """Returns a connection and the subprotocol that the server chose, '' for none.

        Raises HandshakeRefused, and OSError where there is no connection.
        """
        reader, writer = await server.open_stream()
        try:
            async with asyncio.timeout(CONNECT_S + READ_S):
                chosen = await _shake_hands(server, path, protocols, reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise ConnectionError("the connection was closed") from error
        except BaseException:
            writer.close()
            raise
        return cls(reader, writer), chosen

    async def send(self, payload: bytes, kind: int = BINARY) -> None:
        """Sends one message, or a control frame. Raises OSError."""
        mask = secrets.token_bytes(4)
        size = len(payload)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        async with self._sending:
            self._writer.write(head + mask + _masked(payload, mask))
            await self._writer.drain()

    async def receive(self) -> tuple[int, bytes] | None:
        """Returns the next message, `TEXT` or `BINARY`, and its content; None once it is closed.

        Raises OSError when the connection is lost.
        """
        kind, parts, size = 0, list[bytes](), 0
        while True:
            try:
                final, opcode, payload = await self._frame()
            except asyncio.IncompleteReadError:
                raise ConnectionError("the connection was closed") from None
            self._heard = True
            if opcode == _CLOSE:
                with contextlib.suppress(OSError):
                    await self.send(payload[:2], _CLOSE)
                return None
            if opcode == _PING:
                # The other side may have closed after it; what it sent before is still to be read.
                with contextlib.suppress(OSError):
                    await self.send(payload, _PONG)
            elif opcode in (_CONTINUATION, TEXT, BINARY):
                kind = opcode or kind
                parts.append(payload)
                size += len(payload)
                if size > _MESSAGE_BYTES:
                    raise ConnectionError("a message is longer than 16 MiB")
                if final:
                    return kind, b"".join(parts)

    def close(self) -> None:
        """Closes the connection. May be called twice."""
        self._pings.cancel()
        self._writer.close()

    async def _frame(self) -> tuple[bool, int, bytes]:
        first, second = await self._reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", await self._reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
        if size > _MESSAGE_BYTES:
            raise ConnectionError("a message is longer than 16 MiB")
        mask = await self._reader.readexactly(4) if second & 0x80 else b""
        payload = await self._reader.readexactly(size)
        return bool(first & 0x80), first & 0x0F, _masked(payload, mask) if mask else payload

    async def _ping(self) -> None:
        """Keeps the connection open, and closes it when nothing is heard any more."""
        with contextlib.suppress(OSError):
            while self._heard:
                self._heard = False
                await self.send(b"", _PING)
                await asyncio.sleep(_PING_S)
        self._writer.close()


async def _shake_hands(
    server: RestServer,
    path: str,
    protocols: Sequence[str],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> str:
    key = base64.b64encode(os.urandom(16))
    headers = {
        "Host": f"{server.host}:{server.port}" if server.port else server.host,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key.decode(),
        **({"Sec-WebSocket-Protocol": ", ".join(protocols)} if protocols else {}),
        **server.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET {server.prefix}{path} HTTP/1.1\r\n{lines}\r\n".encode())
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = head[0].split(" ", 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0
    answered = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:])
    }
    expected = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
    if status != 101:
        raise HandshakeRefused(status, await _reason(reader, answered, head[0]))
    if answered.get("sec-websocket-accept", "") != expected.decode():
        raise HandshakeRefused(status, "the answer is not of a WebSocket")
    return answered.get("sec-websocket-protocol", "")


async def _reason(reader: asyncio.StreamReader, headers: dict[str, str], line: str) -> str:
    """Returns the server's words: `message` or `error` of a JSON document, else the status."""
    length = headers.get("content-length", "")
    body = b""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        if length.isdecimal():
            body = await reader.readexactly(min(int(length), 1 << 16))
        else:
            body = await reader.read(1 << 16)
    start = body.find(b"{")
    with contextlib.suppress(ValueError):
        document = json.loads(body[start : body.rfind(b"}") + 1])
        words = document.get("message") or document.get("error")
        if words:
            return str(words)
    return line.partition(" ")[2]


def _masked(payload: bytes, mask: bytes) -> bytes:
    """Returns the payload with each byte combined with one of the mask's (RFC 6455, 5.3)."""
    size = len(payload)
    repeated = (mask * (size // 4 + 1))[:size]
    whole = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
    return whole.to_bytes(size, "big")
