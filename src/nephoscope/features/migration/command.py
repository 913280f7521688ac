"""`nephoscope migration`: live migration of a guest by the rate at which its memory changes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import Count, Parsed, duration, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core import units
from nephoscope.core.errors import UsageError

if TYPE_CHECKING:
    from nephoscope.measure.lab.migration.guests import GuestSpec

_DIRTY_BYTES_PER_S = (0.0, 2.0 * (1 << 20), 6.0 * (1 << 20), 100.0 * (1 << 20))
_BANDWIDTH_BITS_PER_S = (1e6, 100e9)
_MOST_MEMORY_BYTES = 64 << 30


def _dirty_rate(text: str) -> float:
    return 0.0 if text.strip() == "0" else units.parse_bytes_per_s(text)


def _bandwidth(text: str) -> float:
    rate = units.parse_bits_per_s(text)
    low, high = _BANDWIDTH_BITS_PER_S
    if not low <= rate <= high:
        raise UsageError(
            f"{text} is not from {units.format_value(low, 'bits_per_s')} to "
            f"{units.format_value(high, 'bits_per_s')}.",
            "Use --bandwidth 100Mbit/s, for example.",
        )
    return rate


@dataclass(frozen=True, slots=True)
class _MigrationArguments:
    memory_bytes: int = option("--memory", options.SIZE, "Memory of the guest.", default="160MiB")
    working_set_bytes: int = option(
        "--working-set", options.SIZE, "Memory that its program rewrites.", default="16MiB"
    )
    dirty_rates: Sequence[float] = repeated(
        "--dirty-rate",
        Parsed("RATE", _dirty_rate),
        "Rate at which memory changes, e.g. 6MiB/s [default: 0, 2, 6 and 100 MiB/s].",
    )
    link_bits_per_s: float = option(
        "--bandwidth",
        Parsed("RATE", _bandwidth),
        "Rate of the link between the hosts.",
        default="100Mbit/s",
    )
    downtime_limit_ns: float = option(
        "--downtime-limit",
        duration("10 ms", "1 h", unit="ns"),
        "Pause that QEMU aims at.",
        default="300ms",
    )
    repetitions: int = option(
        "--repetitions", Count(1, 1000), "Number of migrations at each rate.", default=3
    )
    timeout_s: float = option(
        "--timeout",
        duration("1 s", "24 h"),
        "Time after which a migration is cancelled.",
        default="60s",
    )
    seed: int | None = options.SEED
    to: Path | None = options.REPORT_FILE
    as_json: bool = options.JSON


@command(
    prints=Document("migration", ".features.migration.records:MigrationReport"),
    requests=Excluded("creates labs and measures them"),
    examples=(
        "--dirty-rate 0 --dirty-rate 6MiB/s",
        "--bandwidth 1Gbit/s --downtime-limit 100ms -o migration.html",
    ),
)
def migration(args: _MigrationArguments) -> int:
    """Measure live migration of a virtual machine by dirty rate.

    Moves a QEMU guest between two emulated hosts: total time, pause, packets that it loses, and
    slowdown of its work, against the closed form of pre-copy. Needs root.
    """
    from nephoscope.core.tasks import run_until_signal
    from nephoscope.features.migration.measure import MigrationMeasurement, MigrationSettings
    from nephoscope.features.migration.section import section

    settings = MigrationSettings(
        _guest(args),
        tuple(dict.fromkeys(args.dirty_rates)) or _DIRTY_BYTES_PER_S,
        args.repetitions,
        args.timeout_s,
        secrets.randbits(32) if args.seed is None else args.seed,
    )
    report = run_until_signal(
        MigrationMeasurement(settings, output.log).run(), "Interrupted; the guest was removed."
    )
    source = f"seed {settings.seed}"
    return present(report, section(report), as_json=args.as_json, to=args.to, source=source)


def _guest(args: _MigrationArguments) -> GuestSpec:
    from nephoscope.measure.lab.migration.guests import KERNEL_BYTES, GuestSpec

    needed_bytes = KERNEL_BYTES + args.working_set_bytes
    if not needed_bytes <= args.memory_bytes <= _MOST_MEMORY_BYTES:
        size, least = (
            units.format_value(value, "bytes") for value in (args.memory_bytes, needed_bytes)
        )
        raise UsageError(
            f"--memory {size} is not from {least} (the guest's kernel and its working set) to "
            f"{units.format_value(_MOST_MEMORY_BYTES, 'bytes')}.",
            "Change --memory or --working-set.",
        )
    return GuestSpec(
        args.memory_bytes,
        args.working_set_bytes,
        args.memory_bytes - needed_bytes,
        args.link_bits_per_s,
        round(args.downtime_limit_ns),
    )
