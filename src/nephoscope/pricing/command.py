"""`nephoscope tariff`: bills by size and throughput; `nephoscope utility`: the best offer."""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.commands import options
from nephoscope.commands.section_output import present
from nephoscope.errors import UsageError


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
    from nephoscope.pricing import tariff as analysis
    from nephoscope.pricing import text
    from nephoscope.store import Store

    bills = analysis.read(file, None if name is None else Store(store).open(name))
    page = text.tariff_section(bills)
    return present(bills, page, as_json=as_json, to=to, source=str(file))


@click.command()
@click.argument("file", type=options.PATH)
@options.REPORT_FILE
@options.JSON
def utility(file: Path, to: Path | None, as_json: bool) -> int:
    """Choose among offers by their utility, with uncertainty.

    FILE is a YAML file with parameters and offers; docs/how-to/pricing.md describes it.
    """
    from nephoscope.pricing import text
    from nephoscope.pricing.offers import OfferFile
    from nephoscope.pricing.utility import analyse
    from nephoscope.reading import recordfile

    offers = recordfile.load(file, OfferFile, "list of offers")
    try:
        analysis = analyse(offers)
    except UsageError as error:
        raise UsageError(f"{file}: {error.message}", error.hint) from None
    page = text.utility_section(analysis)
    return present(analysis, page, as_json=as_json, to=to, source=str(file))
