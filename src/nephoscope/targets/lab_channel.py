"""Programs inside the hosts of a lab: entered where the kernel is ours, by ssh where it is not."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nephoscope.errors import TargetError
from nephoscope.lab.handle import GuestAccess
from nephoscope.targets.far_channel import FarChannel
from nephoscope.targets.process import Child, start_child
from nephoscope.targets.ssh_way import Hop, Way

_CLONE_NEWNET = 0x40000000
_CONNECT_S = 10.0


class EnteredChannel(FarChannel):
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
            return await start_child([*self._prefix, *command])
        except OSError as error:
            raise TargetError(
                f"{self.name}: {self._prefix[0]} cannot be started: {error.strerror}.",
                "Build it again: `make setup`.",
            ) from error


def way_into(guest: GuestAccess) -> Way:
    """How a guest is reached: ssh from inside its host's network, with the lab's own keys."""

    async def connect() -> socket.socket:
        # The thread moves to another network and is never used for anything else.
        threads = ThreadPoolExecutor(1, thread_name_prefix="netns")
        try:
            return await asyncio.get_running_loop().run_in_executor(
                threads, connect_in, guest.netns, guest.address, guest.port
            )
        finally:
            threads.shutdown(wait=False)

    return Way(
        Hop(guest.address, guest.port, guest.user),
        identity=str(guest.identity),
        known_hosts=str(guest.known_hosts),
        config=False,
        connect=connect,
    )


def connect_in(netns: Path, address: str, port: int) -> socket.socket:
    """A TCP connection made inside a network namespace; the calling thread stays there.

    A socket belongs to the namespace it was made in, wherever it is used. Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    space = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(space, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(netns))
    finally:
        os.close(space)
    return socket.create_connection((address, port), timeout=_CONNECT_S)
