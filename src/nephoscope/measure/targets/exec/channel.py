"""A channel whose programs are started by an API, in a container: what is the same for each API."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.base import Endpoint, IpVersion
from nephoscope.measure.targets.channels import shell_scripts
from nephoscope.measure.targets.channels.remote import RemoteProgram, Session
from nephoscope.measure.targets.channels.shell import ShellChannel
from nephoscope.measure.targets.probe.target import Target

_MARKED = 'mark=$1; shift; echo "$mark $$"; exec "$@"'
"""Becomes the program that the arguments after $1 name; says its process id first, after $1."""

_PARENT = f"""
exec 3<&0
{shell_scripts.SHELL} -c '{_MARKED}' "$0" "$@" <&3 3<&- &
exec 3<&-
wait $!
"""
"""Stays as the parent of the program: that of a container's first process is a runtime that leaves
a moment later, and the probe ends when its parent does."""

_OWN_CANCELLATION = 130
_SIGNALLED = 128


class ExecChannel(ShellChannel):
    """Starts programs in one container. A kind adds how a session is opened."""

    own_network = ""
    """Key of the network between the containers that reach one another; known once it is open."""

    @abstractmethod
    async def _session(self, command: Sequence[str]) -> Session:
        """Starts a command. Raises TargetError."""

    @abstractmethod
    def known(self) -> Mapping[str, object]:
        """Returns what may be told of the way to the container: no secret is in it."""

    async def _hang_up(self) -> None:
        """Each program has a connection of its own."""

    async def _begin(self, command: Sequence[str]) -> RemoteProgram:
        mark = f"nephoscope-{secrets.token_hex(8)}"
        session = await self._session(shell_scripts.script(_PARENT, mark, *command))
        return await RemoteProgram.start(
            self.name, session, mark, self._end_there, lambda: None, self._silent
        )

    def _silent(self, last_words: str) -> TargetError:
        last = f" It said: {last_words}" if last_words else ""
        return TargetError(
            f"{self.name}: no command runs in the container.{last}",
            f"Its image needs {shell_scripts.SHELL} and the common tools (coreutils or busybox).",
        )


class ExecTarget(Target):
    """Runs the probe in a container, started by an API."""

    def __init__(self, name: str, channel: ExecChannel) -> None:
        super().__init__(name, channel)
        self._exec = channel

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`: the container's address, toward others of its network."""
        same = isinstance(client, ExecTarget) and client._exec.own_network == self._exec.own_network
        address = self._exec.own_address
        if not same or not address or version not in (None, 6 if ":" in address else 4):
            return super().endpoint(client, version)
        return Endpoint(address, address)

    def _reached_by(self) -> Mapping[str, Any]:
        return {**super()._reached_by(), "reached": dict(self._exec.known())}


def returncode_of(exit_code: int) -> int:
    """Returns a runtime's exit code as a child's: negative for the signal that ended it.

    130 stays: it is what the probe itself ends with when it is cancelled.
    """
    if exit_code <= _SIGNALLED or exit_code == _OWN_CANCELLATION:
        return exit_code
    return _SIGNALLED - exit_code
