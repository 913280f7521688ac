"""One ssh connection to a host, through jump hosts where there are any.

The user's ~/.ssh/config is respected; the host keys of every hop are checked, whatever it says.
Nothing is forwarded: no agent, no X11, no terminal. No password or passphrase is ever asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any, cast

import asyncssh

from nephoscope.core import limits
from nephoscope.core.errors import TargetError, words_of
from nephoscope.core.records import dataclass
from nephoscope.measure.targets.ssh.host_keys import DEFAULT_FILES, HostKeys, load_host_keys
from nephoscope.measure.targets.ssh.route import Hop, SshRoute, parse_hop, ssh_name

KEEPALIVE_S = 15
KEEPALIVES_LOST = 4
"""A connection without an answer for a minute is lost."""

# One call of the library for a packet where the default, chacha20-poly1305, takes six: a quarter of
# our own time for a short command.
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"


@dataclass(frozen=True, slots=True)
class Reached:
    """Connections from the outermost hop to the host itself, and where it turned out to be."""

    connections: tuple[asyncssh.SSHClientConnection, ...]
    host: str
    port: int
    user: str
    through: tuple[Hop, ...]

    @property
    def connection(self) -> asyncssh.SSHClientConnection:
        """The connection to the host itself."""
        return self.connections[-1]


async def reach(name: str, route: SshRoute, timeout_s: float) -> Reached:
    """Connects to every hop in turn. Raises TargetError with one sentence."""
    connections: list[asyncssh.SSHClientConnection] = []
    try:
        hops = _hops(name, route)
        for number, hop in enumerate(hops):
            is_last = number == len(hops) - 1
            where = name if is_last else f"{name} (jump host {hop})"
            single = _Single(where, hop, route, is_last)
            connections.append(await single.connect(connections, timeout_s))
        return Reached(tuple(connections), single.host, single.port, single.user, tuple(hops[:-1]))
    except BaseException:
        await hang_up(connections)
        raise


async def hang_up(connections: list[asyncssh.SSHClientConnection]) -> None:
    """Closes connections, the innermost first; waits a moment for the far ends."""
    for connection in reversed(connections):
        connection.close()
        with contextlib.suppress(TimeoutError, OSError, asyncssh.Error):
            await asyncio.wait_for(connection.wait_closed(), 2.0)


def _hops(name: str, route: SshRoute) -> list[Hop]:
    """The jump hosts in order, then the host; before the first, those that it is reached through.

    Jump hosts that were given replace the ones that ~/.ssh/config has for the host.
    """
    hops = [*route.jump, route.to]
    while route.config and route.connect is None:
        configured = _options(name, hops[0], route).config.get("ProxyJump")
        if not configured:
            break
        before = [parse_hop(text.strip()) for text in str(configured).split(",")]
        if before and before[0] and before[0].host == hops[0].host:
            # `Host *` with a ProxyJump means the jump host itself too; ssh passes it over.
            break
        if len(hops) + len(before) > limits.JUMP_HOSTS or None in before:
            raise TargetError(
                f"{name}: ProxyJump {configured} in ~/.ssh/config names no hosts, or too many.",
                "Write it as [user@]host[:port], with commas between them.",
            )
        hops = [*(hop for hop in before if hop), *hops]
    return hops


def _options(name: str, hop: Hop, route: SshRoute) -> asyncssh.SSHClientConnectionOptions:
    """Returns what the configuration says of a hop."""
    try:
        options = asyncssh.SSHClientConnectionOptions(**_chosen(hop, route), host=hop.host)
        # An alias stands for another name, which gets into commands in its place.
        ssh_name(options.host)
        ssh_name(options.username)
        return options
    except (asyncssh.ConfigParseError, asyncssh.KeyImportError, OSError, ValueError) as error:
        raise TargetError(
            f"{name}: ~/.ssh/config or a key that it names cannot be used: {words_of(error)}.",
            "Correct it; `ssh -G` shows how ssh reads it.",
        ) from error


def _chosen(hop: Hop, route: SshRoute) -> dict[str, Any]:
    """Options that were given; the rest is as configured."""
    chosen: dict[str, Any] = {"config": () if route.config else None, "ignore_encrypted": True}
    if hop.port is not None:
        chosen["port"] = hop.port
    if hop.user:
        chosen["username"] = hop.user
    if route.identity:
        chosen["client_keys"] = [str(Path(route.identity).expanduser())]
    if not route.config:
        chosen["agent_path"] = None
    return chosen


class _Client(asyncssh.SSHClient):
    """Notes the host key that was shown; trusts none."""

    def __init__(self, keys: HostKeys) -> None:
        self._keys = keys

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Called for a key that known_hosts does not hold."""
        self._keys.note_key(key)
        return False


class _Single:
    """One hop on its way to being connected."""

    def __init__(self, where: str, hop: Hop, route: SshRoute, is_last: bool) -> None:
        self._hop = hop
        self._route = route
        self._options = _options(where, hop, route)
        self.host: str = self._options.host
        self.port: int = self._options.port
        self.user: str = self._options.username
        self._where = f"{where} ({self.user}@{self.host} port {self.port})"
        self._connect = route.connect if is_last else None
        self._keys = load_host_keys(self._known_hosts())

    async def connect(
        self, before: list[asyncssh.SSHClientConnection], timeout_s: float
    ) -> asyncssh.SSHClientConnection:
        """The connection, through the last of those before. Raises TargetError."""
        options: dict[str, Any] = {
            **_chosen(self._hop, self._route),
            "known_hosts": self._keys.trusted,
            "client_factory": lambda: _Client(self._keys),
            "preferred_auth": ("publickey",),
            "gss_host": None,
            "agent_forwarding": False,
            "x11_forwarding": False,
            "request_pty": False,
            "command": None,
            "env": None,
            "send_env": None,
            "connect_timeout": timeout_s,
            "login_timeout": timeout_s,
            "keepalive_interval": KEEPALIVE_S,
            "keepalive_count_max": KEEPALIVES_LOST,
        }
        if before:
            # An explicit way replaces the configured one.
            options |= {"tunnel": before[-1], "proxy_command": None}
        else:
            options["tunnel"] = None
        alias = self._options.host_key_alias or self.host
        if algorithms := self._keys.algorithms(alias, self.port):
            options["server_host_key_algs"] = algorithms
        if self._options.config.get("Ciphers") is None:
            options["encryption_algs"] = _CIPHERS
        try:
            if self._connect is not None:
                options["sock"] = await self._connect()
            return await asyncssh.connect(self._hop.host, **options)
        except (asyncssh.Error, OSError) as error:
            raise self._error(error, timeout_s) from error

    def _known_hosts(self) -> tuple[str, ...]:
        if self._route.known_hosts:
            return (self._route.known_hosts,)
        # Empty ("none") would mean no check at all to asyncssh; to us it means that none is known.
        own = self._options.config.get("UserKnownHostsFile")
        system = self._options.config.get("GlobalKnownHostsFile")
        files = [
            *(DEFAULT_FILES[:2] if own is None else cast("list[str]", own)),
            *(DEFAULT_FILES[2:] if system is None else cast("list[str]", system)),
        ]
        return tuple(files) or ("/dev/null",)

    def _error(self, error: Exception, timeout_s: float) -> TargetError:
        """One sentence for each way in which a connection does not come about."""
        where = self._where
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            alias = self._options.host_key_alias or self.host
            return self._keys.refusal(where, alias, self.port, str(error))
        if isinstance(error, asyncssh.PermissionDenied):
            return TargetError(
                f"{where}: the host accepts none of the keys it was offered.",
                "Try `ssh` with the same name; add the key to your agent (`ssh-add FILE`) when "
                "it has a passphrase, or name its file (`identity` in a plan).",
            )
        if isinstance(error, asyncssh.ConnectionLost):
            return TargetError(f"{where}: the host hung up: {error}.", "Check its sshd and log.")
        if isinstance(error, asyncssh.ChannelOpenError):
            return TargetError(
                f"{where}: the jump host does not reach it: {error}.",
                "Check the address as seen from there, and AllowTcpForwarding.",
            )
        if isinstance(error, TimeoutError):
            return TargetError(
                f"{where}: no answer within {timeout_s:g} s.",
                "Check that it is up, the address and the firewall.",
            )
        if isinstance(error, socket.gaierror):
            return TargetError(
                f"{where}: there is no host of that name: {error.strerror}.", "Check the name."
            )
        return TargetError(
            f"{where}: it cannot be reached: {words_of(error)}.", "Check that sshd runs."
        )
