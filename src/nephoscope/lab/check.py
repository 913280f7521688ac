"""Whether a topology can be built: its own shape, then what this machine has."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from nephoscope.errors import PlanError
from nephoscope.lab.network import layout
from nephoscope.lab.topology import HostSpec, Topology
from nephoscope.reading.sentences import Place


def checked(topology: Topology, place: Place) -> Topology:
    """The topology, when its shape can be built; else PlanError."""
    try:
        layout.lay_out(topology)
    except layout.Misplaced as error:
        raise PlanError(f"{place(error.loc)}{error.message}", error.hint) from error
    for name, spec in topology.hosts.items():
        _check_cap(name, spec, len(spec.cpu.cpus), f"{len(spec.cpu.cpus)} of `cpus`", place)
        if spec.cpu.hidden and spec.platform == "container":
            raise PlanError(
                f"{place(('hosts', name, 'cpu', 'hidden'))}host {name} is a container, and a "
                "container sees its control groups.",
                "Write `platform: bare`; a guest (uml, qemu) sees none anyway.",
            )
    return topology


def fits_here(topology: Topology, place: Place) -> None:
    """PlanError for what this machine cannot give: CPUs, reservations, its own addresses."""
    online = online_cpus()
    for name, spec in topology.hosts.items():
        for position, cpu in enumerate(spec.cpu.cpus):
            if cpu not in online:
                raise PlanError(
                    f"{place(('hosts', name, 'cpu', 'cpus', position))}host {name} asks for "
                    f"CPU {cpu}, and this machine has {_ranges(online)}.",
                    "Name CPUs that are there.",
                )
        _check_cap(name, spec, len(online), f"{len(online)} of this machine", place)
    _check_reservations(topology, len(online), place)
    _check_addresses(topology, place)


def online_cpus() -> set[int]:
    """Numbers of the CPUs of this machine that are in use."""
    try:
        text = Path("/sys/devices/system/cpu/online").read_text(encoding="ascii")
    except OSError:
        return set(range(os.cpu_count() or 1))
    cpus: set[int] = set()
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        cpus.update(range(int(low), int(high or low) + 1))
    return cpus


def _ranges(cpus: set[int]) -> str:
    low, high = min(cpus), max(cpus)
    if cpus == set(range(low, high + 1)):
        return f"CPUs {low} to {high}" if high > low else f"CPU {low}"
    return "CPUs " + ", ".join(map(str, sorted(cpus)))


def _check_cap(name: str, spec: HostSpec, cpus: int, whose: str, place: Place) -> None:
    if cpus and spec.cpu.cap is not None and spec.cpu.cap > cpus:
        raise PlanError(
            f"{place(('hosts', name, 'cpu', 'cap'))}host {name} is capped at "
            f"{spec.cpu.cap:.0%} of a CPU, which is more than the {whose}.",
            f"Write at most {cpus:.0%}, or leave the cap out.",
        )


def _check_reservations(topology: Topology, cpus: int, place: Place) -> None:
    asked = {
        name: spec.cpu.reservation.cpus
        for name, spec in topology.hosts.items()
        if spec.cpu.reservation is not None
    }
    if not asked:
        return
    given = cpus * _realtime_part()
    if sum(asked.values()) > given + 1e-9:
        words = " + ".join(f"{name} {part:.0%}" for name, part in asked.items())
        raise PlanError(
            f"{place(('hosts', next(reversed(asked)), 'cpu', 'reservation'))}the reservations "
            f"({words}) need {sum(asked.values()):.2f} CPUs, and this machine gives {given:.2f} "
            f"of its {cpus} away.",
            "Shorten the slices or lengthen the periods.",
        )


def _realtime_part() -> float:
    """The part of each CPU that the kernel gives to reservations (0.95 by default)."""
    try:
        runtime, period = (
            int(Path(f"/proc/sys/kernel/sched_rt_{name}_us").read_text(encoding="ascii"))
            for name in ("runtime", "period")
        )
    except (OSError, ValueError):
        return 0.95
    return 1.0 if runtime < 0 else runtime / period


def _check_addresses(topology: Topology, place: Place) -> None:
    mine = ipaddress.IPv4Network(topology.network)
    for network, interface in machine_networks():
        if mine.overlaps(network):
            raise PlanError(
                f"{place(('network',))}{mine} overlaps {network}, which this machine uses on "
                f"{interface}.",
                "Choose another `network`, such as 10.78.0.0/16 or 198.18.0.0/15.",
            )


def machine_networks() -> list[tuple[ipaddress.IPv4Network, str]]:
    """IPv4 networks that this machine has an address or a route in, with the interface's name."""
    found: list[tuple[ipaddress.IPv4Network, str]] = []
    for link in _ip("addr"):
        for address in link.get("addr_info", []):
            if address.get("family") == "inet":
                text = f"{address['local']}/{address['prefixlen']}"
                found.append((ipaddress.IPv4Interface(text).network, link["ifname"]))
    for route in _ip("route"):
        destination = str(route.get("dst", "default"))
        # The default route leads everywhere, so it says nothing about who is where.
        if destination != "default" and ":" not in destination:
            network = ipaddress.IPv4Network(destination, strict=False)
            found.append((network, str(route.get("dev", "a route"))))
    return found


def _ip(what: str) -> list[dict[str, Any]]:
    try:
        done = subprocess.run(
            ["ip", "-4", "-j", what], capture_output=True, check=True, timeout=10, text=True
        )
    except (OSError, subprocess.SubprocessError):
        # `up` says that iproute2 lacks; without it nothing can be made anyway.
        return []
    return list(json.loads(done.stdout or "[]"))
