"""`nephoscope platforms`: boot time, memory per guest and density of each platform."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import Count, Parsed, flag, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.limits import LAB_HOSTS
from nephoscope.measure.lab.platform_table import TABLE

NAMES = tuple(TABLE)
LEAST_MEMORY_BYTES = 224 << 20
"""QEMU's own memory and the least of a guest."""


def _guest_memory(text: str) -> int:
    size = units.parse_bytes(text)
    if size < LEAST_MEMORY_BYTES:
        least = units.format_value(LEAST_MEMORY_BYTES, "bytes")
        raise UsageError(f"{text} is too little memory for a guest.", f"The minimum is {least}.")
    return size


@dataclass(frozen=True, slots=True)
class _PlatformsArguments:
    names: Sequence[str] = repeated(
        "--platform", click.Choice(NAMES), "Platform to measure [default: all]."
    )
    boots: int = option(
        "--boots",
        Count(5, 1000),
        "Number of boots of each platform, after a warm-up boot.",
        default=5,
    )
    memory_bytes: int = option(
        "--memory",
        Parsed("SIZE", _guest_memory),
        "Memory of a guest that has its own kernel.",
        default="256MiB",
    )
    max_guests: int = option(
        "--max-guests", Count(1, LAB_HOSTS), "Maximum number of guests that run at once.", default=8
    )
    rate_per_s: float = option(
        "--rate",
        options.FiniteRange(70, 100_000),
        "Requests per second of each guest.",
        default=100.0,
        metavar="PER_S",
    )
    no_density: bool = flag("--no-density", "Measure boots and memory only.")
    seed: int | None = options.SEED
    to: Path | None = options.REPORT_FILE
    as_json: bool = options.JSON


@command(
    prints=Document("platforms", ".features.platforms.records:PlatformReport"),
    requests=Excluded("creates labs and measures them"),
    examples=(
        "--no-density",
        "--platform container --platform qemu -o platforms.html",
    ),
)
def platforms(args: _PlatformsArguments) -> int:
    """Measure boot time, memory and density of platforms.

    Boots bare hosts, containers, User-Mode Linux and QEMU on this machine in random order, then
    adds guests until the p99 of one guest's requests doubles. Needs root. Removes everything that
    it creates, even if it is killed.
    """
    from nephoscope.core.tasks import run_until_signal
    from nephoscope.features.platforms.measure import PlatformMeasurement, PlatformSettings
    from nephoscope.features.platforms.section import section

    settings = PlatformSettings(
        tuple(dict.fromkeys(args.names)) or NAMES,
        args.boots,
        args.memory_bytes,
        0 if args.no_density else args.max_guests,
        args.rate_per_s,
        secrets.randbits(32) if args.seed is None else args.seed,
    )

    report = run_until_signal(
        PlatformMeasurement(settings, output.log).run(), "Interrupted; all guests were removed."
    )
    source = f"seed {settings.seed}"
    return present(report, section(report), as_json=args.as_json, to=args.to, source=source)
