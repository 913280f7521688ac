"""Migrations whose figures the test sets."""

from __future__ import annotations

from dataclasses import replace

from nephoscope.features.migration import figures
from nephoscope.features.migration.records import Migration, MigrationReport

MIB = 1 << 20
BYTES_PER_S = 10.0 * MIB
WORKING_SET_BYTES = 16 * MIB
LIMIT_NS = 300_000_000
TOTAL_NS, PAUSE_NS = 12_500_000_000, 200_000_000


def completed(rate: float, number: int, off: float = 0.0) -> Migration:
    """A migration of 100 MiB at a rate, with times that are off by a part."""
    return Migration(
        requested_dirty_bytes_per_s=rate,
        round=number,
        dirty_bytes_per_s=rate,
        total_ns=round(TOTAL_NS * (1 + off)),
        downtime_ns=round((PAUSE_NS - 20_000_000) * (1 + off)),
        pause_ns=round(PAUSE_NS * (1 + off)),
        gap_ns=round((PAUSE_NS + 10_000_000) * (1 + off)),
        lost=100,
        sent=6_000,
        first_round_bytes=100 * MIB,
        paused_bytes=2 * MIB,
        rounds=5,
        slowdown=1.25,
    )


def cancelled(rate: float, number: int) -> Migration:
    """A migration that did not end in time."""
    return replace(
        completed(rate, number),
        total_ns=60_000_000_000,
        downtime_ns=None,
        pause_ns=None,
        gap_ns=None,
        lost=None,
        paused_bytes=None,
    )


def report() -> MigrationReport:
    """Three migrations at 2 MiB/s, two at 100 MiB/s that were cancelled."""
    migrations = [completed(2.0 * MIB, at, off) for at, off in enumerate((-0.01, 0.0, 0.01), 1)]
    migrations += [cancelled(100.0 * MIB, at) for at in (1, 2)]
    return MigrationReport(
        accelerator="tcg",
        memory_bytes=160 * MIB,
        working_set_bytes=WORKING_SET_BYTES,
        link_bits_per_s=100e6,
        bytes_per_s=BYTES_PER_S,
        downtime_limit_ns=LIMIT_NS,
        timeout_s=60.0,
        heartbeat_interval_ns=2_000_000,
        seed=7,
        figures=figures.figures(
            migrations,
            bytes_per_s=BYTES_PER_S,
            working_set_bytes=WORKING_SET_BYTES,
            downtime_limit_ns=LIMIT_NS,
        ),
        migrations=tuple(migrations),
    )
