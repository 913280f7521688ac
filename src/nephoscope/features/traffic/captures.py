"""Packets of capture files: pcap (libpcap) and pcapng, read without trust in their lengths.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import textfile
from nephoscope.stats.statistics.values import Array

_PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
"""First bytes of a file -> byte order, units of its fractions in a second."""
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE, _OLD_PACKET, _SIMPLE, _ENHANCED = 1, 2, 3, 6
_TIME_RESOLUTION = 9

_MOST_PACKETS = 10_000_000
_MOST_BYTES = 16 << 20
"""Bytes of one record; longer ones are damage."""
_MOST_INTERFACES = 1000

_LINK_HEADERS: Mapping[int, tuple[int | None, int]] = {
    1: (12, 14),  # Ethernet
    113: (14, 16),  # Linux cooked
    276: (0, 20),
    **dict.fromkeys((0, 108), (None, 4)),  # loopback of BSD, after an address family
    **dict.fromkeys((12, 14, 101, 228, 229), (None, 0)),  # IP without a header before it
}
"""Link type -> offset of the protocol's number, None where the IP version tells it, and length of
the header (https://www.tcpdump.org/linktypes.html)."""
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLANS = (0x8100, 0x88A8)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets in order of time. times_s: since the first one. sizes: bytes on the link.

    start_s: time of the first one by the clock of the capture, in s since 1970; None without one.
    """

    times_s: Array
    sizes: Array
    notes: tuple[str, ...] = ()
    start_s: float | None = None


def read(file: Path, to: Address | None = None) -> Packets:
    """Returns the packets of a capture. UsageError with the offset for whatever is damaged.

    to: only packets to this address. A file whose last record is cut off is read up to there, as of
    a capture that was interrupted, with a note.
    """
    raw = textfile.large_bytes(file, "Capture headers only: tcpdump -s 96.")
    capture = _Capture(file, raw, to)
    if raw[:4] in _PCAP:
        capture.read_pcap()
    elif raw[:4] == _PCAPNG:
        capture.read_pcapng()
    else:
        raise UsageError(
            f"{file} is no capture: its first bytes are those of neither pcap nor pcapng.",
            "Use a file of `tcpdump -w` or Wireshark.",
        )
    return capture.packets()


@dataclass
class _Capture:
    """A capture file and the packets that were read so far. times: ns."""

    file: Path
    raw: bytes
    to: Address | None
    times: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    left_out: int = 0
    cut_at: int | None = None

    def packets(self) -> Packets:
        """Returns the packets. UsageError without any."""
        if not self.times:
            wrong = f" ({self.left_out} go elsewhere)" if self.left_out else ""
            message = f"{self.file} has no packets{wrong}."
            raise UsageError(message, "Check the capture and its filter.")
        # Differences of whole nanoseconds: seconds since 1970 as floats are 238 ns apart.
        first = min(self.times)
        times = np.array([time - first for time in self.times], dtype=float) / 1e9
        order = np.argsort(times, kind="stable")
        notes = []
        if (np.diff(times) < 0).any():
            notes.append("The packets were not in order of time and have been sorted.")
        if self.cut_at is not None:
            notes.append(f"The capture is cut off at byte {self.cut_at:,}; the rest is missing.")
        if self.left_out:
            notes.append(f"{self.left_out:,} packets to other addresses are left out.")
        sizes = np.array(self.sizes, dtype=float)[order]
        return Packets(times[order], sizes, tuple(notes), first / 1e9)

    def read_pcap(self) -> None:
        """Reads the records of a pcap file."""
        raw = self.raw
        order, per_s = _PCAP[raw[:4]]
        if len(raw) < 24:
            raise self._damaged(len(raw), "the header is incomplete")
        link = struct.unpack_from(f"{order}I", raw, 20)[0] & 0xFFFF
        record = struct.Struct(f"{order}IIII")
        at = 24
        while at < len(raw):
            if at + 16 > len(raw):
                self.cut_at = at
                return
            seconds, fraction, captured, size = record.unpack_from(raw, at)
            if captured > _MOST_BYTES or size > _MOST_BYTES:
                raise self._damaged(at, f"a packet of {max(captured, size):,} bytes")
            if fraction >= per_s:
                raise self._damaged(at, "a fraction of a second that is a second or more")
            if at + 16 + captured > len(raw):
                self.cut_at = at
                return
            time_ns = seconds * 10**9 + fraction * (10**9 // per_s)
            self._add(time_ns, size, link, raw, at + 16, captured)
            at += 16 + captured

    def read_pcapng(self) -> None:
        """Reads the blocks of a pcapng file."""
        raw, order, at = self.raw, "<", 0
        interfaces: list[tuple[int, int]] = []
        while at < len(raw):
            if raw[at : at + 4] == _PCAPNG:  # the same in both byte orders
                order, interfaces = _BYTE_ORDERS.get(raw[at + 8 : at + 12], ""), []
                if not order:
                    raise self._damaged(at, "a section without byte order")
            length = self._block_length(at, order)
            if length is None:
                self.cut_at = at
                return
            kind = struct.unpack_from(f"{order}I", raw, at)[0]
            body = raw[at + 8 : at + length - 4]
            if len(interfaces) > _MOST_INTERFACES:
                raise self._damaged(at, f"more than {_MOST_INTERFACES:,} interfaces")
            try:
                if kind == _INTERFACE:
                    interfaces.append(_interface(order, body))
                elif kind in (_ENHANCED, _OLD_PACKET):
                    self._add_block(order, body, kind, interfaces)
            except (struct.error, IndexError, OverflowError) as error:
                raise self._damaged(at, "a block without its contents") from error
            if kind == _SIMPLE:
                raise UsageError(
                    f"{self.file}: packets without times (simple packet blocks at byte {at:,}).",
                    "Capture with times, for example by tcpdump.",
                )
            at += length

    def _block_length(self, at: int, order: str) -> int | None:
        """Length of the block at an offset; None where the file ends within it."""
        if at + 12 > len(self.raw):
            return None
        length: int = struct.unpack_from(f"{order}I", self.raw, at + 4)[0]
        if length < 12 or length % 4 or length > _MOST_BYTES:
            raise self._damaged(at, f"a block of {length:,} bytes")
        if at + length > len(self.raw):
            return None
        if struct.unpack_from(f"{order}I", self.raw, at + length - 4)[0] != length:
            raise self._damaged(at, "a block whose two lengths differ")
        return length

    def _add_block(
        self, order: str, body: bytes, kind: int, interfaces: list[tuple[int, int]]
    ) -> None:
        if kind == _ENHANCED:
            number, high, low, captured, size = struct.unpack_from(f"{order}IIIII", body, 0)
        else:
            number, _, high, low, captured, size = struct.unpack_from(f"{order}HHIIII", body, 0)
        link, per_s = interfaces[number]
        if captured > len(body) - 20 or size > _MOST_BYTES:
            raise struct.error
        self._add(((high << 32) | low) * 10**9 // per_s, size, link, body, 20, captured)

    def _add(
        self, time_ns: int, size: int, link: int, raw: bytes, start: int, captured: int
    ) -> None:
        """Adds a packet if it goes to the address; its captured bytes begin at `start` of `raw`."""
        if self.to is not None and not _goes_to(self.file, raw, start, captured, link, self.to):
            self.left_out += 1
        elif len(self.times) >= _MOST_PACKETS:
            message = f"{self.file} has more than {_MOST_PACKETS:,} packets."
            raise UsageError(message, "Use a part of it.")
        else:
            self.times.append(time_ns)
            self.sizes.append(size)

    def _damaged(self, at: int, what: str) -> UsageError:
        return UsageError(f"{self.file}: damaged at byte {at:,}: {what}.", "Capture again.")


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


def _goes_to(file: Path, raw: bytes, start: int, captured: int, link: int, to: Address) -> bool:
    """Returns whether a packet's IP destination is an address; not where too little of it was
    captured."""
    if link not in _LINK_HEADERS:
        raise UsageError(
            f"{file}: the addresses of packets of link type {link} cannot be read.",
            "Omit --to, or capture where packets have Ethernet headers or none, such as with "
            "`tcpdump -i any`.",
        )
    packet: Any = memoryview(raw)[start : start + captured]
    at, header = _LINK_HEADERS[link]
    if at is None:
        version = packet[header] >> 4 if captured > header else 0
        protocol = {4: _IPV4, 6: _IPV6}.get(version, 0)
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
