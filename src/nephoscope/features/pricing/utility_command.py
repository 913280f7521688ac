"""`nephoscope cost utility`: which offer is best, and how sure is that?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.options import argument
from nephoscope.cli.kit.section_output import present


@dataclass(frozen=True, slots=True)
class _UtilityArguments:
    file: Path = argument(options.PATH)
    to: Path | None = options.REPORT_FILE
    as_json: bool = options.JSON


@command(
    prints=Document("utility", ".features.pricing.utility:UtilityAnalysis"),
    requests=Query(),
    examples=(
        "offers.yaml",
        "offers.yaml -o offers.html",
    ),
)
def utility(args: _UtilityArguments) -> int:
    """Choose among offers by their utility, with uncertainty.

    FILE is a YAML file with parameters and offers; docs/how-to/pricing.md describes it.
    """
    from nephoscope.core.errors import UsageError
    from nephoscope.core.reading import recordfile
    from nephoscope.features.pricing import section
    from nephoscope.features.pricing.offers import OfferFile
    from nephoscope.features.pricing.utility import analyse

    offers = recordfile.load(args.file, OfferFile, "list of offers")
    try:
        analysis = analyse(offers)
    except UsageError as error:
        raise UsageError(f"{args.file}: {error.message}", error.hint) from None
    page = section.utility_section(analysis)
    return present(analysis, page, as_json=args.as_json, to=args.to, source=str(args.file))
