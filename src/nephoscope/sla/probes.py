"""One probe of a service: HTTP, TCP, ICMP, DNS, or the exit code of a command."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import signal
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from nephoscope.errors import UsageError

_BODY_BYTES = 64 << 20
_SCRIPT = "script:"
_PORTS = {"http": 80, "https": 443, "dns": 53}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a probe saw; response_ms: until the answer was complete. reason: why it failed."""

    ok: bool
    response_ms: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """A service to watch: its name and the address of the probe."""

    name: str
    address: str


class _Failure(Exception):
    """The service answered, and the answer is none of a service that works."""


def service_of(text: str) -> Service:
    """Returns the service of NAME=ADDRESS or ADDRESS. Raises UsageError."""
    name, equals, address = text.partition("=")
    if not equals or "://" in name or name.startswith(_SCRIPT):
        name, address = text, text
    if "," in name or '"' in name or any(ord(c) < 32 for c in name):
        raise UsageError(f"'{text[:80]}': a name has no commas or quotes.", "Use NAME=ADDRESS.")
    check_address(address)
    return Service(name, address)


def check_address(address: str) -> None:
    """Raises UsageError for what is no address of a probe."""
    if address.startswith(_SCRIPT):
        try:
            words = shlex.split(address.removeprefix(_SCRIPT))
        except ValueError:
            words = []
        if words:
            return
    else:
        with contextlib.suppress(ValueError):
            url = urlsplit(address)
            port = url.port or _PORTS.get(url.scheme)
            known = url.scheme in _PROBES and url.hostname
            if known and (port or url.scheme == "icmp") and (url.scheme != "dns" or url.path[1:]):
                return
    raise UsageError(
        f"'{address[:80]}' is no address of a service.",
        "Use http://HOST/, https://HOST/, tcp://HOST:PORT, icmp://HOST, dns://SERVER/NAME or "
        "script:COMMAND.",
    )


async def probe(address: str, timeout_s: float) -> Outcome:
    """Returns the outcome of one probe, which takes at most the timeout.

    A timeout counts as a response time of its length.
    """
    start = time.perf_counter()
    run: Callable[[], Awaitable[None]]
    if address.startswith(_SCRIPT):
        run = lambda: _script(address.removeprefix(_SCRIPT))  # noqa: E731
    else:
        url = urlsplit(address)
        run = lambda: _PROBES[url.scheme](url)  # noqa: E731
    try:
        async with asyncio.timeout(timeout_s):
            await run()
    except TimeoutError:
        return Outcome(False, timeout_s * 1e3, "timeout")
    except _Failure as failure:
        return Outcome(False, _elapsed_ms(start), str(failure))
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        return Outcome(False, None, str(reason).replace(",", ";")[:100])
    return Outcome(True, _elapsed_ms(start))


def _elapsed_ms(start: float) -> float:
    return (time.perf_counter() - start) * 1e3


async def _http(url: SplitResult) -> None:
    """Reads the whole answer; status 200 to 399 is good."""
    secure = url.scheme == "https"
    port = url.port or _PORTS[url.scheme]
    reader, writer = await asyncio.open_connection(url.hostname, port, ssl=secure or None)
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        host = url.netloc.rpartition("@")[2]
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: nephoscope\r\n"
            "Accept: */*\r\nConnection: close\r\n\r\n".encode("ascii", "replace")
        )
        await writer.drain()
        status = await reader.readline()
        words = status.split(b" ", 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
            raise _Failure("no HTTP answer")
        if not 200 <= int(words[1]) < 400:
            raise _Failure(f"status {int(words[1])}")
        await _read_answer(reader)
    finally:
        writer.close()


async def _read_answer(reader: asyncio.StreamReader) -> None:
    """Reads headers and body; a body that is shorter than stated is a failure."""
    length: int | None = None
    while (line := await reader.readline()).strip():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
    seen = 0
    while length is None or seen < length:
        block = await reader.read(1 << 16)
        seen += len(block)
        if seen > _BODY_BYTES:
            raise _Failure("the answer is longer than 64 MiB")
        if not block:
            if length is not None:
                raise _Failure("the answer was cut off")
            return


async def _tcp(url: SplitResult) -> None:
    _, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.close()


async def _script(command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise
    if code:
        raise _Failure(f"exit code {code}")


async def _datagram(url: SplitResult, port: int, kind: int, protocol: int) -> socket.socket:
    """A socket that is connected to the address of a URL."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(url.hostname, port, type=socket.SOCK_DGRAM)
    family, _, _, _, address = found[0]
    if protocol == socket.IPPROTO_ICMP and family == socket.AF_INET6:
        protocol = socket.IPPROTO_ICMPV6
    channel = socket.socket(family, kind, protocol)
    channel.setblocking(False)
    try:
        channel.connect(address[:2] if family == socket.AF_INET else address)
    except OSError:
        channel.close()
        raise
    return channel


async def _icmp(url: SplitResult) -> None:
    try:
        channel = await _datagram(url, 0, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    except PermissionError:
        channel = await _datagram(url, 0, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    with channel:
        sixth = channel.family == socket.AF_INET6
        token = secrets.token_bytes(16)
        head = struct.pack("!BBHHH", 128 if sixth else 8, 0, 0, os.getpid() & 0xFFFF, 1)
        packet = head[:2] + struct.pack("!H", _checksum(head + token)) + head[4:] + token
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(channel, packet)
        while True:
            answer = await loop.sock_recv(channel, 2048)
            if not sixth and channel.type == socket.SOCK_RAW and answer:
                answer = answer[4 * (answer[0] & 15) :]
            if token in answer and answer[0] == (129 if sixth else 0):
                return


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return int(~(total + (total >> 16)) & 0xFFFF)


async def _dns(url: SplitResult) -> None:
    name = url.path.lstrip("/").rstrip(".")
    number = secrets.token_bytes(2)
    labels = b"".join(bytes([len(part)]) + part for part in name.encode("idna").split(b"."))
    query = number + struct.pack("!HHHHH", 0x0100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"
    loop = asyncio.get_running_loop()
    with await _datagram(url, url.port or _PORTS["dns"], socket.SOCK_DGRAM, 0) as channel:
        await loop.sock_sendall(channel, query)
        while (answer := await loop.sock_recv(channel, 4096))[:2] != number:
            pass
    if len(answer) < 12:
        raise _Failure("no DNS answer")
    flags, _, answers = struct.unpack("!HHH", answer[2:8])
    if flags & 15:
        raise _Failure(f"DNS response code {flags & 15}")
    if not answers:
        raise _Failure("the DNS answer is empty")


_PROBES: dict[str, Callable[[SplitResult], Awaitable[None]]] = {
    "http": _http,
    "https": _http,
    "tcp": _tcp,
    "icmp": _icmp,
    "dns": _dns,
}
