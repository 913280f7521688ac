"""`nephoscope tariff`: bills by size and throughput beside the flat tariff."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.section_output import present


@click.command()
@click.argument("file", type=options.PATH)
@options.option(
    "--run name", "RUN", "Stored run of net.throughput whose targets have the names of the classes."
)
@options.REPORT_FILE
@options.STORE
@options.JSON
def tariff(file: Path, name: str | None, to: Path | None, store: Path | None, as_json: bool) -> int:
    """Price transfers by throughput, beside a flat tariff.

    FILE is a YAML file with tiers and client classes; docs/how-to/pricing.md describes it.
    """
    from nephoscope.features.pricing import tariff as analysis
    from nephoscope.features.pricing import text
    from nephoscope.store import Store

    bills = analysis.read(file, None if name is None else Store(store).open(name))
    page = text.tariff_section(bills)
    return present(bills, page, as_json=as_json, to=to, source=str(file))
