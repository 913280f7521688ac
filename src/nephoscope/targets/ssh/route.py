"""How an ssh host is reached, in records: read quickly, before anything is connected."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Hop:
    """A host on the way, as the user or ~/.ssh/config names it; '' and None: as configured."""

    host: str
    port: int | None = None
    user: str = ""

    def __str__(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{name}" if self.user else name


@dataclass(frozen=True, slots=True)
class SshRoute:
    """How a host is reached.

    config: whether ~/.ssh/config is read. connect: makes the socket of a host that is reached by
    other means than the machine's own network. identity and known_hosts: files instead of the
    user's own; '' for those.
    """

    to: Hop
    jump: tuple[Hop, ...] = ()
    identity: str = ""
    known_hosts: str = ""
    config: bool = True
    connect: Callable[[], Awaitable[socket.socket]] | None = field(default=None, repr=False)


def parse_hop(text: str) -> Hop | None:
    """`[user@]host[:port]`, an IPv6 address in brackets; None for anything else."""
    user, at, rest = text.rpartition("@")
    if rest.startswith("["):
        host, closed, tail = rest[1:].partition("]")
        if not closed or (tail and not tail.startswith(":")):
            return None
        port_text, has_port = tail[1:], bool(tail)
    else:
        host, colon, port_text = rest.partition(":")
        has_port = bool(colon)
    # A leading hyphen is how options are smuggled into programs that take host names.
    if not host or host.startswith("-") or (at and not user) or any(c.isspace() for c in text):
        return None
    if not has_port:
        return Hop(host, None, user)
    if not (port_text.isascii() and port_text.isdigit() and 1 <= int(port_text) <= 65535):
        return None
    return Hop(host, int(port_text), user)
