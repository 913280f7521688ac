"""`nephoscope cost tariff`: bills by size and throughput beside the flat tariff."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import argument
from nephoscope.cli.kit.section_output import present


@dataclass(frozen=True, slots=True)
class _TariffArguments:
    file: Path = argument(options.PATH)
    name: str | None = options.option(
        "--run", RUN, "Stored run of net.throughput whose targets have the names of the classes."
    )
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    prints=Document("tariff", ".features.pricing.tariff:TariffAnalysis"),
    requests=Query(),
    examples=(
        "tariff.yaml",
        "tariff.yaml -o tariff.html",
    ),
)
def tariff(args: _TariffArguments) -> int:
    """Price transfers by throughput, beside a flat tariff.

    FILE is a YAML file with tiers and client classes; docs/how-to/pricing.md describes it.
    """
    from nephoscope.features.pricing import section
    from nephoscope.features.pricing import tariff as analysis
    from nephoscope.store import Store

    bills = analysis.read(
        args.file, None if args.name is None else Store(args.store).open(args.name)
    )
    page = section.tariff_section(bills)
    return present(bills, page, as_json=args.as_json, to=args.to, source=str(args.file))
