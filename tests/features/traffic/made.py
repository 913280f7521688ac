"""Capture files of three packets, in every form."""

from __future__ import annotations

import ipaddress
import struct

TIMES = (1000.25, 1000.5, 1001.0)
SIZES = (1514, 60, 900)


def packet(to: str = "10.0.0.2", *, vlan: bool = False) -> bytes:
    """An Ethernet frame with an IP header, cut after it as `tcpdump -s` does."""
    address = ipaddress.ip_address(to)
    tag = struct.pack(">HH", 0x8100, 5) if vlan else b""
    if address.version == 4:
        kind, header = 0x0800, bytes(16) + address.packed
    else:
        kind, header = 0x86DD, bytes(24) + address.packed
    return bytes(12) + tag + struct.pack(">H", kind) + header


def pcap(order: str = "<", *, nanoseconds: bool = False, frames: int = 3) -> bytes:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    scale = 1e9 if nanoseconds else 1e6
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 96, 1)
    own = packet()
    return head + b"".join(
        struct.pack(f"{order}IIII", int(time), round(time % 1 * scale), len(own), size) + own
        for time, size in list(zip(TIMES, SIZES, strict=True))[:frames]
    )


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + length + body + length


def pcapng(order: str = "<", *, resolution: int | None = None, old: bool = False) -> bytes:
    section = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    options = b""
    if resolution is not None:
        options = struct.pack(f"{order}HHBxxx", 9, 1, resolution) + bytes(4)
    parts = [
        block(order, 0x0A0D0D0A, section),
        block(order, 1, struct.pack(f"{order}HHI", 1, 0, 96) + options),
        block(order, 0xBAD, b"unknown blocks are skipped"),
    ]
    unit = 1e6
    if resolution is not None:
        unit = 2.0 ** (resolution & 0x7F) if resolution & 0x80 else 10.0**resolution
    own = packet()
    for time, size in zip(TIMES, SIZES, strict=True):
        stamp = round(time * unit)
        ends = (stamp >> 32, stamp & 0xFFFFFFFF, len(own), size)
        head = struct.pack(f"{order}HHIIII", 0, 0, *ends) if old else None
        head = head or struct.pack(f"{order}IIIII", 0, *ends)
        parts.append(block(order, 2 if old else 6, head + own))
    return b"".join(parts)


def power_meter(before_s: float = 2, after_s: float = 38) -> str:
    """The trace of a power meter that measured 0.4 W, by the clock of the capture above."""
    count = round((TIMES[-1] - TIMES[0] + before_s + after_s) * 10)
    rows = [f"{TIMES[0] - before_s + at / 10:.2f},0.1,4" for at in range(count)]
    return "\n".join(["time_s,current_a,voltage_v", *rows]) + "\n"
