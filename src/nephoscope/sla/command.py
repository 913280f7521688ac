"""`nephoscope sla`: is a service level agreement kept, what is owed, and how is it proved?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.commands import options, output
from nephoscope.commands.section_output import present
from nephoscope.errors import UsageError
from nephoscope.sla import watch_command, what_if_command

if TYPE_CHECKING:
    pass

VIOLATED = 1
"""Exit code where an objective is violated, as of the other checks."""

_EVENTS = click.argument("events", nargs=-1, required=True, type=options.PATH, metavar="EVENTS...")
_CONTRACT = click.argument("contract", metavar="CONTRACT")
_NOW = click.option(
    "--now", metavar="TIME", help="Time of the verdict, ISO 8601 [default: the clock's]."
)
_EXCLUDE = click.option(
    "--exclude",
    "exclusions",
    multiple=True,
    metavar="FROM/TO",
    help="Time that does not count, e.g. maintenance, ISO 8601; may be repeated.",
)
_HOLDS = click.option(
    "--holds",
    metavar="TIME",
    help="Time for which a slot without events keeps the state before it [default: none].",
)


@click.group(cls=options.InOrder)
def sla() -> None:
    """Check service level agreements: verdict, credit, evidence."""


@sla.command()
@click.argument("name", required=False, metavar="[CONTRACT]")
@options.JSON
def contracts(name: str | None, as_json: bool) -> int:
    """List the built-in contracts, or print one as a file."""
    from nephoscope.sla import files
    from nephoscope.sla.listing import ContractList, contract_list

    if name is not None and not as_json:
        output.say(files.text_of(name)[0].rstrip("\n"))
        return 0
    listed: ContractList = contract_list([name] if name else files.names())
    if as_json:
        output.document(listed)
        return 0
    rows = [
        (row.name, row.title, row.period, "; ".join(row.objectives)) for row in listed.contracts
    ]
    output.say(output.table(("name", "title", "period", "objectives"), rows))
    return 0


@sla.command()
@_CONTRACT
@_EVENTS
@click.option(
    "--service",
    "services",
    multiple=True,
    metavar="NAME",
    help="Service to judge; may be repeated.",
)
@click.option(
    "--period",
    "periods",
    multiple=True,
    metavar="NAME",
    help="Period to judge, e.g. 2026-06; may be repeated.",
)
@click.option("--bill", metavar="AMOUNT", help="Bill of each service and period.")
@click.option("--bills", type=options.PATH, metavar="FILE", help="CSV file of bills.")
@click.option("--loss-per-hour", metavar="AMOUNT", help="Business loss of an hour of downtime.")
@_EXCLUDE
@_HOLDS
@_NOW
@options.CONFIDENCE
@options.REPORT_FILE
@options.JSON
def verdict(
    contract: str,
    events: Sequence[Path],
    services: Sequence[str],
    periods: Sequence[str],
    bill: str | None,
    bills: Path | None,
    loss_per_hour: str | None,
    to: Path | None,
    as_json: bool,
    **judging: Any,
) -> int:
    """Judge events by a contract: verdict, error budget, credit.

    CONTRACT is the name of a built-in contract or a file; EVENTS are CSV or Parquet files with the
    columns of docs/how-to/service-levels.md. Exits with 1 if an objective is violated.
    """
    from nephoscope.sla import credit, files, result
    from nephoscope.sla import events as reading
    from nephoscope.sla.text import section

    agreement = files.load(contract)
    amounts = {} if bills is None else result.read_bills(bills, agreement.currency)
    if bill is not None:
        amounts.setdefault(("", ""), credit.amount_of(bill, "--bill"))
    loss = None if loss_per_hour is None else credit.amount_of(loss_per_hour, "--loss-per-hour")
    settings = result.Settings(
        **_judging(agreement, **judging),
        bills=amounts,
        loss_per_h=loss,
        services=tuple(services),
        periods=tuple(periods),
    )
    timed = any(one.measure not in ("availability", "loss") for one in agreement.objectives)
    judged = result.judge(agreement, reading.read(events, numbers=timed), settings)
    present(judged, section(judged), as_json=as_json, to=to, source=judged.title)
    return VIOLATED if any(one.verdict == "violated" for one in judged.periods) else 0


@sla.command()
@_CONTRACT
@_EVENTS
@click.option(
    "-o",
    "--output",
    "to",
    type=options.PATH,
    required=True,
    metavar="FILE",
    help="Bundle to write.",
)
@click.option("--bill", metavar="AMOUNT", help="Bill of each service and period.")
@_EXCLUDE
@_HOLDS
@_NOW
@options.CONFIDENCE
@options.JSON
def evidence(
    contract: str,
    events: Sequence[Path],
    to: Path,
    bill: str | None,
    as_json: bool,
    **judging: Any,
) -> int:
    """Write events, terms and verdict as a verifiable bundle.

    The head that it prints stands for the whole bundle: give it to the other side at once.
    """
    from nephoscope.sla import credit, files, result
    from nephoscope.sla import evidence as bundles

    bills = {} if bill is None else {("", ""): credit.amount_of(bill, "--bill")}
    settings = result.Settings(**_judging(files.load(contract), **judging), bills=bills)
    written = bundles.write(to, contract, events, settings)
    if as_json:
        output.document(written)
    else:
        output.say(f"{written.bundle}: {written.events} events, {written.bytes} bytes.")
        output.say(f"Head: {written.head}")
    return 0


@sla.command()
@click.argument("bundle", type=options.PATH, metavar="BUNDLE")
@click.option("--head", metavar="DIGEST", help="Head that was noted when the bundle was made.")
@options.JSON
def verify(bundle: Path, head: str | None, as_json: bool) -> int:
    """Verify the digests and the verdict of a bundle.

    Exits with 1 if anything differs.
    """
    from nephoscope.sla import evidence as bundles
    from nephoscope.sla.text import section

    check = bundles.verify(bundle, head)
    if as_json:
        output.document(check)
    elif check.verdict is not None and check.intact:
        output.say(f"{check.bundle} is intact. Head: {check.head}")
        present(check, section(check.verdict), as_json=False)
    if not check.intact:
        output.complain(f"{bundle}: {' '.join(check.problems)} Ask for the bundle again.", 1)
    return 0 if check.intact else 1


@sla.command()
@_CONTRACT
@click.option(
    "--format",
    "form",
    type=click.Choice(("openslo", "prometheus")),
    required=True,
    help="OpenSLO v1 documents, or recording and alerting rules.",
)
@click.option("--errors", metavar="QUERY", help="PromQL of failed requests, with [$window].")
@click.option("--total", metavar="QUERY", help="PromQL of all requests, with [$window].")
def export(contract: str, form: str, errors: str | None, total: str | None) -> int:
    """Print a contract as OpenSLO or as rules for Prometheus."""
    import yaml

    from nephoscope.sla import files, openslo, prometheus

    agreement = files.load(contract)
    if form == "openslo":
        if errors or total:
            raise UsageError("--errors and --total are for Prometheus.", "Leave them out.")
        documents = openslo.documents_of(agreement)
    else:
        documents = [
            prometheus.rules(agreement, errors or prometheus.ERRORS, total or prometheus.TOTAL)
        ]
    output.say(yaml.safe_dump_all(documents, sort_keys=False, width=100).rstrip("\n"))
    return 0


def _judging(
    agreement: Any, now: str | None, exclusions: Sequence[str], holds: str | None, confidence: str
) -> dict[str, Any]:
    """The settings that verdicts and evidence share."""
    from nephoscope.sla.periods import instant_ns
    from nephoscope.sla.terms import Exclusion

    times = []
    for text in exclusions:
        start, slash, end = text.partition("/")
        if not slash:
            raise UsageError(
                f"--exclude: '{text[:60]}' is no interval.",
                "Use, for example, 2026-06-01T00:00Z/2026-06-01T02:00Z.",
            )
        times.append(Exclusion(**{"from": start, "to": end}))
    seconds = options.seconds_of("--holds", holds, (1, 86_400), "1 s to 1 d")
    return {
        "now_ns": time.time_ns() if now is None else instant_ns(now, agreement.time_zone),
        "exclusions": tuple(times),
        "holds_ns": round((seconds or 0) * 1e9),
        "confidence": options.confidence(confidence),
    }


for _command in (
    watch_command.watch,
    what_if_command.what_if,
    what_if_command.budget,
    what_if_command.promise,
    what_if_command.client_time,
):
    sla.add_command(_command)
