"""A host that is reached by ssh, as a target."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from nephoscope.measure.targets.base import Endpoint, IpVersion
from nephoscope.measure.targets.channels.channel import connection_lost
from nephoscope.measure.targets.channels.remote import RemoteProgram
from nephoscope.measure.targets.channels.shell import ShellChannel
from nephoscope.measure.targets.probe.target import Target
from nephoscope.measure.targets.ssh.collected import Collector
from nephoscope.measure.targets.ssh.connection import Reached, hang_up, reach
from nephoscope.measure.targets.ssh.host_keys import fingerprint
from nephoscope.measure.targets.ssh.program import SessionRefused, start_program
from nephoscope.measure.targets.ssh.route import SshRoute


class SshTarget(Target):
    """Runs the probe on a host over one ssh connection."""

    def __init__(
        self, name: str, route: SshRoute, *, directory: str = "", inner_network: str = ""
    ) -> None:
        self._ssh = SshChannel(name, route, directory)
        self._inner_network = inner_network
        self._collector = Collector(name, route)
        super().__init__(name, self._ssh)

    def collector(self) -> Collector:
        """Returns it as a collector, while it is open."""
        self._collector.folder = self._ssh.folder
        return self._collector

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`: its own address, and that under which it is reached from here;
        a client in the same inner network reaches it at its own."""
        endpoint = self._ssh.endpoint()
        if (
            self._inner_network
            and isinstance(client, SshTarget)
            and client._inner_network == self._inner_network
        ):
            endpoint = Endpoint(endpoint.bind, endpoint.bind)
        if version and {
            ip_address(address).version for address in (endpoint.bind, endpoint.address)
        } != {version}:
            return super().endpoint(client, version)
        return endpoint

    def _reached_by(self) -> Mapping[str, Any]:
        return {**super()._reached_by(), "reached": self._ssh.known()}


MAX_SESSIONS = 8
"""Sessions at once on a connection, with the one that stays; sshd's own bound is 10 by default."""

_PLACE_S = 2.0


class SshChannel(ShellChannel):
    """One connection; every program is a session of it."""

    def __init__(self, name: str, route: SshRoute, directory: str = "") -> None:
        super().__init__(name, directory)
        self._route = route
        self._reached: Reached | None = None
        self._sessions = asyncio.Semaphore(MAX_SESSIONS)

    def endpoint(self) -> Endpoint:
        """Returns the host's own address and the one that the connection goes to.

        Through a jump host only its own is known.
        """
        if self._reached is None:
            raise connection_lost(self.name)
        address = self.own_address
        if not self._reached.through:
            peer = self._reached.connection.get_extra_info("peername")
            if peer is None:  # The connection has ended since.
                raise connection_lost(self.name)
            address = str(peer[0]).partition("%")[0]
        return Endpoint(self.own_address.partition("%")[0], address)

    def known(self) -> dict[str, object]:
        """Returns what may be told of the connection: no secret is in it."""
        if self._reached is None:
            return {}
        key = self._reached.connection.get_server_host_key()
        return {
            "by": "ssh",
            "host": self._reached.host,
            "port": self._reached.port,
            "user": self._reached.user,
            "host_key": fingerprint(key) if key else None,
            "through": [str(hop) for hop in self._reached.through],
        }

    async def _reach(self, timeout_s: float) -> None:
        self._sessions = asyncio.Semaphore(MAX_SESSIONS)
        self._reached = await reach(self.name, self._route, timeout_s)

    async def _hang_up(self) -> None:
        reached, self._reached = self._reached, None
        if reached is not None:
            await hang_up(list(reached.connections))

    async def _begin(self, command: Sequence[str]) -> RemoteProgram:
        """A program, as soon as one of the sessions is free."""
        if self._reached is None:
            raise connection_lost(self.name)
        connection, sessions = self._reached.connection, self._sessions
        refused_at = 0.0
        while True:
            await sessions.acquire()
            try:
                return await start_program(
                    self.name, connection, command, self._end_there, sessions.release
                )
            except SessionRefused:
                # sshd gives a session's place free a moment after it told us of its end.
                refused_at = refused_at or time.monotonic()
                if time.monotonic() - refused_at > _PLACE_S:
                    raise
            await asyncio.sleep(_PLACE_S / 40)
