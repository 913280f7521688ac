"""Records of live migrations."""

from __future__ import annotations

from dataclasses import dataclass

from nephoscope.core.model import Estimate


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration. Times in ns, sizes in bytes, rates per second; None where it was cancelled.

    requested_dirty_bytes_per_s: writes to new pages that were asked for; dirty_bytes_per_s: those
    that the guest did while its memory was sent. downtime_ns: by QEMU's own account, to the
    millisecond. pause_ns: from the source's pause to the destination's start. gap_ns: longest time
    between two answers to heartbeats. paused_bytes: sent while the guest was paused. slowdown: rate
    of the guest's work before ÷ during the migration, the pause left out.
    """

    requested_dirty_bytes_per_s: float
    round: int
    dirty_bytes_per_s: float
    total_ns: int
    downtime_ns: int | None
    pause_ns: int | None
    gap_ns: int | None
    lost: int | None
    sent: int
    first_round_bytes: int
    paused_bytes: int | None
    rounds: int
    slowdown: float


@dataclass(frozen=True, slots=True)
class MigrationFigures:
    """Means over the migrations at one dirty rate that completed; None where none did.

    predicted_total_ns, predicted_rounds: of the closed form, from the measured dirty rate; None
    where it does not converge. predicted_pause_ns: memory that was sent while the guest was paused
    ÷ bandwidth. dirty_ratio: dirty rate ÷ bandwidth. lost: heartbeats of one migration.
    """

    requested_dirty_bytes_per_s: float
    completed: int
    cancelled: int
    dirty_bytes_per_s: Estimate
    dirty_ratio: float
    total_ns: Estimate | None
    predicted_total_ns: float | None
    rounds: Estimate | None
    predicted_rounds: int | None
    downtime_ns: Estimate | None
    pause_ns: Estimate | None
    gap_ns: Estimate | None
    predicted_pause_ns: Estimate | None
    lost: Estimate | None
    slowdown: Estimate


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """Migrations of a guest between two hosts of a lab.

    bytes_per_s: payload that the link carries. downtime_limit_ns: QEMU's bound of the pause.
    heartbeat_interval_ns: resolution of gaps.
    """

    accelerator: str
    memory_bytes: int
    working_set_bytes: int
    link_bits_per_s: float
    bytes_per_s: float
    downtime_limit_ns: int
    timeout_s: float
    heartbeat_interval_ns: int
    seed: int
    figures: tuple[MigrationFigures, ...]
    migrations: tuple[Migration, ...]
