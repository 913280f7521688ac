"""Programs inside the hosts of a lab: entered where the kernel is ours, by ssh where it is not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from nephoscope.errors import TargetError
from nephoscope.lab.handle import GuestAccess
from nephoscope.lab.network import namespaces
from nephoscope.targets.channels.child import Child, start_child
from nephoscope.targets.channels.shell import ShellChannel
from nephoscope.targets.ssh.route import Hop, SshRoute

_CONNECT_S = 10.0


class EnteredShell(ShellChannel):
    """A host with files of its own (a container), entered by a program in front of every command.

    prefix: the words of that program, `Host.enter()`.
    """

    def __init__(self, name: str, prefix: Sequence[str]) -> None:
        super().__init__(name)
        self._prefix = tuple(prefix)

    async def _reach(self, timeout_s: float) -> None:
        """There is nothing to be reached."""

    async def _hang_up(self) -> None:
        """There is nothing to hang up."""

    async def _begin(self, command: Sequence[str]) -> Child:
        try:
            return start_child([*self._prefix, *command])
        except OSError as error:
            raise TargetError(
                f"{self.name}: {self._prefix[0]} cannot be started: {error.strerror}.",
                "Build it again: `make setup`.",
            ) from error


def route_into(guest: GuestAccess) -> SshRoute:
    """How a guest is reached: ssh from inside its host's network, with the lab's own keys."""

    def connect_there() -> socket.socket:
        # A socket belongs to the namespace it was made in, wherever it is used.
        return namespaces.within(
            guest.netns,
            lambda: socket.create_connection((guest.address, guest.port), _CONNECT_S),
        )

    async def connect() -> socket.socket:
        return await asyncio.to_thread(connect_there)

    return SshRoute(
        Hop(guest.address, guest.port, guest.user),
        identity=str(guest.identity),
        known_hosts=str(guest.known_hosts),
        config=False,
        connect=connect,
    )
