"""A server whose probe is killed ends with all its processes; the next trial removes its folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tools import needs

from nephoscope.catalog.adapters import ADAPTERS
from nephoscope.measure.targets.probe.tools import server_job, wrap


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory in which also other users may have folders: pytest's own are closed to them."""
    path = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="nephoscope-test-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def parents() -> dict[int, int]:
    """Process -> its parent, without those that have ended."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(folder.name)] = int(fields[1])
    return found


def descendants(pid: int) -> set[int]:
    """All processes below one that stays."""
    of, below = parents(), {pid}
    while more := {child for child, parent in of.items() if parent in below} - below:
        below |= more
    return below - {pid}


@pytest.mark.parametrize(
    ("benchmark", "params"),
    [
        pytest.param(benchmark, params, marks=needs(*programs))
        for benchmark, params, programs in (
            ("wrk", {}, ("nginx",)),
            ("redis-benchmark", {}, ("redis-server",)),
            ("db.pgbench", {}, ("postgres", "initdb")),
            ("http.apache", {}, ("apache2",)),
            ("http.nginx", {"failure": "hangs"}, ("nginx", "setpriv")),
            ("lb.haproxy", {"backends": ["127.0.0.1:9"]}, ("haproxy",)),
            ("lb.nginx", {"backends": ["127.0.0.1:9"]}, ("nginx",)),
        )
    ],
)
def test_a_killed_server_ends_and_its_folder_goes(
    probe: Path, scratch: Path, benchmark: str, params: dict[str, Any]
) -> None:
    environment = {**os.environ, "TMPDIR": str(scratch)}
    words = wrap(str(probe), server_job(ADAPTERS[benchmark], params), 60)
    with subprocess.Popen(
        [*words, "--server", "--control", "--bind", "127.0.0.1"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        serving.stdin.write(b"token " + b"5a" * 32 + b"\n")
        serving.stdin.flush()
        assert "ready" in json.loads(serving.stdout.readline())
        below = descendants(serving.pid)
        assert below
        serving.send_signal(signal.SIGKILL)
    (left,) = scratch.iterdir()
    until = time.monotonic() + 120
    while below & parents().keys() and time.monotonic() < until:
        time.sleep(0.02)
    assert not below & parents().keys()
    after = wrap(str(probe), {"program": "true"}, 20)
    subprocess.run(after, env=environment, check=True, capture_output=True)
    assert not left.exists()
    assert list(scratch.iterdir()) == []
