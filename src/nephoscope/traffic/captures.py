"""Packets of capture files: pcap (libpcap) and pcapng, read without trust in their lengths.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nephoscope.analysis.statistics.values import Array
from nephoscope.errors import UsageError
from nephoscope.reading import textfile

_PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
"""First bytes of a file -> byte order, seconds per unit of its fractions."""
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
_IPV4, _IPV6, _VLAN = 0x0800, 0x86DD, 0x8100

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Packets:
    """Packets in order of time. times_s: since the first one. sizes: bytes on the link."""

    times_s: Array
    sizes: Array
    notes: tuple[str, ...] = ()


def read(file: Path, to: Address | None = None) -> Packets:
    """Returns the packets of a capture. UsageError with the offset for whatever is damaged.

    to: only packets to this address. A file whose last record is cut off is read up to there, as of
    a capture that was interrupted, with a note.
    """
    capture = _Capture(file, textfile.large_bytes(file, "Capture headers only: tcpdump -s 96."), to)
    if capture.raw[:4] in _PCAP:
        capture.read_pcap()
    elif capture.raw[:4] == _PCAPNG:
        capture.read_pcapng()
    else:
        raise UsageError(
            f"{file} is no capture: its first bytes are those of neither pcap nor pcapng.",
            "Use a file of `tcpdump -w` or Wireshark.",
        )
    return capture.packets()


@dataclass
class _Capture:
    """The bytes of a capture, and the packets that were read so far. to: only to this address."""

    file: Path
    raw: bytes
    to: Address | None
    times: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    left_out: int = 0
    cut_at: int | None = None

    def packets(self) -> Packets:
        """Returns the packets in order of time."""
        if not self.times:
            wrong = f" ({self.left_out} go elsewhere)" if self.left_out else ""
            message = f"{self.file} has no packets{wrong}."
            raise UsageError(message, "Check the capture and its filter.")
        times, sizes = np.array(self.times), np.array(self.sizes, dtype=float)
        order = np.argsort(times, kind="stable")
        notes = []
        if (np.diff(times) < 0).any():
            notes.append("The packets were not in order of time and have been sorted.")
        if self.cut_at is not None:
            notes.append(f"The capture is cut off at byte {self.cut_at:,}; the rest is missing.")
        if self.left_out:
            notes.append(f"{self.left_out:,} packets to other addresses are left out.")
        return Packets(times[order] - times.min(), sizes[order], tuple(notes))

    def damaged(self, at: int, what: str) -> UsageError:
        """Returns the error for what is wrong at an offset."""
        return UsageError(f"{self.file}: damaged at byte {at:,}: {what}.", "Capture again.")

    def read_pcap(self) -> None:
        """Reads a file of libpcap."""
        raw, (order, resolution) = self.raw, _PCAP[self.raw[:4]]
        if len(raw) < 24:
            raise self.damaged(len(raw), "the header is incomplete")
        link = struct.unpack_from(f"{order}I", raw, 20)[0] & 0xFFFF
        record = struct.Struct(f"{order}IIII")
        at = 24
        while at < len(raw):
            if at + 16 > len(raw):
                self.cut_at = at
                return
            seconds, fraction, captured, size = record.unpack_from(raw, at)
            if captured > _MOST_BYTES or size > _MOST_BYTES:
                raise self.damaged(at, f"a packet of {max(captured, size):,} bytes")
            if fraction * resolution >= 1:
                raise self.damaged(at, "a fraction of a second that is a second or more")
            if at + 16 + captured > len(raw):
                self.cut_at = at
                return
            packet = raw[at + 16 : at + 16 + captured]
            self._add(seconds + fraction * resolution, size, packet, link)
            at += 16 + captured

    def read_pcapng(self) -> None:
        """Reads a file of the next generation, block by block."""
        raw, order, at = self.raw, "<", 0
        interfaces: list[tuple[int, float]] = []
        while at < len(raw):
            if raw[at : at + 4] == _PCAPNG:  # the same in both byte orders
                order, interfaces = self._order_of(at), []
            length = self._block_length(at, order)
            if length is None:
                self.cut_at = at
                return
            kind = struct.unpack_from(f"{order}I", raw, at)[0]
            body = raw[at + 8 : at + length - 4]
            if len(interfaces) > _MOST_INTERFACES:
                raise self.damaged(at, f"more than {_MOST_INTERFACES:,} interfaces")
            try:
                if kind == _INTERFACE:
                    interfaces.append(_interface(order, body))
                elif kind in (_ENHANCED, _OLD_PACKET):
                    self._add_block(order, body, kind, interfaces)
            except (struct.error, IndexError, OverflowError) as error:
                raise self.damaged(at, "a block without its contents") from error
            if kind == _SIMPLE:
                raise UsageError(
                    f"{self.file}: packets without times (simple packet blocks at byte {at:,}).",
                    "Capture with times, for example by tcpdump.",
                )
            at += length

    def _add(self, time: float, size: int, packet: bytes, link: int) -> None:
        if self.to is not None and not _goes_to(packet, link, self.to):
            self.left_out += 1
            return
        if len(self.times) >= _MOST_PACKETS:
            message = f"{self.file} has more than {_MOST_PACKETS:,} packets."
            raise UsageError(message, "Use a part of it.")
        self.times.append(time)
        self.sizes.append(size)

    def _add_block(
        self, order: str, body: bytes, kind: int, interfaces: list[tuple[int, float]]
    ) -> None:
        layout = "IIIII" if kind == _ENHANCED else "HHIIII"
        number, *_, high, low, captured, size = struct.unpack_from(f"{order}{layout}", body, 0)
        link, resolution = interfaces[number]
        if captured > len(body) - 20 or size > _MOST_BYTES:
            raise struct.error
        self._add(((high << 32) | low) * resolution, size, body[20 : 20 + captured], link)

    def _block_length(self, at: int, order: str) -> int | None:
        """Length of the block at an offset; None where the file ends within it."""
        if at + 12 > len(self.raw):
            return None
        length: int = struct.unpack_from(f"{order}I", self.raw, at + 4)[0]
        if length < 12 or length % 4 or length > _MOST_BYTES:
            raise self.damaged(at, f"a block of {length:,} bytes")
        if at + length > len(self.raw):
            return None
        if struct.unpack_from(f"{order}I", self.raw, at + length - 4)[0] != length:
            raise self.damaged(at, "a block whose two lengths differ")
        return length

    def _order_of(self, at: int) -> str:
        magic = self.raw[at + 8 : at + 12]
        if magic not in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"):
            raise self.damaged(at, "a section without byte order")
        return "<" if magic == b"\x4d\x3c\x2b\x1a" else ">"


def _interface(order: str, body: bytes) -> tuple[int, float]:
    """Link type of an interface, and seconds per unit of its times."""
    link = struct.unpack_from(f"{order}H", body, 0)[0]
    at, resolution = 8, 1e-6
    while at + 4 <= len(body):
        option, length = struct.unpack_from(f"{order}HH", body, at)
        if option == 0:
            break
        if option == _TIME_RESOLUTION and length == 1:
            value = body[at + 4]
            resolution = 2.0 ** -(value & 0x7F) if value & 0x80 else 10.0**-value
        at += 4 + (length + 3) // 4 * 4
    return link, resolution


def _goes_to(packet: bytes, link: int, to: Address) -> bool:
    """Returns whether a packet's IP destination is an address; not where too little of it was
    captured."""
    if link not in _LINK_HEADERS:
        return False
    at, header = _LINK_HEADERS[link]
    if at is None:
        protocol = {4: _IPV4, 6: _IPV6}.get(packet[0] >> 4 if packet else 0, 0)
    else:
        if len(packet) < header:
            return False
        protocol = int.from_bytes(packet[at : at + 2], "big")
        while protocol == _VLAN and len(packet) >= header + 4:
            protocol = int.from_bytes(packet[header + 2 : header + 4], "big")
            header += 4
    place = {_IPV4: (16, 4), _IPV6: (24, 16)}.get(protocol)
    if place is None:
        return False
    offset, length = place
    return packet[header + offset : header + offset + length] == to.packed


def address_of(text: str) -> Address:
    """Returns the address that a text names. UsageError for a text that is none."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        message = f"'{text[:60]}' is no IP address."
        raise UsageError(message, "Write 10.0.0.2 or 2001:db8::2.") from None
