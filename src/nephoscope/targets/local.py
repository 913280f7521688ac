"""The machine that we run on, as a target."""

from __future__ import annotations

from pathlib import Path

from nephoscope.catalog import Catalog
from nephoscope.targets.base import Endpoint, IpVersion
from nephoscope.targets.channels.local import LocalChannel
from nephoscope.targets.probe.target import Target


class LocalTarget(Target):
    """Runs the probe as a child process."""

    shares_clock = True

    def __init__(
        self, name: str = "local", *, probe: Path | None = None, catalog: Catalog | None = None
    ) -> None:
        super().__init__(name, LocalChannel(name, probe=probe), catalog=catalog)

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`; only this machine itself has one that is known: loopback."""
        if not isinstance(client, LocalTarget):
            return super().endpoint(client, version)
        address = "::1" if version == 6 else "127.0.0.1"
        return Endpoint(address, address)
