"""Statistics of the TCP sockets of processes, by the kernel's socket diagnostics (as `ss -i`)."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

from nephoscope.core.records import dataclass
from nephoscope.features.advise.processes import PROC

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_DUMP_REQUEST = 0x301
_DONE, _ERROR = 3, 2
_INET_DIAG_INFO = 2
_LISTEN = 10
_STATES = 0xFFFFFFFF & ~(1 << 6)
"""All but TIME_WAIT, of which a busy host has thousands that belong to no process."""
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI48x")
_MESSAGE = struct.Struct("!BBBBHH16s16sI8sIIIII")
"""In network order, as ports and addresses are; the other fields are not read by it."""
_PORT, _INODE = struct.Struct("!H"), struct.Struct("=I")
_RTT_AT, _BYTES_AT, _BUSY_AT = 68, 120, 168
_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """Counters of a connection since its beginning.

    local_only: both ends are on this host's loopback. outgoing: the process opened it.
    busy_us: time in which data to send or to be acknowledged was there.
    """

    local_only: bool
    outgoing: bool
    sent_bytes: int
    received_bytes: int
    busy_us: int
    rtt_us: int


def namespace_of(pid: int) -> str:
    """Returns the network namespace of a process; '' where it may not be read."""
    try:
        return os.readlink(PROC / str(pid) / "ns" / "net")
    except OSError:
        return ""


def inodes_of(pids: Iterable[int]) -> set[int] | None:
    """Returns the inodes of the sockets of processes; None where one may not be read."""
    inodes = set()
    for pid in pids:
        folder = PROC / str(pid) / "fd"
        try:
            numbers = os.listdir(folder)
        except PermissionError:
            return None
        except OSError:
            continue  # it has ended
        for number in numbers:
            try:
                target = os.readlink(folder / number)
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(int(target[8:-1]))
    return inodes


def connections(inodes: set[int]) -> dict[bytes, TcpSocket]:
    """Returns the connections with these inodes: kernel's cookie -> counters. Raises OSError."""
    messages = [each for family in (socket.AF_INET, socket.AF_INET6) for each in _dump(family)]
    served = {_PORT.unpack_from(each, 4)[0] for each in messages if each[1] == _LISTEN}
    own = (each for each in messages if _inode(each) in inodes)
    return dict(entry for each in own for entry in _socket(each, served))


def _inode(message: bytes) -> int:
    inode: int = _INODE.unpack_from(message, _MESSAGE.size - _INODE.size)[0]
    return inode


def _socket(message: bytes, served: set[int]) -> Iterator[tuple[bytes, TcpSocket]]:
    """Yields cookie and counters; nothing without counters, or of an older kernel."""
    family, _, _, _, port, _, source, destination, _, cookie, *_ = _MESSAGE.unpack_from(message)
    info = _attribute(message[_MESSAGE.size :], _INET_DIAG_INFO)
    if info:
        width = 4 if family == socket.AF_INET else 16
        here, there = _plain(source[:width]), _plain(destination[:width])
        sent, received = struct.unpack_from("=QQ", info, _BYTES_AT)
        (busy,) = struct.unpack_from("=Q", info, _BUSY_AT)
        (rtt,) = struct.unpack_from("=I", info, _RTT_AT)
        local = there.is_loopback or here == there
        yield cookie, TcpSocket(local, port not in served, sent, received, busy, rtt)


def _dump(family: int) -> Iterator[bytes]:
    """Yields a message for each TCP socket of this network namespace. Raises OSError."""
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, _STATES)
    head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _DUMP_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as channel:
        channel.settimeout(_TIMEOUT_S)
        channel.send(head + body)
        while True:
            data = memoryview(channel.recv(1 << 17))
            while len(data) >= _HEADER.size:
                length, kind, *_ = _HEADER.unpack_from(data)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    (code,) = struct.unpack_from("=i", data, _HEADER.size)
                    raise OSError(-code, os.strerror(-code))
                yield bytes(data[_HEADER.size : length])
                data = data[(length + 3) & ~3 :]


def _plain(packed: bytes) -> IPv4Address | IPv6Address:
    address = ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _attribute(data: bytes, wanted: int) -> bytes:
    """Returns a netlink attribute; empty without it, or where it is of an older kernel."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        if kind == wanted:
            value = data[4:length]
            return value if len(value) >= _BUSY_AT + 8 else b""
        data = data[(length + 3) & ~3 :]
    return b""
