"""Lines for `tc -batch`, and packet filters: rates, delays, losses.

Rates by HTB, delays by netem where the kernel has it, ingress by IFB. Filters are for links that
lose and do not delay, where the kernel has no netem: they drop where packets arrive, so that a lost
packet has used the link. Without nft, iptables stands in at hosts; at a switch it sees nothing, and
where packets leave it would tell the sender.
Pure text; nothing here acts on the machine. Source: tc-htb(8), tc-netem(8), tc-mirred(8).
"""

from __future__ import annotations

import math

from nephoscope.measure.lab.topology import Direction

FRAME_BYTES = 14
"""What HTB counts besides the packet: the Ethernet header, without preamble and checksum."""

_BURST_S = 0.002
"""A shaper that is woken late may catch up on so much. With less, a busy CPU costs rate; with more,
a short transfer would see the wire's speed instead of the link's."""

_QUEUE_S = 0.05
_PACKETS_PER_S = 100_000


def queue_packets(rate_bits_per_s: float, mtu_bytes: int, requested: int | None) -> int:
    """Full packets that wait before a shaper: as asked, else 50 ms at its rate, at least 20."""
    if requested is not None:
        return requested
    return max(20, math.ceil(rate_bits_per_s * _QUEUE_S / 8 / (mtu_bytes + FRAME_BYTES)))


def in_flight_packets(direction: Direction) -> int:
    """Packets that a delay has to hold: twice what can be under way, at least 1000."""
    seconds = (direction.delay_ns + direction.jitter_ns) / 1e9
    return max(1000, math.ceil(2 * seconds * _PACKETS_PER_S))


def rate(
    device: str, bits_per_s: float, mtu_bytes: int, queue: int | None, burst: int | None = None
) -> list[str]:
    """HTB at the root of a device: what leaves it keeps to the rate, headers of layer 2 included.

    burst: bytes that may pass at once; by default two frames or 2 ms, whichever is more.

    The queue is bounded in bytes: TCP hands several segments at once to a queue, and counted as
    one packet they would make it many times as long.
    """
    frame = mtu_bytes + FRAME_BYTES
    burst = burst or max(2 * frame, math.ceil(bits_per_s / 8 * _BURST_S))
    limit = queue_packets(bits_per_s, mtu_bytes, queue) * frame
    text = f"{round(bits_per_s)}bit"
    return [
        f"qdisc replace dev {device} root handle 1: htb default 1",
        f"class replace dev {device} parent 1: classid 1:1 htb rate {text} ceil {text} "
        f"burst {burst}b cburst {burst}b quantum {frame}",
        f"qdisc replace dev {device} parent 1:1 handle 10: bfifo limit {limit}",
    ]


def netem(
    device: str,
    direction: Direction,
    mtu_bytes: int,
    queue: int | None,
    burst: int | None = None,
    *,
    with_loss: bool,
) -> list[str]:
    """Delay, jitter, loss and duplication by netem; under HTB when the direction has a rate.

    with_loss: loss by netem too, instead of by a packet filter.
    """
    # netem alone takes the root; below HTB the class gives the rate and netem is its queue.
    words = [f"limit {in_flight_packets(direction)}"]
    if direction.delay_ns:
        words.append(f"delay {direction.delay_ns / 1000:.3f}us")
        words += [f"{direction.jitter_ns / 1000:.3f}us"] if direction.jitter_ns else []
    if with_loss and direction.loss_ratio:
        words.append(f"loss {direction.loss_ratio * 100:.6f}%")
    if direction.duplicate_ratio:
        words.append(f"duplicate {direction.duplicate_ratio * 100:.6f}%")
    text = " ".join(words)
    if direction.rate_bits_per_s is None:
        return [f"qdisc replace dev {device} root handle 1: netem {text}"]
    shaped = rate(device, direction.rate_bits_per_s, mtu_bytes, queue, burst)
    return [*shaped[:2], f"qdisc replace dev {device} parent 1:1 handle 10: netem {text}"]


def ingress(
    device: str,
    ifb: str,
    bits_per_s: float,
    mtu_bytes: int,
    queue: int | None,
    burst: int | None = None,
) -> list[str]:
    """Returns what arrives at a device goes through HTB on an IFB first.

    Everything is redirected, ARP too: `u32 match u32 0 0` is the filter that every kernel has.
    """
    return [
        f"qdisc add dev {device} handle ffff: ingress",
        f"filter add dev {device} parent ffff: protocol all prio 1 u32 match u32 0 0 "
        f"action mirred egress redirect dev {ifb}",
        *rate(ifb, bits_per_s, mtu_bytes, queue, burst),
    ]


TABLE = "nephoscope"
_MILLION = 1_000_000


def nft(losses: dict[tuple[str, str], float]) -> str:
    """Script for `nft -f -` inside one namespace: (device, hook) -> part of the frames lost.

    hook: ingress, or egress where ingress is shaped by an IFB (what comes out of one does not pass
    the ingress hook again). Replaces what was there; without losses the table is removed. Every
    frame has the same chance, ARP too, as on a wire.
    """
    lines = [f"table netdev {TABLE} {{}}", f"delete table netdev {TABLE}"]
    if losses:
        lines.append(f"table netdev {TABLE} {{")
        for number, ((device, hook), ratio) in enumerate(losses.items()):
            lines += [
                f"  chain c{number} {{",
                f'    type filter hook {hook} device "{device}" priority 0; policy accept;',
                f"    numgen random mod {_MILLION} < {round(ratio * _MILLION)} counter drop",
                "  }",
            ]
        lines.append("}")
    return "\n".join(lines) + "\n"


def iptables(losses: dict[str, float]) -> str:
    """Script for `iptables-restore` inside a host's namespace: device -> part that is lost."""
    rules = [
        f"-A PREROUTING -i {device} -m statistic --mode random --probability {ratio:.9f} -j DROP"
        for device, ratio in losses.items()
    ]
    return "\n".join(["*raw", *rules, "COMMIT"]) + "\n"
