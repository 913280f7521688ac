"""The way into a guest that its measured network knows nothing of: a second interface, and ssh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.core.errors import RunFailed
from nephoscope.core.records import dataclass
from nephoscope.measure.lab.handle import GuestAccess
from nephoscope.measure.lab.network import namespaces

if TYPE_CHECKING:
    import asyncssh

HOST_ADDRESS = "169.254.77.1"
GUEST_ADDRESS = "169.254.77.2"
PREFIX_BITS = 30
"""The same in every host: its namespace is its own."""
PORT = 22
USER = "root"

_GREETING = b"SSH-2.0-"
# The first packet of a connection is sent at once (the neighbour is entered by hand) and answered
# within milliseconds once there is a server; its repetition would only come after a second.
_TRY_S = 0.1
_GREETING_S = 10.0


async def connect(access: GuestAccess, timeout_s: float) -> socket.socket:
    """A connected socket to the guest's ssh server. Raises OSError, TimeoutError."""

    def make() -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)

    # A socket stays in the namespace in which it was made.
    connection = namespaces.within(access.netns, make)
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(connection, (access.address, access.port))
    except BaseException:
        connection.close()
        raise
    return connection


async def answers_ssh(access: GuestAccess) -> bool:
    """Returns whether the guest's ssh server answers; one short try."""
    try:
        connection = await connect(access, _TRY_S)
    except OSError:  # TimeoutError is one
        return False
    try:
        async with asyncio.timeout(_GREETING_S):
            greeting = await asyncio.get_running_loop().sock_recv(connection, 64)
    except OSError:
        return False
    finally:
        connection.close()
    return greeting.startswith(_GREETING)


@contextlib.asynccontextmanager
async def login(
    access: GuestAccess, timeout_s: float
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """An ssh connection to the guest. RunFailed when it cannot be made."""
    import asyncssh

    try:
        async with asyncio.timeout(timeout_s):
            connection = await asyncssh.connect(
                access.address,
                sock=await connect(access, timeout_s),
                username=access.user,
                client_keys=[str(access.identity)],
                known_hosts=str(access.known_hosts),
                config=[],
                agent_path=None,
            )
    except (OSError, asyncssh.Error) as error:
        reason = str(error) or type(error).__name__
        raise RunFailed(
            f"The guest at {access.address} in {access.netns.name} does not let us in: {reason}.",
            "Take the lab down and up again.",
        ) from error
    async with connection:
        yield connection


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one guest: what it is given, and the files by which it is reached."""

    host_key: bytes = b""
    """In the form that dropbear reads."""
    authorized: bytes = b""
    identity: Path = Path()
    known_hosts: Path = Path()


def make_keys(folder: Path) -> Keys:
    """New keys for a guest; the files lie in `folder`, readable by us only."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    def public(key: Ed25519PrivateKey) -> bytes:
        return key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )

    client_key, server_key = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    identity, known_hosts = folder / "client_key", folder / "known_hosts"
    private = client_key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    _write_secret(identity, private)
    _write_secret(known_hosts, f"{GUEST_ADDRESS} ".encode() + public(server_key) + b"\n")
    raw = server_key.private_bytes_raw() + server_key.public_key().public_bytes_raw()
    host_key = _string(b"ssh-ed25519") + _string(raw)
    return Keys(host_key, public(client_key) + b"\n", identity, known_hosts)


def _string(data: bytes) -> bytes:
    """A string of the ssh protocol (RFC 4251, section 5)."""
    return len(data).to_bytes(4, "big") + data


def _write_secret(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The guest's wall clock minus this machine's, and by how much that may be wrong."""

    offset_ns: int
    uncertainty_ns: int


_EXCHANGES = 15
_WORTH_A_STEP_NS = 50_000
_STEPS = 4
"""A slow guest takes time between reading its clock and setting it."""


async def set_clock(access: GuestAccess, timeout_s: float = 30.0) -> ClockOffset:
    """Sets the guest's wall clock to this machine's and returns what is left between them.

    The offset is that of the fastest of some exchanges, as in NTP (RFC 5905, section 8): the
    guest's time against the middle of ours, wrong by at most half the round trip.
    Raises RunFailed when the guest does not answer.
    """
    async with login(access, timeout_s) as connection:
        # Without asking for a terminal, and nothing is read by a shell but this constant.
        process = await connection.create_process("exec /usr/lib/nephoscope/clock", encoding=None)
        try:
            async with asyncio.timeout(timeout_s):
                offset = await _offset(process)
                for _ in range(_STEPS):
                    if abs(offset.offset_ns) <= max(offset.uncertainty_ns, _WORTH_A_STEP_NS):
                        break
                    process.stdin.write(b"step %d\n" % -offset.offset_ns)
                    await _clock_line(process)
                    offset = await _offset(process)
        except TimeoutError as error:
            raise RunFailed(
                f"The guest at {access.address} in {access.netns.name} does not tell the time.",
                "Take the lab down and up again.",
            ) from error
        finally:
            process.close()
        return offset


async def _offset(process: Any) -> ClockOffset:
    best: ClockOffset | None = None
    for _ in range(_EXCHANGES):
        before = time.time_ns()
        process.stdin.write(b"\n")
        there = await _clock_line(process)
        after = time.time_ns()
        offset = ClockOffset(there - (before + after) // 2, (after - before) // 2)
        if best is None or offset.uncertainty_ns < best.uncertainty_ns:
            best = offset
    assert best is not None
    return best


async def _clock_line(process: Any) -> int:
    line = await process.stdout.readline()
    if not line.strip():
        raise RunFailed("The guest's clock program ended.", "Take the lab down and up again.")
    return int(line)
