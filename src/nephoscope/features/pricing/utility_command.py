"""`nephoscope utility`: which offer is best, and how sure is that?"""

from __future__ import annotations

from pathlib import Path

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.section_output import present


@click.command()
@click.argument("file", type=options.PATH)
@options.REPORT_FILE
@options.JSON
def utility(file: Path, to: Path | None, as_json: bool) -> int:
    """Choose among offers by their utility, with uncertainty.

    FILE is a YAML file with parameters and offers; docs/how-to/pricing.md describes it.
    """
    from nephoscope.core.errors import UsageError
    from nephoscope.core.reading import recordfile
    from nephoscope.features.pricing import text
    from nephoscope.features.pricing.offers import OfferFile
    from nephoscope.features.pricing.utility import analyse

    offers = recordfile.load(file, OfferFile, "list of offers")
    try:
        analysis = analyse(offers)
    except UsageError as error:
        raise UsageError(f"{file}: {error.message}", error.hint) from None
    page = text.utility_section(analysis)
    return present(analysis, page, as_json=as_json, to=to, source=str(file))
