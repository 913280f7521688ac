"""Platforms of this machine: bare hosts and containers, which take seconds, and nothing is left."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from tests import hardware
from tests.hardware import Feature
from tests.tools import needs

from nephoscope.features.platforms import guests
from nephoscope.features.platforms.measure import PlatformMeasurement, PlatformSettings
from nephoscope.measure.lab.platforms import PLATFORMS

pytestmark = [
    hardware.needs(Feature.ROOT, os.geteuid() == 0),
    needs("ip", "tc", "runc", "mmdebstrap"),
    pytest.mark.slow,
    pytest.mark.alone,
]

LIMIT_S = 120.0
SETTINGS = PlatformSettings(("bare", "container"), 5, 256 << 20, 2, 100.0, 1)


@pytest.fixture
def prefix() -> str:
    """The beginning of the names of this test's labs."""
    for name in SETTINGS.platforms:
        if (lacking := PLATFORMS[name].lacking()) is not None:
            hardware.lacking(Feature.LAB, str(lacking))
    return f"pf{secrets.token_hex(3)}"


def test_bare_hosts_and_containers_are_measured_and_removed(prefix: str) -> None:
    said: list[str] = []
    report = asyncio.run(PlatformMeasurement(SETTINGS, said.append, prefix).run())
    bare, container = report.platforms
    assert bare.marks["reachable"].n == container.marks["reachable"].n == 5
    assert set(bare.segments) == {"reachable"}
    assert set(container.segments) - {"output"} == {"userland", "reachable"}
    for one in report.platforms:
        whole = one.marks["reachable"]
        assert whole.low is not None
        assert whole.high is not None
        assert 0 <= whole.low <= whole.value <= whole.high < LIMIT_S * 1e9
        assert sum(part.value for part in one.segments.values()) == pytest.approx(whole.value)
    assert bare.memory is None
    assert container.memory is not None
    assert container.memory.value > 256 << 10
    for density in report.densities:
        (step,) = density.steps
        assert (step.guests, density.guests is not None) == (2, step.p99_ratio is not None)
        assert step.completed_per_s.value > 0
        assert density.memory is not None
    assert any("left" in line for line in said)
    assert guests.remains(prefix) == []


def test_everything_is_removed_after_a_kill(prefix: str) -> None:
    text = (
        "import asyncio, sys; "
        "from nephoscope.features.platforms import measure; "
        "asyncio.run(measure.PlatformMeasurement("
        "measure.PlatformSettings(('container',), 1000, 1 << 28, 0, 100.0, 1), print, sys.argv[1]"
        ").run())"
    )
    child = subprocess.Popen([sys.executable, "-c", text, prefix], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: bool(guests.remains(prefix)))
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    # A lab that was being made may appear once more before its maker's programs have ended.
    wait_for(lambda: not guests.remains(prefix))
    time.sleep(1.0)
    wait_for(lambda: not guests.remains(prefix))


def wait_for(holds: Callable[[], bool]) -> None:
    """Waits until a condition holds; fails after a generous limit."""
    until = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
