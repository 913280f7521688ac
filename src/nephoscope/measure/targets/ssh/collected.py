"""A host behind a collector: an ssh target of the plan starts its programs and forwards them.

The collector logs in to its neighbours with its own ssh client, keys and known hosts. The
controller has one connection to it for a few neighbours, and does neither their logins nor their
encryption.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from nephoscope.core.errors import TargetError
from nephoscope.core.records import dataclass
from nephoscope.measure.targets.channels.channel import connection_lost
from nephoscope.measure.targets.channels.remote import RemoteProgram
from nephoscope.measure.targets.channels.shell import ShellChannel
from nephoscope.measure.targets.probe.target import Target
from nephoscope.measure.targets.ssh.connection import (
    KEEPALIVE_S,
    KEEPALIVES_LOST,
    Reached,
    hang_up,
    reach,
)
from nephoscope.measure.targets.ssh.program import start_program
from nephoscope.measure.targets.ssh.route import Hop, SshRoute

NEIGHBOURS = 3
"""Neighbours that share a connection: each has a shell that stays, and up to two programs; sshd
allows 10 sessions a connection by default."""
SESSIONS = 8
"""Sessions at once on such a connection."""
PERSIST_S = 60
"""Time for which the collector keeps its connection to a neighbour that nobody uses."""
_SOCKET_PATH_BYTES = 90
"""Longer paths are no sockets (108 bytes on Linux), with what ssh adds to them meanwhile."""
_LOST = 255
"""Exit code of ssh whose connection failed; the probe has no such code."""


@dataclass(slots=True)
class _Trunk:
    """A connection to the collector. neighbours: how many use it."""

    reached: Reached
    neighbours: int = 0
    sessions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SESSIONS))


class Collector:
    """The connections to a collector that its neighbours share. folder: of its cache there."""

    def __init__(self, name: str, route: SshRoute) -> None:
        self.name = name
        self.folder = ""
        self._route = route
        self._trunks: list[_Trunk] = []
        self._connecting = asyncio.Lock()

    async def join(self, timeout_s: float) -> _Trunk:
        """Returns a connection with room for one more neighbour. Raises TargetError."""
        async with self._connecting:
            trunk = next((t for t in self._trunks if t.neighbours < NEIGHBOURS), None)
            if trunk is None or trunk.reached.connection.is_closed():
                trunk = _Trunk(await reach(self.name, self._route, timeout_s))
                self._trunks.append(trunk)
            trunk.neighbours += 1
            return trunk

    async def leave(self, trunk: _Trunk) -> None:
        """A neighbour needs its connection no more."""
        trunk.neighbours -= 1
        if trunk.neighbours == 0 and trunk in self._trunks:
            self._trunks.remove(trunk)
            await hang_up(list(trunk.reached.connections))


class CollectedChannel(ShellChannel):
    """Starts every program by an ssh client on the collector. route: as that client is given it;
    its files are the collector's."""

    def __init__(
        self, name: str, collector: Collector, route: SshRoute, directory: str = ""
    ) -> None:
        super().__init__(name, directory)
        self._collector, self._route = collector, route
        self._trunk: _Trunk | None = None
        self._mark = secrets.token_hex(4)
        self._timeout_s = 30.0

    async def _reach(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._trunk = await self._collector.join(timeout_s)

    async def _hang_up(self) -> None:
        trunk, self._trunk = self._trunk, None
        if trunk is not None:
            await self._collector.leave(trunk)

    async def _begin(self, command: Sequence[str]) -> RemoteProgram:
        trunk = self._trunk
        if trunk is None:
            raise connection_lost(self.name)
        await trunk.sessions.acquire()
        return await start_program(
            self.name,
            trunk.reached.connection,
            command,
            self._end_there,
            trunk.sessions.release,
            forward=self._forward,
            refused=self._refused,
            lost_code=_LOST,
        )

    def _forward(self, line: str) -> str:
        return f"exec {shlex.join([*self._words(), line])}"

    def _words(self) -> list[str]:
        """Returns the ssh client's command line, to which what it is to run is added."""
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "LogLevel": "ERROR",
            "ConnectTimeout": f"{max(1, round(self._timeout_s))}",
            "ServerAliveInterval": f"{KEEPALIVE_S}",
            "ServerAliveCountMax": f"{KEEPALIVES_LOST}",
        }
        socket = f"{self._collector.folder}/c-{self._mark}"
        if self._collector.folder and len(socket) <= _SOCKET_PATH_BYTES:
            # One login for all programs: it takes the neighbour more CPU time than a short trial.
            options |= {
                "ControlMaster": "auto",
                "ControlPath": socket,
                "ControlPersist": f"{PERSIST_S}",
            }
        if self._route.known_hosts:
            options["UserKnownHostsFile"] = self._route.known_hosts
        to = self._route.to
        words = ["ssh", "-T"]
        for name, value in options.items():
            words += ["-o", f"{name}={value}"]
        words += ["-i", self._route.identity] if self._route.identity else []
        words += ["-J", ",".join(map(_written, self._route.jump))] if self._route.jump else []
        words += ["-p", str(to.port)] if to.port else []
        return [*words, "--", f"{to.user}@{to.host}" if to.user else to.host]

    def _refused(self, last_words: str) -> TargetError:
        last = f" It said: {last_words}" if last_words else ""
        return TargetError(
            f"{self.name}: its collector {self._collector.name} cannot log in to it, or the login "
            f"shell there ran no command.{last}",
            f"Log in to {self._collector.name} and run `{shlex.join(self._words())} echo ok`; the "
            "keys and known hosts there are used.",
        )


def _written(hop: Hop) -> str:
    return f"{hop}:{hop.port}" if hop.port else str(hop)


class CollectedTarget(Target):
    """A host that is measured through a collector. It serves no other target, and reaches none."""

    def __init__(
        self, name: str, collector: Collector, route: SshRoute, *, directory: str = ""
    ) -> None:
        super().__init__(name, CollectedChannel(name, collector, route, directory))
        self._reached = {
            "by": "ssh",
            "host": route.to.host,
            "port": route.to.port,
            "user": route.to.user,
            "via": collector.name,
        }

    def _reached_by(self) -> Mapping[str, Any]:
        return {**super()._reached_by(), "reached": self._reached}
