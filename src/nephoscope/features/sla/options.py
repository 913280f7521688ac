"""Options and arguments that several commands of `nephoscope sla` have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit.named import Named
from nephoscope.cli.kit.options import PATH, argument, option, ratio

if TYPE_CHECKING:
    from nephoscope.features.sla.terms import TermsReading

UNITS = ("ns", "us", "ms", "s", "min", "h")

CONTRACT_NAME = Named("CONTRACT", "contract")
CONTRACT = argument(CONTRACT_NAME)
EVENTS = argument(PATH, nargs=-1, required=True, metavar="EVENTS...")
BILL = option("--bill", "AMOUNT", "Amount billed for each service and period, for the credit.")
NOW = option(
    "--now",
    "TIME",
    "Time of the verdict, ISO 8601, at which a rolling window ends [default: the clock's].",
)
UNIT = option(
    "--unit",
    click.Choice(UNITS),
    "Unit of the values that objectives of an OpenSLO file compare response times with.",
)
SLO = option("--slo", "NAME", "SLO to use of an OpenSLO file that has several.")
CONFIDENCE = option(
    "--confidence", ratio(0.5, 0.9999), "Confidence level of the intervals.", default="95%"
)


def terms_reading(unit: str | None, slo: str | None) -> TermsReading:
    """Returns what the options --unit and --slo state."""
    from nephoscope.features.sla.terms import TermsReading

    return TermsReading(unit=unit or "", slo=slo or "")
