"""Capture files made here, whole and damaged: packets, or one sentence with the offset."""

from __future__ import annotations

import gzip
import ipaddress
import random
import struct
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.features.traffic.made import SIZES, block, packet, pcap, pcapng

from nephoscope.core.errors import UsageError
from nephoscope.features.traffic import captures
from nephoscope.features.traffic.shape import bursts_of

TO = ipaddress.ip_address("10.0.0.2")


def read(folder: Path, raw: bytes, to: object = None) -> captures.Packets:
    file = folder / "capture"
    file.write_bytes(raw)
    return captures.read(file, to)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "raw",
    [
        pcap("<"),
        pcap(">"),
        pcap("<", nanoseconds=True),
        pcapng("<"),
        pcapng(">"),
        pcapng("<", resolution=9),
        pcapng("<", resolution=0x94),
        pcapng("<", old=True),
    ],
)
def test_every_form_gives_the_same_packets(tmp_path: Path, raw: bytes) -> None:
    found = read(tmp_path, raw)
    assert found.times_s == pytest.approx([0, 0.25, 0.75], abs=2e-6)
    assert tuple(found.sizes) == SIZES
    assert found.notes == ()


def test_packets_to_one_address(tmp_path: Path) -> None:
    frames = [packet(), packet("10.0.0.3"), packet("2001:db8::2"), packet(vlan=True), b"\x45"]
    raw = pcap(frames=0) + b"".join(
        struct.pack("<IIII", at, 0, len(one), 100 + at) + one for at, one in enumerate(frames)
    )
    assert tuple(read(tmp_path, raw, TO).sizes) == (100, 103)
    six = read(tmp_path, raw, ipaddress.ip_address("2001:db8::2"))
    assert tuple(six.sizes) == (102,)
    assert six.notes == ("4 packets to other addresses are left out.",)
    with pytest.raises(UsageError, match=r"no packets .5 go elsewhere"):
        read(tmp_path, raw, ipaddress.ip_address("192.0.2.1"))


def test_gaps_are_exact_to_a_nanosecond(tmp_path: Path) -> None:
    start_s = 1_700_000_000
    body = pcap("<", nanoseconds=True, frames=0) + b"".join(
        struct.pack("<IIII", start_s, at * 10_000_000 + late, 0, 60)
        for at, late in ((0, 0), (1, 0), (2, 0), (3, 0), (4, 1), (5, 1))
    )
    found = read(tmp_path, body)
    bursts = bursts_of(found.times_s, found.sizes, 0.010)
    assert [burst.packets for burst in bursts] == [4, 2]


def test_addresses_of_an_unknown_link_type_are_no_other_addresses(tmp_path: Path) -> None:
    raw = pcap()
    with pytest.raises(UsageError, match="packets of link type 147 cannot be read"):
        read(tmp_path, raw[:20] + struct.pack("<I", 147) + raw[24:], TO)


def test_a_capture_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    for whole in (pcap(), pcapng()):
        found = read(tmp_path, whole[:-5])
        assert found.times_s.size == 2
        assert "cut off at byte" in found.notes[0]


def test_packets_out_of_order_are_sorted(tmp_path: Path) -> None:
    body, own = pcap(frames=0), packet()
    for second in (5, 3, 4):
        body += struct.pack("<IIII", second, 0, len(own), second) + own
    found = read(tmp_path, body)
    assert tuple(found.sizes) == (3, 4, 5)
    assert "sorted" in found.notes[0]


LYING = struct.pack("<IIII", 1, 0, 0xFFFFFFF0, 60)
SECTION = pcapng()[:28]


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "is no capture"),
        (b"\xd4\xc3", "is no capture"),
        (b"GET / HTTP/1.1", "is no capture"),
        (gzip.compress(pcap() + bytes(1 << 24)), "is no capture"),
        (pcap()[:10], "damaged at byte 10: the header is incomplete"),
        (pcap(frames=0), "has no packets"),
        (pcap(frames=0) + LYING, "damaged at byte 24: a packet of 4,294,967,280 bytes"),
        (
            pcap(frames=0) + struct.pack("<IIII", 1, 2_000_000, 0, 60),
            "a fraction of a second that is a second or more",
        ),
        (SECTION[:8] + b"????" + SECTION[12:], "without byte order"),
        (SECTION + struct.pack("<III", 6, 13, 13), "a block of 13 bytes"),
        (SECTION + struct.pack("<III", 6, 0, 0), "a block of 0 bytes"),
        (SECTION + struct.pack("<III", 6, 12, 16), "two lengths differ"),
        (SECTION + block("<", 6, b""), "a block without its contents"),
        (SECTION + block("<", 6, struct.pack("<IIIII", 7, 0, 0, 0, 60)), "without its contents"),
        (SECTION + block("<", 3, bytes(4)), "packets without times"),
    ],
)
def test_damage_is_one_sentence(tmp_path: Path, raw: bytes, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read(tmp_path, raw)


def test_any_damaged_byte_ends_in_packets_or_one_sentence(tmp_path: Path) -> None:
    rng = random.Random(7)
    for whole in (pcap(), pcap(">"), pcapng(), pcapng(">", resolution=9)):
        for _ in range(100):
            raw = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                raw[rng.randrange(len(raw))] = rng.randrange(256)
            with suppress(UsageError):  # anything else is a traceback
                found = read(tmp_path, bytes(raw[: rng.randint(4, len(raw))]), TO)
                assert np.isfinite(found.times_s).all()
                assert (np.diff(found.times_s) >= 0).all()
