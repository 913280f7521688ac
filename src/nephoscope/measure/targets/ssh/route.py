"""How an ssh host is reached, in records: read quickly, before anything is connected."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import field

from nephoscope.core.records import dataclass

_REFUSED = frozenset("'\"`$\\;&<>|(){}")


def ssh_name(text: str) -> str:
    """Returns a host or user name that is safe in every command of an ssh configuration.

    The rules are OpenSSH's: ssh puts names into commands (`ProxyCommand … %h`, `Match exec`) and
    programs take a leading hyphen for an option. Raises ValueError with one sentence.
    """
    if text.startswith("-") or any(
        c in _REFUSED or c.isspace() or not c.isprintable() for c in text
    ):
        raise ValueError(
            f"{text!a} is no name for ssh: it begins with `-`, or has a blank, a control "
            "character or a character that a shell obeys. Write the plain name"
        )
    return text


@dataclass(frozen=True, slots=True)
class Hop:
    """A host on the way, as the user or ~/.ssh/config names it; '' and None: as configured.

    Raises ValueError for names that `ssh_name` refuses.
    """

    host: str
    port: int | None = None
    user: str = ""

    def __post_init__(self) -> None:
        ssh_name(self.host)
        ssh_name(self.user)

    def __str__(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{name}" if self.user else name


@dataclass(frozen=True, slots=True)
class SshRoute:
    """Route to a host.

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
    if not host or (at and not user):
        return None
    port = None
    if has_port:
        # Five digits: converting a long number takes time, and raises an error beyond 4,300 digits.
        if not (port_text.isascii() and port_text.isdigit() and len(port_text) <= 5):
            return None
        port = int(port_text)
        if not 1 <= port <= 65535:
            return None
    try:
        return Hop(host, port, user)
    except ValueError:
        return None
