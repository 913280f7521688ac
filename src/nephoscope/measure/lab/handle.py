"""A lab that is up: its hosts, how to run a program in each, and what was made of its links."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from nephoscope.measure.lab.boot import BootTimes
from nephoscope.measure.lab.topology import HostSpec, Topology


@dataclass(frozen=True, slots=True)
class GuestAccess:
    """Access to a guest: ssh to an address that only `netns` knows."""

    address: str
    port: int
    user: str
    netns: Path
    """Namespace in which the socket has to be opened."""
    identity: Path
    known_hosts: Path


@dataclass(frozen=True, slots=True)
class Nic:
    """One interface of a host."""

    device: str
    link: str
    address: str
    prefix_bits: int
    mac: str
    mtu_bytes: int

    @property
    def network(self) -> str:
        """The network that it is on: 10.77.0.0/16."""
        return _network_of(self.address, self.prefix_bits)


@lru_cache(maxsize=4096)
def _network_of(address: str, prefix_bits: int) -> str:
    # The routes of a lab ask for it once per pair of hosts.
    return str(ipaddress.ip_interface(f"{address}/{prefix_bits}").network)


@dataclass(frozen=True, slots=True)
class Route:
    """Route of a host to another network of the lab."""

    network: str
    via: str


@dataclass(frozen=True)
class HostPlan:
    """Input of a platform that starts a host; namespace, groups and eth0 are there already.

    Of a guest, eth0 has no address: the guest gets `address`, `mac` and the routes on its own data
    interface, which the platform bridges to eth0.
    """

    lab: str
    name: str
    spec: HostSpec
    netns: Path
    cgroups: tuple[Path, ...]
    directory: Path
    """/run/nephoscope/<lab>/<host>, 0700, there already."""
    nics: tuple[Nic, ...]
    routes: tuple[Route, ...]
    peers: Mapping[str, str]
    """Name of every host of the lab -> its address."""

    @property
    def address(self) -> str:
        """Address of the first interface; empty when it has none."""
        return self.nics[0].address if self.nics else ""

    @property
    def hosts_path(self) -> Path:
        """The file that a host on the machine's kernel has as /etc/hosts."""
        return self.directory / "hosts"

    @property
    def hosts_text(self) -> str:
        """Content of /etc/hosts: the address of every host of the lab."""
        known = [f"{address} {name}" for name, address in self.peers.items() if address]
        return "".join(f"{line}\n" for line in ("127.0.0.1 localhost", *known))

    @property
    def mac(self) -> str:
        """Hardware address of the first interface."""
        return self.nics[0].mac if self.nics else ""


@dataclass(frozen=True)
class StartedHost:
    """Result of a platform that started a host; pydantic reads and writes it in a lab's file.

    entry: the words before a program that runs inside; empty for a guest. guest: how it is reached
    by ssh. details: what there is to say about it (accelerator, kernel, image, clock offset).
    """

    boot: BootTimes | None = None
    entry: tuple[str, ...] = ()
    guest: GuestAccess | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Host(StartedHost, HostPlan):
    """A host that is up."""

    @property
    def platform(self) -> str:
        """Name of its platform."""
        return self.spec.platform

    def enter(self) -> list[str]:
        """The words before a program that runs inside (bare, container), `--` last.

        Raises ValueError for a guest: it is reached by `guest`.
        """
        if self.guest is not None or not self.entry:
            raise ValueError(f"host {self.name} is a guest; reach it by ssh")
        return list(self.entry)


@dataclass(frozen=True, slots=True)
class LinkImplementation:
    """Implementation of a link: the mechanism of each of its conditions."""

    link: str
    between: tuple[str, str]
    path: str
    """veth, netem, line."""
    rate: str
    """HTB, or none."""
    loss: str
    """packet filter, netem, line, or none."""
    says: str
    """All of it in one line for people."""


@dataclass(slots=True)
class Lab:
    """A lab that is up. `conditions` changes it in place: topology, hosts and links."""

    name: str
    topology: Topology
    directory: Path
    hosts: Mapping[str, Host]
    links: tuple[LinkImplementation, ...] = ()
    warnings: tuple[str, ...] = ()

    def address(self, host: str, toward: str) -> str:
        """The address under which host `toward` reaches host `host`: on a network both are on,
        else that of its first interface."""
        host_plan = self.hosts[host]
        networks = {nic.network for nic in self.hosts[toward].nics}
        for nic in host_plan.nics:
            if nic.network in networks:
                return nic.address
        return host_plan.address


@dataclass(slots=True)
class RemovedLab:
    """Numbers of what `down` removed."""

    name: str
    namespaces: int = 0
    processes: int = 0
    cgroups: int = 0
    mounts: int = 0
    files: int = 0
    elapsed_s: float = 0.0
