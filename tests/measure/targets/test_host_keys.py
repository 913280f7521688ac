"""known_hosts files as OpenSSH writes them: the same questions, answered by ssh-keygen too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import asyncssh
import pytest
from tests.sshd import keygen
from tests.tools import needs

from nephoscope.core.errors import TargetError
from nephoscope.measure.targets.ssh.host_keys import fingerprint, load_host_keys

pytestmark = needs("ssh-keygen")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return keygen(tmp_path / "key").with_suffix(".pub")


def public(path: Path) -> str:
    return " ".join(path.read_text().split()[:2])


def trusted(file: Path, host: str, port: int | None = None) -> int:
    return len(load_host_keys([str(file)]).trusted(host, "10.9.8.7", port)[0])


def test_plain_hashed_and_pattern_entries_are_found(tmp_path: Path, key: Path) -> None:
    file = tmp_path / "known"
    file.write_text(
        f"# a comment\n\nweb,10.0.0.1 {public(key)}\n[web]:2222 {public(key)}\n"
        f"*.org,!bad.org {public(key)}\n"
    )
    asked = [("web", None), ("10.0.0.1", None), ("web", 2222), ("a.org", None), ("bad.org", None)]
    assert [trusted(file, *q) for q in asked] == [1, 1, 1, 1, 0]
    file.write_text(f"web {public(key)}\n[web]:2222 {public(key)}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "web" not in file.read_text()
    assert [trusted(file, *q) for q in [("web", None), ("web", 2222), ("wep", None)]] == [1, 1, 0]


def test_the_address_is_no_proof(tmp_path: Path, key: Path) -> None:
    """A name that resolves to a known host's address is still an unknown name."""
    file = tmp_path / "known"
    file.write_text(f"10.9.8.7 {public(key)}\n")
    assert trusted(file, "web") == 0


def test_lines_that_are_none_make_nobody_known(tmp_path: Path, key: Path) -> None:
    file = tmp_path / "known"
    file.write_text(f"web\nweb ssh-ed25519 nonsense\n\xff\nother {public(key)}\n")
    assert (trusted(file, "web"), trusted(file, "other")) == (0, 1)


def test_a_revocation_that_cannot_be_read_stops(tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text("@revokd * ssh-ed25519 AAAA\n")
    with pytest.raises(TargetError, match=r"known:1: Invalid known hosts marker"):
        load_host_keys([str(file)])


def test_no_file_knows_nobody(tmp_path: Path) -> None:
    assert trusted(tmp_path / "none", "web") == 0


def test_the_fingerprint_is_that_of_ssh_keygen(key: Path) -> None:
    told = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(key)], check=True, capture_output=True, text=True
    )
    assert fingerprint(asyncssh.read_public_key(str(key))).split()[1] == told.stdout.split()[1]
