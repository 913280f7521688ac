"""The machine that we run on, as a target."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.core import leases
from nephoscope.core.errors import TargetError
from nephoscope.core.programs import BUILD_COMMAND, PROBE, STORAGE, find_probe, find_storage
from nephoscope.measure.targets import leftovers
from nephoscope.measure.targets.base import Endpoint, IpVersion
from nephoscope.measure.targets.channels.child import Child, start_child
from nephoscope.measure.targets.probe.target import Target


class LocalTarget(Target):
    """Runs the probe as a child process. prefix: as of `LocalChannel`."""

    shares_clock = True

    def __init__(
        self,
        name: str = "local",
        *,
        probe: Path | None = None,
        prefix: Sequence[str] = (),
        catalog: Catalog | None = None,
        directory: str = "",
    ) -> None:
        channel = LocalChannel(name, probe=probe, prefix=prefix, directory=directory)
        super().__init__(name, channel, catalog=catalog)

    def _lease(self, benchmark: str, params: Mapping[str, Any]) -> None:
        leftovers.lease(benchmark, params, self._channel.directory)

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`; only this machine itself has one that is known: loopback."""
        if not isinstance(client, LocalTarget):
            return super().endpoint(client, version)
        address = "::1" if version == 6 else "127.0.0.1"
        return Endpoint(address, address)


class LocalChannel:
    """Starts programs as children.

    prefix: words in front of every command, of a program that enters a lab host first, for example.
    directory: where programs start; a relative one, or none, counts from the current directory.
    """

    def __init__(
        self,
        name: str,
        *,
        probe: Path | None = None,
        prefix: Sequence[str] = (),
        directory: str = "",
    ) -> None:
        self.name = name
        self.directory = ""
        self._wanted_directory = directory
        self._probe = probe
        self.prefix: Sequence[str] = tuple(prefix)
        self._work: leases.ScratchFolder | None = None

    async def open(self, timeout_s: float) -> None:
        """See `Channel.open`."""
        try:
            self.directory = os.path.abspath(self._wanted_directory)
        except FileNotFoundError as error:
            raise TargetError(
                f"{self.name}: the current directory does not exist any more.",
                "Change to one that exists.",
            ) from error
        if not Path(self.directory).is_dir():
            raise TargetError(
                f"{self.name}: there is no directory {self.directory} to start programs in.",
                "Create it, or correct `directory` of the target.",
            )

    async def probe(self, name: str = PROBE) -> str:
        """See `Channel.probe`."""
        if name == STORAGE:
            return str(find_storage())
        return str(self._probe or find_probe())

    async def start(self, command: Sequence[str]) -> Child:
        """See `Channel.start`."""
        try:
            return start_child([*self.prefix, *command], self.directory or None)
        except OSError as error:
            raise TargetError(
                f"{self.name}: {(*self.prefix, *command)[0]} cannot be started: {error.strerror}.",
                "Install it." if self.prefix else f"Build it again: `{BUILD_COMMAND}`.",
            ) from error

    async def work(self) -> str:
        """See `Channel.work`."""
        if self._work is None:
            self._work = leases.ScratchFolder()
        return str(self._work.path)

    async def put(self, source: Path, there: str) -> None:
        """See `Channel.put`."""
        destination = Path(there)
        destination.parent.mkdir(parents=True, exist_ok=True)
        await _copy(source, destination)

    async def get(self, there: str, destination: Path) -> None:
        """See `Channel.get`."""
        await _copy(Path(there), destination)

    async def close(self) -> None:
        """See `Channel.close`."""
        if self._work is not None:
            self._work.remove()
            self._work = None


async def _copy(source: Path, destination: Path) -> None:
    """Whole, or not at all: written aside and renamed."""
    aside = destination.with_name(f".{destination.name}.{os.getpid()}.part")
    try:
        await asyncio.to_thread(shutil.copyfile, source, aside)
        aside.replace(destination)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
