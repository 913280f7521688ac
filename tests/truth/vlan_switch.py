"""A switch with VLANs, as a program for the namespace of its ports: kernels need not have one.

    python vlan_switch.py '{"floods": false, "ports": {"a": {"vlan": 10, "tagged": [20]}, ...}}'

vlan: that of frames without a tag. tagged: those whose tagged frames the port accepts and sends.
floods: whether every frame goes to every port of its VLAN, as a hub sends it.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
from dataclasses import dataclass, field

SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_AUXDATA = 263, 1, 8
"""Of linux/if_packet.h; Python has no names for them."""

PROMISCUOUS, OUTGOING, TAG_IS_VALID = 1, 4, 1 << 4
ALL_FRAMES, TAG = 3, b"\x81\x00"


@dataclass
class Port:
    name: str
    vlan: int
    tagged: list[int] = field(default_factory=list)
    socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
        self.socket.bind((self.name, ALL_FRAMES))
        self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        index = socket.if_nametoindex(self.name)
        membership = struct.pack("iHH8s", index, PROMISCUOUS, 0, b"")
        self.socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)

    def receive(self) -> tuple[int, bytes] | None:
        """VLAN, and frame without its tag; None for what it sent itself, or does not accept."""
        frame, ancillary, _, source = self.socket.recvmsg(9000, 64)
        if source[2] == OUTGOING:
            return None
        for _, kind, data in ancillary:
            status, tag = struct.unpack_from("I", data)[0], struct.unpack_from("H", data, 16)[0]
            # The kernel takes the tag out of the frame.
            if kind == PACKET_AUXDATA and status & TAG_IS_VALID:
                vlan = tag & 0xFFF
                return (vlan, frame) if vlan in self.tagged else None
        return self.vlan, frame

    def send(self, vlan: int, frame: bytes) -> None:
        if vlan == self.vlan:
            self.socket.send(frame)
        elif vlan in self.tagged:
            self.socket.send(frame[:12] + TAG + struct.pack(">H", vlan) + frame[12:])


def serve(ports: list[Port], *, floods: bool) -> None:
    places: dict[bytes, Port] = {}
    with selectors.DefaultSelector() as ready:
        for port in ports:
            ready.register(port.socket, selectors.EVENT_READ, port)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            for key, _ in ready.select():
                port = key.data
                if (received := port.receive()) is None:
                    continue
                vlan, frame = received
                places[frame[6:12]] = port
                place = None if floods else places.get(frame[:6])
                for other in ports if place is None else [place]:
                    if other is not port:
                        other.send(vlan, frame)


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    serve(
        [Port(name, **port) for name, port in settings["ports"].items()], floods=settings["floods"]
    )
