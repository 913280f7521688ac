"""`nephoscope platforms`: boot time, memory per guest and density of each platform."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope import units
from nephoscope.commands import options, output
from nephoscope.commands.section_output import present
from nephoscope.errors import Interrupted
from nephoscope.limits import LAB_HOSTS

if TYPE_CHECKING:
    from nephoscope.platforms.records import PlatformReport

NAMES = ("bare", "container", "uml", "qemu")
LEAST_MEMORY_BYTES = 224 << 20
"""QEMU's own memory and the least of a guest."""


def _size(context: click.Context, option: click.Parameter, text: str) -> int:
    size = units.parse_bytes(text)
    if size < LEAST_MEMORY_BYTES:
        least = units.format_value(LEAST_MEMORY_BYTES, "bytes")
        raise click.BadParameter(f"{text} are too few for a guest; the minimum is {least}.")
    return size


@click.command()
@click.option(
    "--platform",
    "names",
    type=click.Choice(NAMES),
    multiple=True,
    help="Platform to measure [default: all]; may be repeated.",
)
@click.option(
    "--boots",
    type=click.IntRange(5, 1000),
    default=5,
    show_default=True,
    metavar="N",
    help="Number of boots of each platform, after a warm-up boot.",
)
@click.option(
    "--memory",
    "memory_bytes",
    default="256MiB",
    show_default=True,
    metavar="SIZE",
    callback=_size,
    help="Memory of a guest that has its own kernel.",
)
@click.option(
    "--max-guests",
    type=click.IntRange(1, LAB_HOSTS),
    default=8,
    show_default=True,
    metavar="N",
    help="Maximum number of guests that run at once.",
)
@click.option(
    "--rate",
    "rate_per_s",
    type=options.FiniteRange(70, 100_000),
    default=100.0,
    show_default=True,
    metavar="PER_S",
    help="Requests per second of each guest.",
)
@click.option("--no-density", is_flag=True, help="Measure boots and memory only.")
@options.SEED
@options.REPORT_FILE
@options.JSON
def platforms(
    names: Sequence[str],
    boots: int,
    memory_bytes: int,
    max_guests: int,
    rate_per_s: float,
    no_density: bool,
    seed: int | None,
    to: Path | None,
    as_json: bool,
) -> int:
    """Measure boot time, memory and density of platforms.

    Boots bare hosts, containers, User-Mode Linux and QEMU on this machine in random order, then
    adds guests until the p99 of one guest's requests doubles. Needs root. Removes everything that
    it creates, even if it is killed.

    \b
    nephoscope platforms --platform container --platform qemu -o platforms.html
    """
    from nephoscope.platforms.measure import Measurement, Settings
    from nephoscope.platforms.page import section
    from nephoscope.tasks import cancelled_by_signals

    settings = Settings(
        tuple(dict.fromkeys(names)) or NAMES,
        boots,
        memory_bytes,
        0 if no_density else max_guests,
        rate_per_s,
        secrets.randbits(32) if seed is None else seed,
    )

    async def measure() -> PlatformReport:
        with cancelled_by_signals():
            return await Measurement(settings, output.log).run()

    try:
        report = asyncio.run(measure())
    except asyncio.CancelledError:
        raise Interrupted("Interrupted; all guests were removed.") from None
    source = f"seed {settings.seed}"
    return present(report, section(report), as_json=as_json, to=to, source=source)
