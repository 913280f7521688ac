"""A host that is reached by ssh, as a target."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from nephoscope.targets.base import Endpoint, IpVersion, Target
from nephoscope.targets.probe.target import ProbeTarget
from nephoscope.targets.ssh.channel import SshChannel
from nephoscope.targets.ssh.route import SshRoute


class SshTarget(ProbeTarget):
    """Runs the probe on a host over one ssh connection."""

    def __init__(self, name: str, route: SshRoute) -> None:
        self._ssh = SshChannel(name, route)
        super().__init__(name, self._ssh)

    def endpoint(self, client: Target, version: IpVersion | None = None) -> Endpoint:
        """See `Target.endpoint`: the address under which it is reached from here, and its own."""
        endpoint = self._ssh.endpoint()
        if version and {ip_address(one).version for one in (endpoint.bind, endpoint.address)} != {
            version
        }:
            return super().endpoint(client, version)
        return endpoint

    def _reached_by(self) -> Mapping[str, Any]:
        return {"reached": self._ssh.known()}
