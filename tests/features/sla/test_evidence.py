"""Evidence bundles: what they hold is verified, and every changed byte shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.features.sla.made import month, refused, run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def bundle(tmp_path: Path, capsys: Capture) -> Path:
    file = month(tmp_path / "e.csv", range(5), minutes=1500)
    words = ["evidence", "ec2-region", file, "-o", tmp_path / "b.zip", "--bill", "77.70"]
    document = run(capsys, *words, "--now", "2023-08-01T00:00:00Z", code=0)
    assert document["events"] == 1500
    return tmp_path / "b.zip"


def test_a_bundle_is_verified_with_its_head(bundle: Path, capsys: Capture) -> None:
    check = run(capsys, "verify", bundle, code=0)
    assert check["intact"]
    assert check["verdict"]["periods"][0]["credit"]["owed"] == "7.77"
    again = run(capsys, "verify", bundle, "--head", check["head"], code=0)
    assert again["intact"]
    other = run(capsys, "verify", bundle, "--head", "0" * 64, code=1)
    assert "this is another bundle" in other["problems"][0]


def test_the_same_content_gives_the_same_bundle(bundle: Path, capsys: Capture) -> None:
    first = bundle.read_bytes()
    words = ["evidence", "ec2-region", bundle.parent / "e.csv", "-o", bundle, "--bill", "77.70"]
    run(capsys, *words, "--now", "2023-08-01T00:00:00Z", code=0)
    assert bundle.read_bytes() == first


def test_every_changed_byte_shows(bundle: Path, capsys: Capture) -> None:
    from nephoscope.features.sla import evidence

    data = bundle.read_bytes()
    step = max(1, len(data) // 200)
    for at in [*range(0, len(data), step), len(data) - 1]:
        changed = bytearray(data)
        changed[at] ^= 0x01
        bundle.write_bytes(changed)
        check = evidence.verify(bundle)
        assert not check.intact, at
        assert check.problems
        assert check.verdict is None
    bundle.write_bytes(data[:-10])
    assert not evidence.verify(bundle).intact


def test_a_changed_event_names_its_place(bundle: Path, capsys: Capture) -> None:
    data = bundle.read_bytes()
    bundle.write_bytes(data.replace(b"1685577600,0", b"1685577600,1", 1))
    line = refused(capsys, "verify", bundle, code=1)
    assert "archive is damaged" in line or "was changed after byte 0" in line
    assert "cannot be read" in refused(capsys, "verify", bundle.parent / "none.zip")
    (bundle.parent / "x.zip").write_bytes(b"no archive")
    assert "The archive is damaged" in refused(capsys, "verify", bundle.parent / "x.zip", code=1)
