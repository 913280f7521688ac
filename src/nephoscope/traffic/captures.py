"""Packets of capture files: pcap (libpcap) and pcapng, read without trust in their lengths.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nephoscope.analysis.statistics.values import Array
from nephoscope.errors import UsageError
from nephoscope.reading import textfile

_PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
"""First bytes of a file -> byte order, units of its fractions in a second."""
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_INTERFACE, _OLD_PACKET, _SIMPLE, _ENHANCED = 1, 2, 3, 6
_TIME_RESOLUTION = 9

_MOST_PACKETS = 10_000_000
_MOST_BYTES = 16 << 20
"""Bytes of one record; longer ones are damage."""
_MOST_INTERFACES = 1000

_LINK_HEADERS = {1: (12, 14), 113: (14, 16), 276: (0, 20), 12: (None, 0), 101: (None, 0)}
"""Link type -> offset of the protocol's number, length of the header (Ethernet, Linux cooked,
raw IP)."""
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLANS = (0x8100, 0x88A8)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets in order of time. times_s: since the first one. sizes: bytes on the link."""

    times_s: Array
    sizes: Array
    notes: tuple[str, ...] = ()


@dataclass
class _Found:
    """Packets that were read so far. times: ns."""

    times: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    left_out: int = 0
    cut_at: int | None = None


def read(file: Path, to: Address | None = None) -> Packets:
    """Returns the packets of a capture. UsageError with the offset for whatever is damaged.

    to: only packets to this address. A file whose last record is cut off is read up to there, as of
    a capture that was interrupted, with a note.
    """
    raw = textfile.large_bytes(file, "Capture headers only: tcpdump -s 96.")
    packets = _Found()
    if raw[:4] in _PCAP:
        _read_pcap(file, raw, packets, to)
    elif raw[:4] == _PCAPNG:
        _read_pcapng(file, raw, packets, to)
    else:
        raise UsageError(
            f"{file} is no capture: its first bytes are those of neither pcap nor pcapng.",
            "Use a file of `tcpdump -w` or Wireshark.",
        )
    return _packets(file, packets)


def _packets(file: Path, packets: _Found) -> Packets:
    if not packets.times:
        wrong = f" ({packets.left_out} go elsewhere)" if packets.left_out else ""
        raise UsageError(f"{file} has no packets{wrong}.", "Check the capture and its filter.")
    # Differences of whole nanoseconds: seconds since 1970 as floats are 238 ns apart.
    first = min(packets.times)
    times = np.array([time - first for time in packets.times], dtype=float) / 1e9
    sizes = np.array(packets.sizes, dtype=float)
    order = np.argsort(times, kind="stable")
    notes = []
    if (np.diff(times) < 0).any():
        notes.append("The packets were not in order of time and have been sorted.")
    if packets.cut_at is not None:
        notes.append(f"The capture is cut off at byte {packets.cut_at:,}; the rest is missing.")
    if packets.left_out:
        notes.append(f"{packets.left_out:,} packets to other addresses are left out.")
    return Packets(times[order], sizes[order], tuple(notes))


def _add(file: Path, packets: _Found, time_ns: int, size: int, wanted: bool) -> None:
    if not wanted:
        packets.left_out += 1
        return
    if len(packets.times) >= _MOST_PACKETS:
        raise UsageError(f"{file} has more than {_MOST_PACKETS:,} packets.", "Use a part of it.")
    packets.times.append(time_ns)
    packets.sizes.append(size)


def _damaged(file: Path, at: int, what: str) -> UsageError:
    return UsageError(f"{file}: damaged at byte {at:,}: {what}.", "Capture again.")


def _read_pcap(file: Path, raw: bytes, packets: _Found, to: Address | None) -> None:
    order, per_s = _PCAP[raw[:4]]
    if len(raw) < 24:
        raise _damaged(file, len(raw), "the header is incomplete")
    link = struct.unpack_from(f"{order}I", raw, 20)[0] & 0xFFFF
    record = struct.Struct(f"{order}IIII")
    at = 24
    while at < len(raw):
        if at + 16 > len(raw):
            packets.cut_at = at
            return
        seconds, fraction, captured, size = record.unpack_from(raw, at)
        if captured > _MOST_BYTES or size > _MOST_BYTES:
            raise _damaged(file, at, f"a packet of {max(captured, size):,} bytes")
        if fraction >= per_s:
            raise _damaged(file, at, "a fraction of a second that is a second or more")
        if at + 16 + captured > len(raw):
            packets.cut_at = at
            return
        wanted = to is None or _goes_to(file, raw, at + 16, captured, link, to)
        _add(file, packets, seconds * 10**9 + fraction * (10**9 // per_s), size, wanted)
        at += 16 + captured


def _read_pcapng(file: Path, raw: bytes, packets: _Found, to: Address | None) -> None:
    order = "<"
    interfaces: list[tuple[int, int]] = []
    at = 0
    while at < len(raw):
        if raw[at : at + 4] == _PCAPNG:  # the same in both byte orders
            order, interfaces = _order_of(file, raw, at), []
        length = _block_length(file, raw, at, order)
        if length is None:
            packets.cut_at = at
            return
        kind = struct.unpack_from(f"{order}I", raw, at)[0]
        body = raw[at + 8 : at + length - 4]
        if len(interfaces) > _MOST_INTERFACES:
            raise _damaged(file, at, f"more than {_MOST_INTERFACES:,} interfaces")
        try:
            if kind == _INTERFACE:
                interfaces.append(_interface(order, body))
            elif kind in (_ENHANCED, _OLD_PACKET):
                _add_block(file, packets, order, body, kind, interfaces, to)
        except (struct.error, IndexError, OverflowError) as error:
            raise _damaged(file, at, "a block without its contents") from error
        if kind == _SIMPLE:
            raise UsageError(
                f"{file}: packets without times (simple packet blocks at byte {at:,}).",
                "Capture with times, for example by tcpdump.",
            )
        at += length


def _block_length(file: Path, raw: bytes, at: int, order: str) -> int | None:
    """Length of the block at an offset; None where the file ends within it."""
    if at + 12 > len(raw):
        return None
    length: int = struct.unpack_from(f"{order}I", raw, at + 4)[0]
    if length < 12 or length % 4 or length > _MOST_BYTES:
        raise _damaged(file, at, f"a block of {length:,} bytes")
    if at + length > len(raw):
        return None
    if struct.unpack_from(f"{order}I", raw, at + length - 4)[0] != length:
        raise _damaged(file, at, "a block whose two lengths differ")
    return length


def _order_of(file: Path, raw: bytes, at: int) -> str:
    magic = raw[at + 8 : at + 12]
    if magic not in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"):
        raise _damaged(file, at, "a section without byte order")
    return "<" if magic == b"\x4d\x3c\x2b\x1a" else ">"


def _interface(order: str, body: bytes) -> tuple[int, int]:
    """Link type of an interface, and units of its times in a second."""
    link = struct.unpack_from(f"{order}H", body, 0)[0]
    at, per_s = 8, 10**6
    while at + 4 <= len(body):
        option, length = struct.unpack_from(f"{order}HH", body, at)
        if option == 0:
            break
        if option == _TIME_RESOLUTION and length == 1:
            value = body[at + 4]
            per_s = 2 ** (value & 0x7F) if value & 0x80 else 10**value
        at += 4 + (length + 3) // 4 * 4
    return link, per_s


def _add_block(
    file: Path,
    packets: _Found,
    order: str,
    body: bytes,
    kind: int,
    interfaces: list[tuple[int, int]],
    to: Address | None,
) -> None:
    if kind == _ENHANCED:
        number, high, low, captured, size = struct.unpack_from(f"{order}IIIII", body, 0)
    else:
        number, _, high, low, captured, size = struct.unpack_from(f"{order}HHIIII", body, 0)
    link, per_s = interfaces[number]
    if captured > len(body) - 20 or size > _MOST_BYTES:
        raise struct.error
    wanted = to is None or _goes_to(file, body, 20, captured, link, to)
    _add(file, packets, ((high << 32) | low) * 10**9 // per_s, size, wanted)


def _goes_to(file: Path, raw: bytes, start: int, captured: int, link: int, to: Address) -> bool:
    """Returns whether a packet's IP destination is an address; not where too little of it was
    captured."""
    if link not in _LINK_HEADERS:
        raise UsageError(
            f"{file}: the addresses of packets of link type {link} cannot be read.",
            "Omit --to, or capture on an Ethernet interface or with `tcpdump -i any`.",
        )
    packet: Any = memoryview(raw)[start : start + captured]
    at, header = _LINK_HEADERS[link]
    if at is None:
        protocol = {4: _IPV4, 6: _IPV6}.get(packet[0] >> 4 if captured else 0, 0)
    else:
        if captured < header:
            return False
        protocol = int.from_bytes(packet[at : at + 2], "big")
        while protocol in _VLANS and captured >= header + 4:
            protocol = int.from_bytes(packet[header + 2 : header + 4], "big")
            header += 4
    place = {_IPV4: (16, 4), _IPV6: (24, 16)}.get(protocol)
    if place is None:
        return False
    offset, length = place
    return bytes(packet[header + offset : header + offset + length]) == to.packed


def address_of(text: str) -> Address:
    """Returns the address that a text names. UsageError for a text that is none."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        message = f"'{text[:60]}' is no IP address."
        raise UsageError(message, "Write 10.0.0.2 or 2001:db8::2.") from None
