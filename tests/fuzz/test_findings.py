"""Inputs that were defects once, each as a case of its boundary."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from .boundaries import BOUNDARIES
from .boundary import Boundary

FINDINGS = Path(__file__).with_name("findings")
BY_NAME = {boundary.name: boundary for boundary in BOUNDARIES}
CASES = {
    "watch definition": b'["a list"]',
    "events": b"time,service,observer,ok\n1685577600,web,a\x0d\x0b,1\xc4\x15,\x81\x1aT\n",
    "topology": b"version: 1\nname: a\nhosts: {a: , b: }\n"
    b"links: {l: {between: [a, b], rate: 1iB/s}}\n",
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_a_sentence(name: str) -> None:
    assert BY_NAME[name].attack(CASES[name]) is None


def test_samples_without_a_column_that_is_read_as_a_dictionary() -> None:
    boundary: Boundary = BY_NAME["samples of an ended run"]
    for seed in boundary.seeds():
        assert b"factors" in seed
        assert boundary.attack(seed.replace(b"factors", b"fact\x00rs")) is None


def test_an_entry_of_evidence_that_is_longer_than_the_archive() -> None:
    boundary: Boundary = BY_NAME["evidence"]
    for seed in boundary.seeds():
        with zipfile.ZipFile(io.BytesIO(seed)) as archive:
            last = max(archive.infolist(), key=lambda entry: entry.header_offset)
        # In the directory at the end: the sizes of the last file, which is made to pass the end.
        at = seed.rindex(b"PK\x01\x02") + 20
        assert struct.unpack_from("<I", seed, at)[0] == last.file_size
        size = struct.pack("<II", len(seed), len(seed))
        assert boundary.attack(seed[:at] + size + seed[at + 8 :]) is None


@pytest.mark.parametrize("case", sorted(FINDINGS.iterdir()), ids=lambda case: case.name)
def test_a_file_of_a_store_is_refused_in_a_sentence(case: Path) -> None:
    """At "trial-file" Arrow ended the process, as its footer states impossible sizes (26.0)."""
    name = case.name.rstrip("-0123456789").replace("-", " ")
    assert BY_NAME[name].attack(case.read_bytes()) is None
