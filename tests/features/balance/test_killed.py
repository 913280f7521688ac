"""HAProxy is killed while it is measured: its trials fail in a sentence, the others stay."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests import sshd
from tests.e2e.conftest import PROGRAM
from tests.tools import needs

from nephoscope.store import Store

pytestmark = [
    pytest.mark.slow, pytest.mark.usefixtures("root_only"), needs("haproxy", "ip", "tc"),
]  # fmt: skip

PATIENCE_S = 240.0


def _loads(pid: int) -> bool:
    """Whether a load runs below a process."""
    found = False
    for child in sshd.descendants(pid):
        with suppress(OSError):
            found |= b"http.load" in Path(f"/proc/{child}/cmdline").read_bytes()
    return found


def test_a_killed_balancer_fails_its_trial_in_a_sentence(tmp_path: Path) -> None:
    words = ["balance", "--balancer", "haproxy", "-c", "4", "--rounds", "2", "-d", "12s"]
    with subprocess.Popen(
        [*PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"},
    ) as process:  # fmt: skip
        try:
            until_s = time.monotonic() + PATIENCE_S
            # Other trials have no balancer.
            while not (sshd.descendants(process.pid, named="haproxy") and _loads(process.pid)):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until_s
                time.sleep(0.01)
            time.sleep(0.2)  # in the middle of its trial, of two seconds
            for pid in sshd.descendants(process.pid, named="haproxy"):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            out, err = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert "Traceback" not in out + err
    assert "defect" not in out + err
    (run,) = Store().runs()
    records = run.records()
    failed = [record for record in records if record.status != "valid"]
    assert failed
    assert all(record.reasons for record in failed)
    assert any(record.status == "valid" for record in records)
    assert "haproxy" in err.lower() + out.lower()
