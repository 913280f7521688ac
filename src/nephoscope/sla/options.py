"""Options and arguments that several commands of `nephoscope sla` have."""

from __future__ import annotations

import click

from nephoscope.commands.options import PATH, option, ratio

CONTRACT = click.argument("contract", metavar="CONTRACT")
EVENTS = click.argument("events", nargs=-1, required=True, type=PATH, metavar="EVENTS...")
BILL = option("--bill", "AMOUNT", "Amount billed for each service and period, for the credit.")
NOW = option("--now", "TIME", "Time of the verdict, ISO 8601 [default: the clock's].")
CONFIDENCE = option(
    "--confidence", ratio(0.5, 0.9999), "Confidence level of the intervals.", default="95%"
)
