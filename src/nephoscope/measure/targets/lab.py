"""A host of a lab, as a target."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nephoscope.core.errors import TargetError, UsageError
from nephoscope.core.programs import PROBE
from nephoscope.measure.lab.handle import GuestAccess, Host, Lab
from nephoscope.measure.lab.platform_table import TABLE
from nephoscope.measure.lab.platforms import control
from nephoscope.measure.lab.provisioner import LABS
from nephoscope.measure.targets import leftovers
from nephoscope.measure.targets.base import Endpoint, IpVersion
from nephoscope.measure.targets.channels.channel import Channel
from nephoscope.measure.targets.channels.child import Child
from nephoscope.measure.targets.channels.shell import ShellChannel
from nephoscope.measure.targets.local import LocalChannel
from nephoscope.measure.targets.probe.target import Target
from nephoscope.measure.targets.ssh.route import Hop, SshRoute
from nephoscope.measure.targets.ssh.target import SshChannel


class LabTarget(Target):
    """Runs the probe inside a host of a lab, whatever platform the host is."""

    def __init__(self, name: str, lab: str, host: str, *, directory: str = "") -> None:
        super().__init__(name, _Unopened(name))
        self.lab = lab
        self.host = host
        self._directory = directory
        self._opened_lab: Lab | None = None
        self._at: Host | None = None

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        """See `Target.open`; a host may come back on another platform, with another channel."""
        self._opened_lab = await asyncio.to_thread(LABS.open, self.lab)
        host = self._opened_lab.hosts.get(self.host)
        if host is None:
            raise UsageError(
                f"{self.name}: lab {self.lab} has no host '{self.host}'.",
                f"It has: {', '.join(self._opened_lab.hosts)}.",
            )
        if self._at is None or _ways(host) != _ways(self._at):
            await self._channel.close()
            self._at, self._channel = host, _channel_to(self.name, host, self._directory)
        fingerprint = await super().open(timeout_s)
        # A guest has a kernel, and so a clock, of its own.
        self.shares_clock = host.guest is None
        return fingerprint

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`: known toward hosts of the same lab, whose networks are IPv4."""
        if not isinstance(client, LabTarget) or client.lab != self.lab or version == 6:
            return super().endpoint(client, version)
        self._opened_lab = self._opened_lab or LABS.open(self.lab)
        address = self._opened_lab.address(self.host, client.host)
        return Endpoint(address, address)

    def _lease(self, benchmark: str, params: Mapping[str, Any]) -> None:
        # The files of other platforms go with the lab.
        if isinstance(self._channel, LocalChannel):
            leftovers.lease_of_machine(benchmark, params)
            leftovers.lease_folders(params, self._channel.directory)

    def _reached_by(self) -> Mapping[str, Any]:
        platform = self._at.platform if self._at else None
        reached = {"by": "lab", "lab": self.lab, "host": self.host, "platform": platform}
        return {**super()._reached_by(), "reached": reached}


class _Unopened(LocalChannel):
    """The channel of a host that was not opened yet: nothing can be started."""

    async def probe(self, name: str = PROBE) -> str:
        raise TargetError(f"{self.name}: it is not open.", "Open it first.")

    async def work(self) -> str:
        return await self.probe()


def _ways(host: Host) -> tuple[object, ...]:
    """Returns what differs when a host was started anew."""
    return host.platform, host.entry, host.guest, host.boot


def _channel_to(name: str, host: Host, directory: str) -> Channel:
    if host.guest is not None:
        return SshChannel(name, route_into(host.guest), directory)
    if TABLE[host.platform].shares_files:
        return LocalChannel(name, prefix=host.enter(), directory=directory)
    return EnteredShell(name, host.enter(), directory)


_CONNECT_S = 10.0


class EnteredShell(ShellChannel):
    """A host with files of its own (a container), entered by a program in front of every command.

    prefix: the words of that program, `Host.enter()`.
    """

    def __init__(self, name: str, prefix: Sequence[str], directory: str = "") -> None:
        super().__init__(name, directory)
        self._entered = LocalChannel(name, prefix=prefix)

    async def _reach(self, timeout_s: float) -> None:
        """There is nothing to be reached."""

    async def _hang_up(self) -> None:
        """There is nothing to hang up."""

    async def _begin(self, command: Sequence[str]) -> Child:
        return await self._entered.start(command)


def route_into(guest: GuestAccess) -> SshRoute:
    """Returns how a guest is reached: ssh from inside its host's network, with the lab's own
    keys."""

    return SshRoute(
        Hop(guest.address, guest.port, guest.user),
        identity=str(guest.identity),
        known_hosts=str(guest.known_hosts),
        config=False,
        connect=partial(control.connect, guest, _CONNECT_S),
    )
