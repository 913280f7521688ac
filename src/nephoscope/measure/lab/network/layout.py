"""What a topology becomes, worked out before anything is created: devices, addresses, routes.

Everything here follows from the topology alone, so that the same file gives the same addresses and
hardware addresses each time. A network (segment) is what frames reach without a host between; hosts
on several networks pass packets on, and every host is given the routes to the other networks.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from collections import deque
from collections.abc import Iterator, Mapping

from nephoscope.core.records import dataclass
from nephoscope.measure.lab.handle import Nic, Route
from nephoscope.measure.lab.topology import LinkSpec, Topology

DEFAULT_SWITCH = "lan"
BRIDGE = "br0"


class Misplaced(ValueError):
    """A topology that cannot be laid out: `loc` is the place in it, the message says why."""

    def __init__(self, loc: tuple[str | int, ...], message: str, hint: str) -> None:
        super().__init__(message)
        self.loc, self.message, self.hint = loc, message, hint


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable: a device in the namespace of a host or switch."""

    node: str
    device: str
    mac: str


@dataclass(frozen=True, slots=True)
class Cable:
    """A link with its devices; `named` when the file has it (others are the default ones)."""

    name: str
    spec: LinkSpec
    first: End
    second: End
    named: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that has a name or an address in a lab."""

    topology: Topology
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]
    hub: tuple[End, ...]
    """Ports between sites, in the order of `geo.sites`; empty without geo."""
    nics: Mapping[str, tuple[Nic, ...]]
    routes: Mapping[str, tuple[Route, ...]]

    def is_host(self, node: str) -> bool:
        """Returns whether a node is a host, not a switch."""
        return node in self.topology.hosts

    def is_guest(self, node: str) -> bool:
        """Returns whether a node is a host with a kernel of its own."""
        return self.is_host(node) and self.topology.hosts[node].is_guest


def mac_of(lab: str, node: str, device: str) -> str:
    """A hardware address that follows from the name; locally administered (02), never a group's."""
    digest = hashlib.sha256(f"{lab}/{node}/{device}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))


def lay_out(topology: Topology) -> Layout:
    """The layout of a topology. Raises Misplaced for what cannot be built."""
    switches = _switches(topology)
    _refuse_same_names(topology, switches)
    pairs = list(_pairs(topology, switches))
    segments = _segments(topology, switches, pairs)
    cables, devices = [], dict.fromkeys([*topology.hosts, *switches], 0)

    def end(node: str) -> End:
        kind = "eth" if node in topology.hosts else "p"
        device = f"{kind}{devices[node]}"
        devices[node] += 1
        return End(node, device, mac_of(topology.name, node, device))

    for name, spec, named in pairs:
        first, second = spec.between
        cables.append(Cable(name, spec, end(first), end(second), named))
    hub = tuple(end(site) for site in topology.geo.sites) if topology.geo else ()
    nics = _nics(topology, cables, segments)
    return Layout(topology, switches, tuple(cables), hub, nics, _routes(topology, nics))


def _switches(topology: Topology) -> tuple[str, ...]:
    sites = tuple(topology.geo.sites) if topology.geo else ()
    declared = tuple(topology.switches)
    if declared or sites:
        return declared + tuple(site for site in sites if site not in declared)
    linked = {node for link in topology.links.values() for node in link.between}
    if DEFAULT_SWITCH in linked or any(host not in linked for host in topology.hosts):
        return (DEFAULT_SWITCH,)
    return ()


def _refuse_same_names(topology: Topology, switches: tuple[str, ...]) -> None:
    for name in switches:
        if name in topology.hosts:
            kind = "switches" if name in topology.switches else "hosts"
            raise Misplaced(
                (kind, name), f"'{name}' is a host and a switch.", "Give one another name."
            )


def _pairs(topology: Topology, switches: tuple[str, ...]) -> Iterator[tuple[str, LinkSpec, bool]]:
    """Every cable: those of the file, then the default ones of hosts that have none."""
    linked: set[str] = set()
    for name, link in topology.links.items():
        for position, node in enumerate(link.between):
            if node not in topology.hosts and node not in switches:
                raise Misplaced(
                    ("links", name, "between", position),
                    f"link {name} ends at '{node}', which is neither host nor switch.",
                    f"There are: {', '.join([*topology.hosts, *switches])}.",
                )
        linked.update(link.between)
        yield name, link, True
    for host, switch in _homes(topology, switches).items():
        if host not in linked:
            yield f"{host}.{switch}", LinkSpec(between=(host, switch)), False


def _homes(topology: Topology, switches: tuple[str, ...]) -> dict[str, str]:
    """Host -> the switch that it joins when no link of the file says otherwise."""
    homes: dict[str, str] = {}
    for site, hosts in (topology.geo.sites if topology.geo else {}).items():
        for position, host in enumerate(hosts):
            loc = ("geo", "sites", site, position)
            if host not in topology.hosts:
                raise Misplaced(
                    loc,
                    f"site {site} names '{host}', which is no host.",
                    f"There are: {', '.join(topology.hosts)}.",
                )
            if host in homes:
                raise Misplaced(
                    loc, f"host {host} is in two sites, {homes[host]} and {site}.", "Keep one."
                )
            homes[host] = site
    if topology.geo:
        _refuse_gaps(topology)
    linked = {node for link in topology.links.values() for node in link.between}
    for host in topology.hosts:
        if host in homes or host in linked:
            continue
        if len(switches) != 1:
            raise Misplaced(
                ("hosts", host),
                f"host {host} is connected to nothing.",
                "Put it into a site." if topology.geo else "Give it a link to a switch.",
            )
        homes[host] = switches[0]
    return homes


def _refuse_gaps(topology: Topology) -> None:
    geo = topology.geo
    assert geo is not None
    sites = list(geo.sites)
    for source, row in geo.latency.items() if isinstance(geo.latency, dict) else ():
        for name in (source, *row):
            if name not in geo.sites:
                raise Misplaced(
                    ("geo", "latency", source),
                    f"the latency matrix names '{name}', which is no site.",
                    f"The sites are: {', '.join(sites)}.",
                )
    for i, source in enumerate(sites):
        for destination in sites[i + 1 :]:
            delay = geo.delay_s(source, destination)
            if delay is None:
                raise Misplaced(
                    ("geo", "latency"),
                    f"no delay is given between {source} and {destination}.",
                    f"Add `{source}: {{{destination}: 110ms}}`.",
                )
            if geo.jitter_s > min(delay, geo.delay_s(destination, source) or 0.0):
                raise Misplaced(
                    ("geo", "jitter"),
                    f"the jitter is larger than the delay between {source} and {destination}.",
                    "Write jitter <= delay.",
                )


class _Groups:
    """Sets that are merged step by step (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def of(self, name: str) -> str:
        self._parent.setdefault(name, name)
        while self._parent[name] != name:
            name = self._parent[name]
        return name

    def merge(self, a: str, b: str) -> bool:
        """False when both were in one set already."""
        a, b = self.of(a), self.of(b)
        self._parent[b] = a
        return a != b


def _segments(
    topology: Topology, switches: tuple[str, ...], pairs: list[tuple[str, LinkSpec, bool]]
) -> dict[str, str]:
    """Cable -> its segment. Misplaced for a loop of switches and for a host twice on a segment."""
    groups = _Groups()
    sites = list(topology.geo.sites) if topology.geo else []
    for site in sites[1:]:
        groups.merge(sites[0], site)
    for name, spec, _ in pairs:
        ends = [node for node in spec.between if node in switches]
        if len(ends) == 2 and not groups.merge(*ends):
            raise Misplaced(
                ("links", name, "between"),
                f"link {name} closes a loop of switches: frames would circle forever.",
                "Remove one link of the loop.",
            )
    segments: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    for name, spec, _ in pairs:
        ends = [node for node in spec.between if node in switches]
        segments[name] = groups.of(ends[0]) if ends else f"={name}"
        for host in (node for node in spec.between if node not in switches):
            if (host, segments[name]) in seen:
                raise Misplaced(
                    ("links", name, "between"),
                    f"link {name} puts host {host} on one network twice.",
                    "Remove one of its links.",
                )
            seen.add((host, segments[name]))
    for host, spec_ in topology.hosts.items():
        own = [name for name, spec, _ in pairs if host in spec.between]
        if spec_.is_guest and len(own) > 1:
            raise Misplaced(
                ("links", own[1], "between"),
                f"host {host} is a {spec_.platform} guest and has more than one link.",
                "Give a guest one link; bare hosts and containers may have several.",
            )
    return segments


def _subnets(
    topology: Topology, segments: list[str], sizes: Mapping[str, int]
) -> dict[str, ipaddress.IPv4Network]:
    """The network of each segment: the whole one, or equal parts of it (/24 where they fit)."""
    whole = ipaddress.IPv4Network(topology.network)
    if len(segments) <= 1:
        return dict.fromkeys(segments, whole)
    prefix = whole.prefixlen + math.ceil(math.log2(len(segments)))
    if prefix < 24 and max(sizes.values()) <= 253:
        prefix = 24
    if prefix > 30:
        raise Misplaced(
            ("network",),
            f"{whole} cannot be divided into {len(segments)} networks.",
            "Write a larger one: 10.77.0.0/16.",
        )
    return dict(zip(segments, whole.subnets(new_prefix=prefix), strict=False))


def _nics(
    topology: Topology, cables: list[Cable], segments: Mapping[str, str]
) -> dict[str, tuple[Nic, ...]]:
    hosts = topology.hosts
    ends = [
        (cable, end) for cable in cables for end in (cable.first, cable.second) if end.node in hosts
    ]
    # In the order of the hosts in the file, so that the addresses follow it.
    ends.sort(key=lambda pair: (list(hosts).index(pair[1].node), pair[1].device))
    order = list(dict.fromkeys(segments[cable.name] for cable in cables))
    sizes = {name: sum(segments[cable.name] == name for cable, _ in ends) for name in order}
    subnets = _subnets(topology, order, sizes)
    wanted = _wanted(topology, ends, segments, subnets)
    for name in order:
        room = subnets[name].num_addresses - 2
        if sizes[name] > room:
            raise Misplaced(
                ("network",),
                f"{subnets[name]} has {room} addresses and {sizes[name]} interfaces need one.",
                "Write a larger network: 10.77.0.0/16.",
            )
    free = {name: iter(subnets[name].hosts()) for name in order}
    nics: dict[str, list[Nic]] = {host: [] for host in hosts}
    for cable, end in ends:
        segment = segments[cable.name]
        first = not nics[end.node]
        address_text = hosts[end.node].address if first else None
        if address_text is None:
            address_text = str(
                next(address for address in free[segment] if str(address) not in wanted)
            )
        prefix = subnets[segment].prefixlen
        nic = Nic(end.device, cable.name, address_text, prefix, end.mac, cable.spec.mtu_bytes)
        nics[end.node].append(nic)
    return {host: tuple(of) for host, of in nics.items()}


def _wanted(
    topology: Topology,
    ends: list[tuple[Cable, End]],
    segments: Mapping[str, str],
    subnets: Mapping[str, ipaddress.IPv4Network],
) -> set[str]:
    """The addresses that hosts ask for. Misplaced for one that is outside, reserved or twice."""
    wanted: dict[str, str] = {}
    for cable, end in ends:
        spec = topology.hosts[end.node]
        if spec.address is None or end.device != "eth0":
            continue
        subnet = subnets[segments[cable.name]]
        address = ipaddress.IPv4Address(spec.address)
        loc = ("hosts", end.node, "address")
        if address not in subnet:
            raise Misplaced(
                loc,
                f"{address} is not in {subnet}, the network of link {cable.name}.",
                f"Write one from {subnet[1]} to {subnet[-2]}.",
            )
        if address in (subnet.network_address, subnet.broadcast_address):
            raise Misplaced(
                loc,
                f"{address} is the first or last of {subnet}, which no host may have.",
                f"Write one from {subnet[1]} to {subnet[-2]}.",
            )
        if str(address) in wanted:
            raise Misplaced(
                loc,
                f"{address} is the address of host {wanted[str(address)]} too.",
                "Give each host its own.",
            )
        wanted[str(address)] = end.node
    return set(wanted)


def _routes(
    topology: Topology, nics: Mapping[str, tuple[Nic, ...]]
) -> dict[str, tuple[Route, ...]]:
    """Host -> routes to the networks that it is not on, by the fewest hosts between."""
    on: dict[str, list[tuple[str, Nic]]] = {}
    for host, of in nics.items():
        for nic in of:
            on.setdefault(nic.network, []).append((host, nic))
    return {host: tuple(_from(nics[host], on, nics)) for host in topology.hosts}


def _from(
    own_nics: tuple[Nic, ...],
    on: Mapping[str, list[tuple[str, Nic]]],
    nics: Mapping[str, tuple[Nic, ...]],
) -> Iterator[Route]:
    """Breadth first over networks; the first hop of the way to each is its gateway."""
    via: dict[str, str] = {nic.network: "" for nic in own_nics}
    todo = deque(via)
    while todo:
        network = todo.popleft()
        for host, nic in on[network]:
            for peer in nics[host]:
                if peer.network not in via:
                    via[peer.network] = via[network] or nic.address
                    todo.append(peer.network)
                    yield Route(peer.network, via[peer.network])
