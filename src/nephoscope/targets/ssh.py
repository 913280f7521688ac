"""A host that is reached by ssh, as a target."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from nephoscope.catalog import Catalog
from nephoscope.targets.base import Endpoint, IpVersion, Target
from nephoscope.targets.probed import ProbeTarget
from nephoscope.targets.ssh_channel import SshChannel
from nephoscope.targets.ssh_way import Way


class SshTarget(ProbeTarget):
    """Runs the probe on a host over one ssh connection."""

    def __init__(
        self, name: str, way: Way, *, probe: Path | None = None, catalog: Catalog | None = None
    ) -> None:
        self._ssh = SshChannel(name, way, probe=probe)
        super().__init__(name, self._ssh, catalog=catalog)

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`: the address under which it is reached from here, and its own."""
        endpoint = self._ssh.endpoint()
        if version and {ip_address(one).version for one in (endpoint.bind, endpoint.address)} != {
            version
        }:
            return super().endpoint(client, version)
        return endpoint

    def _known(self) -> Mapping[str, Any]:
        return {"reached": self._ssh.known()}
