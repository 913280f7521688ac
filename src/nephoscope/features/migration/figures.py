"""Figures of each dirty rate, with intervals over migrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nephoscope.core.model import Estimate
from nephoscope.features.migration import precopy
from nephoscope.features.migration.records import Migration, MigrationFigures
from nephoscope.stats.statistics.means import mean_of_skewed

Value = Callable[[Migration], float | None]


def figures(
    migrations: Sequence[Migration],
    *,
    bytes_per_s: float,
    working_set_bytes: int,
    downtime_limit_ns: int,
) -> tuple[MigrationFigures, ...]:
    """Returns the figures of each requested dirty rate, in ascending order."""
    rates = sorted({migration.requested_dirty_bytes_per_s for migration in migrations})

    def of_rate(rate: float) -> MigrationFigures:
        these = [
            migration for migration in migrations if migration.requested_dirty_bytes_per_s == rate
        ]
        done = [migration for migration in these if migration.pause_ns is not None]
        dirty = _mean(these, lambda migration: migration.dirty_bytes_per_s, "bytes_per_s")
        slowdown = _mean(these, lambda migration: migration.slowdown, "ratio")
        assert dirty is not None
        assert slowdown is not None
        predicted = precopy.predict(
            sum(migration.first_round_bytes for migration in these) / len(these),
            bytes_per_s,
            dirty.value,
            working_set_bytes,
            downtime_limit_ns / 1e9,
        )
        return MigrationFigures(
            rate,
            len(done),
            len(these) - len(done),
            dirty,
            predicted.ratio,
            _mean(done, lambda migration: migration.total_ns, "ns"),
            None if predicted.total_s is None else predicted.total_s * 1e9,
            _mean(done, lambda migration: migration.rounds, "count"),
            predicted.rounds,
            _mean(done, lambda migration: migration.downtime_ns, "ns"),
            _mean(done, lambda migration: migration.pause_ns, "ns"),
            _mean(done, lambda migration: migration.gap_ns, "ns"),
            _mean(done, lambda migration: _sent_ns(migration, bytes_per_s), "ns"),
            _mean(done, lambda migration: migration.lost, "count"),
            slowdown,
        )

    return tuple(map(of_rate, rates))


def _sent_ns(migration: Migration, bytes_per_s: float) -> float | None:
    return None if migration.paused_bytes is None else migration.paused_bytes / bytes_per_s * 1e9


def _mean(these: Sequence[Migration], value: Value, unit: str) -> Estimate | None:
    values = [number for migration in these if (number := value(migration)) is not None]
    return mean_of_skewed(values, unit=unit, least=0.0) if values else None
