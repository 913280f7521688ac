"""Whether a topology can be built: its own shape, then what this machine has and can carry."""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

from nephoscope.core import units
from nephoscope.core.errors import PlanError
from nephoscope.core.reading.sentences import Place
from nephoscope.core.reading.validation_errors import ValidationErrors
from nephoscope.measure.lab import commands
from nephoscope.measure.lab.limits.cpu import machine_cpus
from nephoscope.measure.lab.network import layout
from nephoscope.measure.lab.network.namespaces import within
from nephoscope.measure.lab.topology import HostSpec, LinkSpec, TcpSpec, Topology


def checked(topology: Topology, place: Place) -> Topology:
    """The topology, when its shape can be built; else PlanError."""
    try:
        layout.lay_out(topology)
    except layout.Misplaced as error:
        raise PlanError(f"{place(error.loc)}{error.message}", error.hint) from error
    errors = ValidationErrors()
    for name, spec in topology.hosts.items():
        with errors.of_part():
            _check_host(name, spec, place)
            _check_shares(name, spec, topology, place)
    errors.report()
    return topology


def _check_host(name: str, spec: HostSpec, place: Place) -> None:
    _check_cap(name, spec, len(spec.cpu.cpus), f"{len(spec.cpu.cpus)} of `cpus`", place)
    if spec.cpu.hidden and spec.platform == "container":
        raise PlanError(
            f"{place(('hosts', name, 'cpu', 'hidden'))}host {name} is a container, and a "
            "container sees its control groups.",
            "Write `platform: bare`; a guest (uml, qemu) sees none anyway.",
        )

    if spec.is_guest and spec.tcp != TcpSpec():
        raise PlanError(
            f"{place(('hosts', name, 'tcp'))}host {name} is a {spec.platform} guest, whose kernel "
            "sends as it does by default.",
            "Write `platform: bare` or `platform: container`, or leave `tcp` out.",
        )


def _check_shares(name: str, spec: HostSpec, topology: Topology, place: Place) -> None:
    if spec.exports and spec.platform != "bare":
        raise PlanError(
            f"{place(('hosts', name, 'exports'))}host {name} is of platform {spec.platform}, and "
            "the NFS server is a program of this machine.",
            "Write `platform: bare`, or leave `exports` out.",
        )
    for path, mount in spec.mounts.items():
        where = place(("hosts", name, "mounts", path))
        if spec.platform != "qemu":
            raise PlanError(
                f"{where}host {name} is of platform {spec.platform}, and only guests of QEMU have "
                "an NFS client of their own.",
                "Write `platform: qemu`, or leave `mounts` out.",
            )
        server = topology.hosts.get(mount.host)
        if server is None or not server.exports:
            have = ", ".join(host for host, entry in topology.hosts.items() if entry.exports)
            raise PlanError(
                f"{where}host {mount.host} exports no folder.",
                f"Name a host that does: {have}." if have else "Write `exports: true` there.",
            )


def fits_here(topology: Topology, place: Place) -> None:
    """PlanError for what this machine cannot give: CPUs, reservations, its own addresses."""
    online = set(machine_cpus())
    for name, spec in topology.hosts.items():
        for position, cpu in enumerate(spec.cpu.cpus):
            if cpu not in online:
                raise PlanError(
                    f"{place(('hosts', name, 'cpu', 'cpus', position))}host {name} asks for "
                    f"CPU {cpu}, and this machine has {_ranges(online)}.",
                    "Name CPUs that are there.",
                )
        _check_cap(name, spec, len(online), f"{len(online)} of this machine", place)
        _check_congestion_control(name, spec, place)
    _check_reservations(topology, len(online), place)
    _check_addresses(topology, place)


def _check_congestion_control(name: str, spec: HostSpec, place: Place) -> None:
    wanted = spec.tcp.congestion_control
    if wanted is None:
        return
    file = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    available = file.read_text(encoding="ascii").split()
    if wanted not in available:
        raise PlanError(
            f"{place(('hosts', name, 'tcp', 'congestion_control'))}host {name} asks for {wanted}, "
            f"and this machine has {', '.join(available)}.",
            f"Name one of them, or load the kernel's module: modprobe tcp_{wanted}.",
        )


def _ranges(cpus: set[int]) -> str:
    low, high = min(cpus), max(cpus)
    if cpus == set(range(low, high + 1)):
        return f"CPUs {low} to {high}" if high > low else f"CPU {low}"
    return "CPUs " + ", ".join(map(str, sorted(cpus)))


def _check_cap(name: str, spec: HostSpec, cpus: int, owner: str, place: Place) -> None:
    if cpus and spec.cpu.cap is not None and spec.cpu.cap > cpus:
        raise PlanError(
            f"{place(('hosts', name, 'cpu', 'cap'))}host {name} is capped at "
            f"{spec.cpu.cap:.0%} of a CPU, which is more than the {owner}.",
            f"Write at most {cpus:.0%}, or leave the cap out.",
        )


def _check_reservations(topology: Topology, cpus: int, place: Place) -> None:
    requested = {
        name: spec.cpu.reservation.cpus
        for name, spec in topology.hosts.items()
        if spec.cpu.reservation is not None
    }
    if not requested:
        return
    available = cpus * _realtime_part()
    if sum(requested.values()) > available + 1e-9:
        words = " + ".join(f"{name} {part:.0%}" for name, part in requested.items())
        raise PlanError(
            f"{place(('hosts', next(reversed(requested)), 'cpu', 'reservation'))}the reservations "
            f"({words}) need {sum(requested.values()):.2f} CPUs, and this machine gives "
            f"{available:.2f} of its {cpus} away.",
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
    lab_network = ipaddress.IPv4Network(topology.network)
    for network, interface in machine_networks():
        if lab_network.overlaps(network):
            raise PlanError(
                f"{place(('network',))}{lab_network} overlaps {network}, which this machine uses "
                f"on {interface}.",
                "Choose another `network`, such as 10.78.0.0/16 or 198.18.0.0/15.",
            )


def machine_networks() -> list[tuple[ipaddress.IPv4Network, str]]:
    """IPv4 networks that this machine has an address or a route in, with the interface's name."""
    networks: list[tuple[ipaddress.IPv4Network, str]] = []
    for link in _ip("addr"):
        for address in link.get("addr_info", []):
            if address.get("family") == "inet":
                text = f"{address['local']}/{address['prefixlen']}"
                networks.append((ipaddress.IPv4Interface(text).network, link["ifname"]))
    for route in _ip("route"):
        destination = str(route.get("dst", "default"))
        # The default route leads everywhere, so it says nothing about who is where.
        if destination != "default" and ":" not in destination:
            network = ipaddress.IPv4Network(destination, strict=False)
            networks.append((network, str(route.get("dev", "a route"))))
    return networks


def _ip(what: str) -> list[dict[str, Any]]:
    # Without iproute2, which `up` reports, nothing can be made anyway.
    return list(json.loads(commands.output_of(["ip", "-4", "-j", what]) or "[]"))


CARRIED_BITS_PER_S = 1e9
"""Conservative: what one CPU moves through TCP, a shaper and a bridge without offloads, or through
a delay line: `carried_bits_per_s` measured 1.5 Gbit/s on two shared cores (AMD EPYC, 2.6 GHz)."""

_WARM_UP_S = 0.1


def configured_bits_per_s(link: LinkSpec) -> float:
    """The highest rate of a link's directions; 0 for a link without a rate."""
    sides = (link.direction("up"), link.direction("down"))
    rates = [side.rate_bits_per_s or 0.0 for side in sides]
    return max(*rates, link.ingress_bits_per_s or 0.0)


def warnings(topology: Topology) -> list[str]:
    """Returns what may be beyond this box: single links, and all of them at once.

    It is said before a run: a link that cannot be filled would be measured as another link.
    """
    sentences = []
    rates = {name: configured_bits_per_s(link) for name, link in topology.links.items()}
    for name, rate in rates.items():
        if rate > CARRIED_BITS_PER_S:
            sentences.append(
                f"link {name} asks for {_text(rate)}, and one CPU carries about "
                f"{_text(CARRIED_BITS_PER_S)}; `nephoscope lab check FILE` measures it"
            )
    cpus = len(machine_cpus())
    total = sum(rates.values())
    if total > CARRIED_BITS_PER_S * cpus and len(rates) > 1:
        sentences.append(
            f"all links at once ask for {_text(total)}, which needs about "
            f"{total / CARRIED_BITS_PER_S:.1f} CPUs of {cpus}"
        )
    return sentences


def _text(rate: float) -> str:
    return units.format_value(rate, "bits_per_s")


def carried_bits_per_s(sender: Path, receiver: Path, address: str, seconds: float = 0.5) -> float:
    """Returns the TCP payload that arrives from one namespace in another over one connection."""
    server = within(receiver, lambda: socket.create_server((address, 0)))
    client = within(sender, socket.socket)
    with server, client:
        client.settimeout(10)
        client.connect(server.getsockname())
        peer, _ = server.accept()
        with peer:
            peer.settimeout(10)
            return _received(client, peer, seconds)


def _received(client: socket.socket, peer: socket.socket, seconds: float) -> float:
    over = threading.Event()

    def send() -> None:
        block = bytes(1 << 16)
        try:
            while not over.is_set():
                client.sendall(block)
        except OSError:
            return

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    buffer = bytearray(1 << 20)
    warm = time.monotonic() + _WARM_UP_S
    while time.monotonic() < warm:
        peer.recv_into(buffer)
    count, began = 0, time.monotonic()
    while (now := time.monotonic()) < began + seconds:
        count += peer.recv_into(buffer)
    over.set()
    # Closed with data unread it resets the connection, which ends a sender that is stuck.
    peer.close()
    thread.join(timeout=10)
    return count * 8 / (now - began)
