"""Loss by packet filter, for links that lose and do not delay, where the kernel has no netem.

It drops where packets arrive, so that a lost packet has used the link. Without nft, iptables stands
in at hosts; at a switch it sees nothing, and where packets leave it would tell the sender.
"""

from __future__ import annotations

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
