"""What each link is made of, and the lines for ip, tc and nft that make it. Pure but for `lines`.

veth: a cable and nothing else. netem: the kernel delays. line: our program delays, on TAP devices
in the two namespaces. Rates are HTB's in all three, on the devices at both ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from nephoscope.core import units
from nephoscope.core.errors import Lacking
from nephoscope.measure.lab import names, needs
from nephoscope.measure.lab.handle import LinkImplementation
from nephoscope.measure.lab.needs import Abilities
from nephoscope.measure.lab.network import shaping
from nephoscope.measure.lab.network.layout import BRIDGE, Cable, End, Layout
from nephoscope.measure.lab.topology import Direction

VETH, NETEM, LINE = "veth", "netem", "line"
FILTER, IPTABLES = "packet filter", "iptables"
_DIRECTIONS: tuple[Literal["up", "down"], ...] = ("up", "down")


@dataclass(frozen=True, slots=True)
class Link:
    """A cable with what it is made of. loses: what drops packets, empty when nothing does."""

    cable: Cable
    path: str
    loses: str

    def leaving(self, end: End) -> Direction:
        """Returns what holds for packets that leave through this end."""
        return self.cable.spec.direction("up" if end == self.cable.first else "down")

    @property
    def ends(self) -> tuple[End, End]:
        """Both ends."""
        return self.cable.first, self.cable.second

    @property
    def ifb(self) -> str:
        """Device that shapes what the first end takes in."""
        return f"ifb-{self.cable.first.device}"


def decide(cable: Cable, has: Abilities, was: str = "") -> Link:
    """Returns what a cable is made of. Raises Lacking when this kernel cannot give what it asks
    for.

    was: its path until now. A link that went through the delay line stays there, so that levels of
    one experiment do not differ in more than their delay.
    """
    spec, name = cable.spec, cable.name
    sides = (spec.direction("up"), spec.direction("down"))
    losing = any(side.loss_ratio for side in sides)
    _require(cable, has)
    holds = spec.delays or spec.mechanism != "auto"
    if LINE in (spec.mechanism, was) or (holds and not has.netem):
        if not has.tun:
            raise needs.lacking("a delay", name, "netem and no TUN", "Run `modprobe tun`.")
        return Link(cable, LINE, LINE if losing else "")
    if holds or (losing and has.netem):
        return Link(cable, NETEM, NETEM if losing else "")
    return _losing(cable, has) if losing else Link(cable, VETH, "")


def _require(cable: Cable, has: Abilities) -> None:
    """Lacking when the kernel has not what shapes a rate, or the mechanism that is named."""
    spec, name = cable.spec, cable.name
    rates = (spec.direction("up").rate_bits_per_s, spec.direction("down").rate_bits_per_s)
    if any((*rates, spec.ingress_bits_per_s)) and not has.htb:
        raise needs.lacking("a rate", name, "HTB queue", "Run `modprobe sch_htb`.")
    if spec.ingress_bits_per_s and not has.ifb:
        raise needs.lacking("ingress shaping", name, "IFB", "Run `modprobe ifb act_mirred`.")
    if spec.mechanism == NETEM and not has.netem:
        raise needs.lacking(
            "netem", name, "netem", "Write `mechanism: auto` or run `modprobe sch_netem`."
        )


def _losing(cable: Cable, has: Abilities) -> Link:
    """A cable that only loses packets, on a kernel without netem."""
    if has.nft:
        return Link(cable, VETH, FILTER)
    up, down = (cable.spec.direction(direction).loss_ratio for direction in _DIRECTIONS)
    arrives = ((cable.second, up), (cable.first, down))
    if has.iptables and all(end.device.startswith("eth") for end, lost in arrives if lost):
        return Link(cable, VETH, IPTABLES)
    if has.tun:
        return Link(cable, LINE, LINE)
    raise Lacking(
        f"Link {cable.name} loses packets, and this machine has no netem, nft or TUN.",
        "Run `apt-get install nftables`.",
    )


def make_lines(layout: Layout, links: Iterable[Link]) -> list[str]:
    """Lines for `ip -batch` that make namespaces, bridges, cables and IFBs.

    Every device is made inside its namespace: the machine's own never sees one.
    """
    lab = layout.topology.name
    nodes = [*layout.topology.hosts, *layout.switches]
    lines = [f"netns add {names.namespace(lab, node)}" for node in nodes]
    for switch in layout.switches:
        # No spanning tree: it would hold every port back for 30 s; loops were refused before.
        lines.append(
            f"link add name {BRIDGE} netns {names.namespace(lab, switch)} type bridge "
            "stp_state 0 forward_delay 0 mcast_snooping 0"
        )
    for link in links:
        lines += device_lines(lab, link)
    return lines


def device_lines(lab: str, link: Link) -> list[str]:
    """Lines for `ip -batch` that make the devices of one link; the line makes its own."""
    lines = []
    if link.path != LINE:
        first, second = (
            f"name {end.device} address {end.mac} mtu {link.cable.spec.mtu_bytes} "
            f"netns {names.namespace(lab, end.node)}"
            for end in link.ends
        )
        lines.append(f"link add {first} type veth peer {second}")
    if link.cable.spec.ingress_bits_per_s:
        where = names.namespace(lab, link.cable.first.node)
        lines.append(f"link add name {link.ifb} netns {where} type ifb")
    return lines


def up_lines(layout: Layout, link: Link, end: End, guest: bool) -> list[str]:
    """Lines for `ip -batch` inside a namespace that take one end into use.

    guest: the device gets no address, because the guest behind it has it.
    """
    device, mtu = end.device, link.cable.spec.mtu_bytes
    # One segment at a time also from TCP of this kernel itself, which hands larger ones to queues
    # whatever the device says; see namespaces.without_offloads.
    lines = [f"link set dev {device} mtu {mtu} gso_max_segs 1"]
    if not layout.is_host(end.node):
        lines.append(f"link set dev {device} master {BRIDGE}")
    else:
        nic = next(nic for nic in layout.nics[end.node] if nic.device == device)
        if not guest:
            lines.append(f"address add {nic.address}/{nic.prefix_bits} brd + dev {device}")
    if _takes_in(link, end):
        lines.append(f"link set dev {link.ifb} up")
    return [*lines, f"link set dev {device} up"]


def route_lines(layout: Layout, host: str) -> list[str]:
    """Lines for `ip -batch` inside a host's namespace: its routes to other networks."""
    window = _initial_window(layout, host)
    return [f"route add {route.network} via {route.via}{window}" for route in layout.routes[host]]


def own_network_lines(layout: Layout, host: str) -> list[str]:
    """Lines for `ip -batch` inside a host's namespace: the initial window in its own networks.

    The kernel makes these routes with the addresses, and takes the window from a route alone.
    """
    window = _initial_window(layout, host)
    return [
        f"route replace {nic.network} dev {nic.device} proto kernel scope link src {nic.address}"
        f"{window}"
        for nic in layout.nics[host]
    ]


def _initial_window(layout: Layout, host: str) -> str:
    segments = layout.topology.hosts[host].tcp.initial_window_segments
    return "" if segments is None else f" initcwnd {segments}"


def shape_lines(link: Link, end: End) -> list[str]:
    """Lines for `tc -batch` inside the namespace of one end."""
    spec, leaving = link.cable.spec, link.leaving(end)
    mtu, queue, burst = spec.mtu_bytes, spec.queue_packets, spec.burst_bytes
    lines: list[str] = []
    if link.path == NETEM:
        lines += shaping.netem(
            end.device, leaving, mtu, queue, burst, with_loss=link.loses == NETEM
        )
    elif leaving.rate_bits_per_s:
        lines += shaping.rate(end.device, leaving.rate_bits_per_s, mtu, queue, burst)
    if spec.ingress_bits_per_s and _takes_in(link, end):
        lines += shaping.ingress(end.device, link.ifb, spec.ingress_bits_per_s, mtu, queue, burst)
    return lines


def reshape_lines(old: Link, new: Link, end: End) -> list[str]:
    """Lines for `tc -batch` that change one end in place; nothing for what stays."""
    before, after = shape_lines(old, end), shape_lines(new, end)
    if before == after:
        return []
    device, lines = end.device, list[str]()
    root = _root(before, device)
    if root and root != _root(after, device):
        # A root of another kind cannot replace this one; without it the default queue is back.
        lines.append(f"qdisc delete dev {device} root")
        before = [line for line in before if f"dev {device} " not in line or "ffff:" in line]
    had, has = (_takes_in(link, end) for link in (old, new))
    if had and not has:
        lines.append(f"qdisc delete dev {device} ingress")
    # What stands there already is left alone: to set a root again would empty its queue, and the
    # filter to the IFB would be there twice.
    return lines + [line for line in after if line not in before]


def _root(lines: list[str], device: str) -> str:
    """Kind of the root queue that the lines give a device; empty for the default one."""
    kinds = [line.split(" handle 1: ")[1].split()[0] for line in lines if f"{device} root" in line]
    return kinds[0] if kinds else ""


def _takes_in(link: Link, end: End) -> bool:
    """Returns whether what arrives at this end is shaped."""
    return bool(link.cable.spec.ingress_bits_per_s) and end == link.cable.first


def losses(links: Iterable[Link]) -> dict[str, dict[tuple[str, str], float]]:
    """Node -> (device, hook) -> part of the frames that the packet filter drops there."""
    losses_by_node: dict[str, dict[tuple[str, str], float]] = {}
    for link in links:
        if link.loses != FILTER:
            continue
        first, second = link.ends
        up, down = link.leaving(first).loss_ratio, link.leaving(second).loss_ratio
        if up:
            losses_by_node.setdefault(second.node, {})[second.device, "ingress"] = up
        if down and link.cable.spec.ingress_bits_per_s:
            losses_by_node.setdefault(second.node, {})[second.device, "egress"] = down
        elif down:
            losses_by_node.setdefault(first.node, {})[first.device, "ingress"] = down
    return losses_by_node


def iptables_losses(links: Iterable[Link]) -> dict[str, dict[str, float]]:
    """Host -> device -> part of the packets that iptables drops there."""
    losses: dict[str, dict[str, float]] = {}
    for link in links:
        for end, sender in (link.ends, link.ends[::-1]) if link.loses == IPTABLES else ():
            if ratio := link.leaving(sender).loss_ratio:
                losses.setdefault(end.node, {})[end.device] = ratio
    return losses


def made(link: Link) -> LinkImplementation:
    """Returns what a link was made of, for people and for the run's manifest."""
    spec = link.cable.spec
    up, down = spec.direction("up"), spec.direction("down")
    shaped = up.rate_bits_per_s or down.rate_bits_per_s
    rate = "HTB" if shaped else ""
    if spec.ingress_bits_per_s:
        rate = f"{rate} + IFB".removeprefix(" + ")
    conditions = f"up {_conditions(up)}, down {_conditions(down)}"
    words = [f"{_conditions(up) if up == down else conditions} over {link.path}"]
    words += [f"rate by {rate}"] if rate else []
    words += [f"loss by {link.loses}"] if link.loses and link.loses != link.path else []
    return LinkImplementation(
        link.cable.name,
        spec.between,
        link.path,
        rate or "none",
        link.loses or "none",
        ", ".join(words),
    )


def _conditions(side: Direction) -> str:
    words = []
    if side.rate_bits_per_s:
        words.append(units.format_value(side.rate_bits_per_s, "bits_per_s"))
    if side.delay_ns:
        text = units.format_value(side.delay_ns, "ns")
        jitter = units.format_value(side.jitter_ns, "ns")
        words.append(f"{text} ± {jitter}" if side.jitter_ns else text)
    if side.loss_ratio:
        words.append(f"{units.format_value(side.loss_ratio, 'ratio')} lost")
    if side.duplicate_ratio:
        words.append(f"{units.format_value(side.duplicate_ratio, 'ratio')} twice")
    return " ".join(words) or "as fast as it goes"


def line_paths(link: Link) -> list[Mapping[str, object]]:
    """The two paths of a delay line between the ends of a link, as its program reads them."""
    first, second = link.ends
    return [line_path(0, 1, link.leaving(first)), line_path(1, 0, link.leaving(second))]


def line_path(source: int, destination: int, side: Direction) -> Mapping[str, object]:
    """One path of a delay line. The rate is HTB's, before the line."""
    return {
        "from": source,
        "to": destination,
        **side.model_dump(),
        "rate_bits_per_s": None,
        "limit_packets": shaping.in_flight_packets(side),
    }
