"""What this box can carry, said before a run: a link that cannot be filled would be measured as
another link.

`warnings` works with a bound that any machine keeps; `carried` measures here.
"""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

from nephoscope import units
from nephoscope.lab import check
from nephoscope.lab.network.namespaces import within
from nephoscope.lab.topology import LinkSpec, Topology

CARRIED_BITS_PER_S = 1e9
"""Conservative: what one CPU moves through TCP, a shaper and a bridge without offloads, or through
a delay line. Measured on two shared cores of an AMD EPYC at 2.6 GHz: 1.5 Gbit/s by `carried`."""

_WARM_UP_S = 0.1


def asked_bits_per_s(link: LinkSpec) -> float:
    """The highest rate of a link's directions; 0 for a link without a rate."""
    sides = (link.direction("up"), link.direction("down"))
    rates = [side.rate_bits_per_s or 0.0 for side in sides]
    return max(*rates, link.ingress_bits_per_s or 0.0)


def warnings(topology: Topology) -> list[str]:
    """What may be beyond this box: single links, and all of them at once."""
    told = []
    rates = {name: asked_bits_per_s(link) for name, link in topology.links.items()}
    for name, rate in rates.items():
        if rate > CARRIED_BITS_PER_S:
            told.append(
                f"link {name} asks for {_text(rate)}, and one CPU carries about "
                f"{_text(CARRIED_BITS_PER_S)}; `nephoscope lab check FILE` measures it"
            )
    cpus = len(check.online_cpus())
    total = sum(rates.values())
    if total > CARRIED_BITS_PER_S * cpus and len(rates) > 1:
        told.append(
            f"all links at once ask for {_text(total)}, which needs about "
            f"{total / CARRIED_BITS_PER_S:.1f} CPUs of {cpus}"
        )
    return told


def _text(rate: float) -> str:
    return units.format_value(rate, "bits_per_s")


def carried(sender: Path, receiver: Path, address: str, seconds: float = 0.5) -> float:
    """TCP payload bits a second that arrive from one namespace in another, over 1 connection."""
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
