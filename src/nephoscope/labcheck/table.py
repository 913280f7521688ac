"""Every check, in the order in which `nephoscope lab check` runs them."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.lab.topology import GUESTS, HostSpec, LinkSpec, Topology
from nephoscope.labcheck import cpu, disk, memory, network
from nephoscope.labcheck.frame import Check

CHECKS: tuple[Check, ...] = (
    *network.CHECKS,
    *cpu.CHECKS,
    *memory.CHECKS,
    *disk.CHECKS,
)
"""Put together from the CHECKS of the files beside this one."""


def of_topology(topology: Topology) -> tuple[Check, ...]:
    """The checks of the settings that a topology uses, each setting once."""
    found: dict[str, Check] = {}
    for link in topology.links.values():
        found |= {one.id: one for one in _of_link(link)}
    for host in topology.hosts.values():
        if host.platform not in GUESTS:
            found |= {one.id: one for one in _of_host(host)}
    return tuple(found.values())


def _of_link(link: LinkSpec) -> Iterator[Check]:
    yield from network.of_link(link)


def _of_host(host: HostSpec) -> Iterator[Check]:
    if host.cpu.cap is not None:
        yield cpu.cap_check(host.cpu.cap)
    if host.cpu.reservation is not None:
        wanted = host.cpu.reservation
        yield cpu.reservation_check(wanted.slice_s, wanted.period_s)
    if host.memory_bytes is not None:
        yield memory.memory_check(host.memory_bytes)
    if host.disk.read_bytes_per_s is not None:
        yield disk.disk_check("read", host.disk.read_bytes_per_s)
    if host.disk.write_bytes_per_s is not None:
        yield disk.disk_check("write", host.disk.write_bytes_per_s)
