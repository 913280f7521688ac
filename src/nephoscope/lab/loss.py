"""Loss by packet filter, for links that lose and do not delay, where the kernel has no netem.

nft drops at the device that receives, so that a lost packet has used the link. iptables knows no
devices of bridges, so it stands in only where one end of the link is a host.
"""

from __future__ import annotations

TABLE = "nephoscope"
_MILLION = 1_000_000
NO_IPTABLES = "*raw\nCOMMIT\n*mangle\nCOMMIT\n"
"""Script for `iptables-restore` that takes every loss away again."""


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


def iptables(device: str, incoming: float, outgoing: float) -> str:
    """Script for `iptables-restore` inside a host's namespace: losses at one device of it."""
    raw, mangle = ["*raw"], ["*mangle"]
    for table, chain, flag, ratio in (
        (raw, "PREROUTING", "-i", incoming),
        (mangle, "POSTROUTING", "-o", outgoing),
    ):
        if ratio:
            table.append(
                f"-A {chain} {flag} {device} -m statistic --mode random "
                f"--probability {ratio:.9f} -j DROP"
            )
        table.append("COMMIT")
    return "\n".join([*raw, *mangle]) + "\n"
