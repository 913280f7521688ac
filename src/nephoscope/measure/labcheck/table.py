"""Every check, in the order in which `nephoscope lab check` runs them."""

from __future__ import annotations

from collections.abc import Iterator

from nephoscope.measure.lab.topology import HostSpec, Topology
from nephoscope.measure.labcheck import limits, network
from nephoscope.measure.labcheck.frame import Check

CHECKS: tuple[Check, ...] = (*network.CHECKS, *limits.CHECKS)
"""Put together from the CHECKS of the files beside this one."""


def of_topology(topology: Topology) -> tuple[Check, ...]:
    """The checks of the settings that a topology uses, each setting once."""
    checks = [check for link in topology.links.values() for check in network.of_link(link)]
    for host in topology.hosts.values():
        if not host.is_guest:
            checks += _of_host(host)
    return tuple({check.id: check for check in checks}.values())


def _of_host(host: HostSpec) -> Iterator[Check]:
    if host.cpu.cap is not None:
        yield limits.cap_check(host.cpu.cap)
    if host.cpu.reservation is not None:
        yield limits.reservation_check(host.cpu.reservation.slice_s, host.cpu.reservation.period_s)
    if host.memory_bytes is not None:
        yield limits.memory_check(host.memory_bytes)
    if host.disk.read_bytes_per_s is not None:
        yield limits.disk_check("read", host.disk.read_bytes_per_s)
    if host.disk.write_bytes_per_s is not None:
        yield limits.disk_check("write", host.disk.write_bytes_per_s)
