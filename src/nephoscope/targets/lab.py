"""A host of a lab, as a target."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nephoscope.errors import TargetError, UsageError
from nephoscope.lab.handle import Host, Lab
from nephoscope.lab.provisioner import LABS
from nephoscope.targets.base import Endpoint, IpVersion, Target
from nephoscope.targets.channels.channel import Channel, Program
from nephoscope.targets.channels.lab import EnteredShell, route_into
from nephoscope.targets.channels.local import LocalChannel
from nephoscope.targets.probe.target import ProbeTarget
from nephoscope.targets.ssh.channel import SshChannel

SHARES_FILES = "bare"
"""The platform whose hosts see this machine's files."""


class LabTarget(ProbeTarget):
    """Runs the probe inside a host of a lab, whatever platform the host is."""

    def __init__(self, name: str, lab: str, host: str) -> None:
        self._channel_in = LabChannel(name, lab, host)
        super().__init__(name, self._channel_in)

    @property
    def lab(self) -> str:
        """Name of the lab."""
        return self._channel_in.lab

    @property
    def host(self) -> str:
        """Name of the host in it."""
        return self._channel_in.host

    async def open(self, timeout_s: float = 30.0) -> Mapping[str, Any]:
        """See `Target.open`; a guest has a kernel, and so a clock, of its own."""
        fingerprint = await super().open(timeout_s)
        self.shares_clock = not self._channel_in.is_guest
        return fingerprint

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`: known toward hosts of the same lab, whose networks are IPv4."""
        if not isinstance(client, LabTarget) or client.lab != self.lab or version == 6:
            return super().endpoint(client, version)
        address = self._channel_in.found().address(self.host, client.host)
        return Endpoint(address, address)

    def _reached_by(self) -> Mapping[str, Any]:
        return {"reached": self._channel_in.known()}


class LabChannel:
    """The channel that fits the host as it is now: a host may come back on another platform."""

    def __init__(self, name: str, lab: str, host: str) -> None:
        self.name = name
        self.lab = lab
        self.host = host
        self._found: Lab | None = None
        self._host: Host | None = None
        self._through: Channel | None = None

    @property
    def is_guest(self) -> bool:
        """Whether the host has a kernel of its own; unknown counts as yes."""
        return self._host is None or self._host.guest is not None

    def known(self) -> dict[str, object]:
        """What may be told of the host."""
        platform = self._host.platform if self._host else None
        return {"by": "lab", "lab": self.lab, "host": self.host, "platform": platform}

    async def open(self, timeout_s: float) -> None:
        """See `Channel.open`."""
        self._found = await asyncio.to_thread(LABS.open, self.lab)
        host = self._found.hosts.get(self.host)
        if host is None:
            raise UsageError(
                f"{self.name}: lab {self.lab} has no host '{self.host}'.",
                f"It has: {', '.join(self._found.hosts)}.",
            )
        if self._through is None or self._host is None or _ways(host) != _ways(self._host):
            await self.close()
            self._host, self._through = host, _way(self.name, host)
        await self._through.open(timeout_s)

    async def probe(self) -> str:
        """See `Channel.probe`."""
        return await self._opened().probe()

    async def start(self, command: Sequence[str]) -> Program:
        """See `Channel.start`."""
        return await self._opened().start(command)

    async def work(self) -> str:
        """See `Channel.work`."""
        return await self._opened().work()

    async def put(self, source: Path, there: str) -> None:
        """See `Channel.put`."""
        await self._opened().put(source, there)

    async def get(self, there: str, destination: Path) -> None:
        """See `Channel.get`."""
        await self._opened().get(there, destination)

    async def close(self) -> None:
        """See `Channel.close`."""
        through, self._through = self._through, None
        if through is not None:
            await through.close()

    def found(self) -> Lab:
        """The lab as it was when the host was opened."""
        if self._found is None:
            self._found = LABS.open(self.lab)
        return self._found

    def _opened(self) -> Channel:
        if self._through is None:
            raise TargetError(f"{self.name}: it is not open.", "Open it first.")
        return self._through


def _ways(host: Host) -> tuple[object, ...]:
    """What differs when a host was started anew."""
    return host.platform, host.entry, host.guest, host.boot


def _way(name: str, host: Host) -> Channel:
    if host.guest is not None:
        return SshChannel(name, route_into(host.guest))
    if host.platform == SHARES_FILES:
        return LocalChannel(name, prefix=host.enter())
    return EnteredShell(name, host.enter())
