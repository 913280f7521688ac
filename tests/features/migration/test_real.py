"""Real migrations of a QEMU guest: pause and total time against what is set; nothing is left."""

from __future__ import annotations

import asyncio
import os
import secrets

import pytest
from tests import hardware
from tests.attempts import attempt
from tests.hardware import Feature
from tests.tools import needs

from nephoscope.features.migration.measure import MigrationMeasurement, MigrationSettings
from nephoscope.features.migration.records import MigrationFigures, MigrationReport
from nephoscope.features.platforms import guests as labs
from nephoscope.measure.lab.migration import guests
from nephoscope.measure.lab.migration.guests import GuestSpec

pytestmark = [
    hardware.needs(Feature.ROOT, os.geteuid() == 0),
    needs("ip", "tc", "qemu-system-x86_64", "qemu-img", "mmdebstrap"),
    pytest.mark.slow,
    pytest.mark.alone,
]

MIB = 1 << 20
LINK_BITS_PER_S = 100e6
TOLERANCE = 0.2
"""Of a prediction, which knows nothing of devices and of pages that the kernel rewrites."""
TICK_NS = 30_000_000
"""What QEMU and the network take besides the memory: state of devices, announcement."""
SLOW, FAST = 1.0 * MIB, 100.0 * MIB


def measured(
    working_set_bytes: int, limit_ms: int, *rates: float, timeout_s: float = 60.0
) -> MigrationReport:
    """The report of a guest of 144 MiB; each rate is measured twice."""
    filled = 144 * MIB - guests.KERNEL_BYTES - working_set_bytes
    spec = GuestSpec(144 * MIB, working_set_bytes, filled, LINK_BITS_PER_S, limit_ms * 1_000_000)
    settings = MigrationSettings(spec, rates, 2, timeout_s, 1)
    prefix = f"mg{secrets.token_hex(3)}"
    report = asyncio.run(MigrationMeasurement(settings, print, prefix).run())
    assert labs.remains(prefix) == []
    return report


def near(value: float, expected: float) -> bool:
    """States whether a value is within the tolerance of what is expected."""
    return abs(value - expected) <= TOLERANCE * expected + TICK_NS


@pytest.fixture(autouse=True)
def lab() -> None:
    """Leaves these tests out where labs of guests cannot be."""
    if (lacking := guests.lacking()) is not None:
        hardware.lacking(Feature.LAB, str(lacking))


def judged(report: MigrationReport, one: MigrationFigures, pause_ns: float) -> tuple[str, bool]:
    """The figures of a rate at which all migrations completed, and whether they are as set."""
    assert one.total_ns is not None
    assert one.predicted_total_ns is not None
    assert one.pause_ns is not None
    assert one.predicted_pause_ns is not None
    assert one.gap_ns is not None
    assert one.lost is not None
    assert one.cancelled == 0
    pause, gap = one.pause_ns.value, one.gap_ns.value
    lost_ns = one.lost.value * report.heartbeat_interval_ns
    text = (
        f"total {one.total_ns.value / 1e9:.2f} s (closed form {one.predicted_total_ns / 1e9:.2f}), "
        f"pause {pause / 1e6:.0f} ms (set {pause_ns / 1e6:.0f}, sent "
        f"{one.predicted_pause_ns.value / 1e6:.0f}), gap {gap / 1e6:.0f}, lost {lost_ns / 1e6:.0f}"
    )
    return text, (
        near(one.total_ns.value, one.predicted_total_ns)
        and near(pause, pause_ns or one.predicted_pause_ns.value)
        and near(pause, one.predicted_pause_ns.value)
        and pause - 2 * report.heartbeat_interval_ns <= gap <= 1.2 * pause + 10 * TICK_NS
        and lost_ns <= gap
    )


def test_total_time_and_pause_are_those_of_the_memory_and_the_link() -> None:
    """4 MiB that are all dirty at every look: a pause of 4 MiB at the link's rate."""

    def measure() -> tuple[str, bool]:
        report = measured(4 * MIB, 420, 0.0, SLOW, FAST)
        planted_ns = 4 * MIB / report.bytes_per_s * 1e9
        none, slow, fast = report.figures
        outcomes = [
            judged(report, one, pause_ns)
            for one, pause_ns in ((none, 0.0), (slow, 0.0), (fast, planted_ns))
        ]
        return "; ".join(text for text, _ in outcomes), all(holds for _, holds in outcomes)

    attempt("migrations", measure)


def test_a_working_set_that_does_not_fit_the_pause_never_converges() -> None:
    report = measured(16 * MIB, 300, FAST, timeout_s=25.0)
    (one,) = report.figures
    assert (one.completed, one.cancelled) == (0, 2)
    assert one.predicted_total_ns is None
    assert one.dirty_ratio > 1
