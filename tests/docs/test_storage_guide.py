"""The commands of the guide to storage, on folders of this machine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import hardware
from tests.hardware import Feature
from tests.tools import located, needs

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "storage.md"
TEXT = GUIDE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ nephoscope (.*)$", TEXT, re.M)
FILES = dict(re.findall(r"^```yaml title=\"([^\"]+)\"\n(.*?)^```$", TEXT, re.M | re.S))
SMALL = {
    "[1, 1048576, 16777216, 1073741824]": "[1, 65536]",
    "[4096, 1048576, 16777216]": "[4096, 1048576]",
    "max: 12": "max: 6",
    # The environment of a probe has no state directory of the test.
    "--set name=photos": "--set name=photos --set ledger_directory=/mnt/ledger",
    "name: photos, ": "name: photos, ledger_directory: /mnt/ledger, ",
    # A folder stands for the bucket, and one start for the months.
    "service: s3, bucket: archive, objects: 1000": "directory: /mnt/archive, objects: 10",
    "--every 1d": "--every 1s --runs 1",
    "/usr/local/bin/page": "true",
    '"mail -s durability ops@example.org"': "cat",
}


@pytest.fixture
def disk() -> Iterator[Path]:
    """A directory on a disk: /tmp may lie in memory."""
    root = Path("/var/tmp") / f"nephoscope-test-{os.getpid()}-{time.time_ns()}"
    for name in ("nfs", "archive", "disk/plain", "disk/cipher", "disk/encrypted"):
        (root / name).mkdir(parents=True)
    yield root
    shutil.rmtree(root)


class Shell:
    """Types the guide's commands in a folder with its files."""

    def __init__(self, folder: Path, disk: Path) -> None:
        self.folder, self.disk = folder, disk
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "NEPHOSCOPE_STORE": str(folder / "store"),
        }
        for name, text in FILES.items():
            (folder / name).write_text(self._here(text), encoding="utf-8")

    def _here(self, text: str) -> str:
        for long, short in SMALL.items():
            text = text.replace(long, short)
        return text.replace("/mnt", str(self.disk))

    def type(self, command: str, *more: str) -> str:
        words = shlex.split(self._here(command), comments=True)
        done = subprocess.run(
            [sys.executable, "-m", "nephoscope", *words, *more],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def commands(*words: str) -> list[str]:
    """The guide's commands that have all these words; the only ones that do."""
    matches = [command for command in COMMANDS if all(word in command for word in words)]
    assert matches, words
    return matches


@pytest.mark.slow
@pytest.mark.usefixtures("probe")
def test_durability_is_checked_watched_and_removed(tmp_path: Path, disk: Path) -> None:
    shell = Shell(tmp_path, disk)
    check, removal = commands("bench storage.durability")
    shell.type(check)
    summary = " ".join(shell.type("show").split())
    assert "photos: 100 of 100 objects intact, 0 lost, 0 damaged, 0 unreachable" in summary
    shell.type(removal)
    assert list((disk / "archive").iterdir()) == []
    (watch,) = commands("watch photos.yaml")
    shell.type(watch)
    assert len([path for path in (disk / "archive").rglob("*") if path.name.isdecimal()]) == 10


@pytest.mark.slow
@hardware.needs(Feature.ROOT, os.geteuid() == 0)
@needs("ganesha.nfsd", "ip", "tc", "qemu-system-x86_64", "qemu-img", "mmdebstrap")
@pytest.mark.usefixtures("probe")
def test_a_guest_of_a_lab_measures_a_real_nfs_server(tmp_path: Path) -> None:
    shell = Shell(tmp_path, Path("/mnt"))
    up, down = commands("nas.yaml")[0], commands("lab down nas")[0]
    (bench,) = commands("bench storage.transfer", "lab:nas/client")
    shell.type(up)
    try:
        document = json.loads(shell.type(bench, "--json"))
    finally:
        shell.type(down)
    (trials,) = {
        line["estimate"]["n"]
        for line in document["metrics"]
        if line["metric"] == "transfer_bytes_per_s"
    }
    assert trials == 6


@pytest.mark.slow
@pytest.mark.alone
@needs("gocryptfs")
@pytest.mark.usefixtures("probe")
def test_encryption_at_rest_is_a_ratio_with_an_interval(tmp_path: Path, disk: Path) -> None:
    """An object of one byte is read by requests to another process: it is certainly slower.

    Synced writes wait for the disk, whose time is that of both directories.
    """
    shell = Shell(tmp_path, disk)
    password = tmp_path / "password"
    password.write_text("of the test\n")
    cipher, mount = disk / "disk/cipher", disk / "disk/encrypted"
    gocryptfs = (located("gocryptfs"), "-q", "-passfile", str(password))
    subprocess.run([*gocryptfs, "-init", "-scryptn", "10", str(cipher)], check=True)
    subprocess.run([*gocryptfs, str(cipher), str(mount)], check=True)
    try:
        (mount / "secret").write_text("plain words")
        stored = [path.read_bytes() for path in cipher.rglob("*") if path.is_file()]
        assert stored
        assert not any(b"plain words" in content for content in stored)
        (run,) = commands("run encrypted.yaml")
        document = json.loads(shell.type(run, "--json"))
    finally:
        subprocess.run(["fusermount", "-u", str(mount)], check=True)
    (read,) = _slowdowns(document, "transactions_per_s", mount, operation="read")
    assert read["low"] > 1
    sizes = _slowdowns(document, "transfer_bytes_per_s", mount)
    # Two sizes of writes, reads after writes, and reads by state of the cache.
    assert len(sizes) >= 6
    assert all(ratio["low"] <= ratio["value"] <= ratio["high"] for ratio in sizes)


def _slowdowns(document: Any, metric: str, directory: Path, **factors: str) -> list[dict[str, Any]]:
    """How much slower a metric is in a directory than in the baseline; intervals."""
    return [
        line["interference"]
        for line in document["experiment"]["comparisons"]
        if line["metric"] == metric
        and line["factors"]["directory"] == str(directory)
        and factors.items() <= line["factors"].items()
    ]
