"""`nephoscope sla`: is a service level agreement kept, what is owed, and how is it proved?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.options import FILE, duration, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError
from nephoscope.features.sla import watch_command, what_if_command
from nephoscope.features.sla.options import (
    BILL,
    CONFIDENCE,
    CONTRACT,
    EVENTS,
    NOW,
    SLO,
    UNIT,
    terms_reading,
)

VIOLATED = 1
"""Exit code where an objective is violated, as of the other checks."""

_EXCLUDE = repeated(
    "--exclude exclusions", "FROM/TO", "Time that does not count, e.g. maintenance, ISO 8601."
)
_HOLDS = option(
    "--holds holds_s",
    duration("1 s", "1 d"),
    "Time for which a slot without events keeps the state before it [default: none].",
)


@click.group(cls=options.InOrder)
def sla() -> None:
    """Check service level agreements: verdict, credit, evidence."""


@sla.command()
@click.argument("name", required=False, metavar="[CONTRACT]")
@options.JSON
def contracts(name: str | None, as_json: bool) -> int:
    """List the built-in contracts, or print one as a file."""
    from nephoscope.features.sla import files
    from nephoscope.features.sla.listing import contract_list

    if name is not None and not as_json:
        output.say(files.text_of(name)[0].rstrip("\n"))
        return 0
    listed = contract_list([name] if name else files.names())
    if as_json:
        output.document(listed)
        return 0
    rows = [
        (row.name, row.title, row.period, "; ".join(row.objectives)) for row in listed.contracts
    ]
    output.say(output.table(("name", "title", "period", "objectives"), rows))
    return 0


@sla.command()
@CONTRACT
@EVENTS
@repeated("--service services", "NAME", "Service to judge [default: all].")
@repeated("--period periods", "NAME", "Period to judge, e.g. 2026-06 [default: all].")
@BILL
@option("--bills", FILE, "CSV file of bills.")
@option("--loss-per-hour", "AMOUNT", "Business loss per hour of downtime.")
@_EXCLUDE
@_HOLDS
@NOW
@UNIT
@SLO
@CONFIDENCE
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
    unit: str | None,
    slo: str | None,
    **judging: Any,
) -> int:
    """Judge events by a contract: verdict, error budget, credit.

    CONTRACT is the name of a built-in contract or a file; EVENTS are CSV or Parquet files with the
    columns of docs/how-to/service-levels.md. Exits with 1 if an objective is violated.
    """
    from nephoscope.features.sla import credit, files, result
    from nephoscope.features.sla import events as reading
    from nephoscope.features.sla.text import section

    agreement = files.load(contract, terms_reading(unit, slo))
    amounts = {} if bills is None else result.read_bills(bills, agreement.currency)
    if bill is not None:
        amounts.setdefault(("", ""), credit.amount_of(bill, "--bill"))
    loss = None if loss_per_hour is None else credit.amount_of(loss_per_hour, "--loss-per-hour")
    settings = result.VerdictSettings(
        **_judging(agreement, **judging),
        bills=tuple((*key, amount) for key, amount in amounts.items()),
        loss_per_h=loss,
        services=tuple(services),
        periods=tuple(periods),
    )
    judged = result.judge(agreement, reading.read(events, numbers=agreement.is_timed), settings)
    present(judged, section(judged), as_json=as_json, to=to, source=judged.title)
    return VIOLATED if any(one.verdict == "violated" for one in judged.periods) else 0


@sla.command()
@CONTRACT
@EVENTS
@option("-o --output to", FILE, "Bundle to write.", required=True)
@BILL
@_EXCLUDE
@_HOLDS
@NOW
@UNIT
@SLO
@CONFIDENCE
@options.JSON
def evidence(
    contract: str,
    events: Sequence[Path],
    to: Path,
    bill: str | None,
    as_json: bool,
    unit: str | None,
    slo: str | None,
    **judging: Any,
) -> int:
    """Write events, terms and verdict as a verifiable bundle.

    The head that it prints stands for the whole bundle: give it to the other side at once.
    """
    from nephoscope.features.sla import credit, files, result
    from nephoscope.features.sla import evidence as bundles

    bills = () if bill is None else (("", "", credit.amount_of(bill, "--bill")),)
    terms = terms_reading(unit, slo)
    judged_by = _judging(files.load(contract, terms), **judging)
    settings = result.VerdictSettings(**judged_by, bills=bills, terms=terms)
    written = bundles.write(to, contract, events, settings)
    if as_json:
        output.document(written)
    else:
        output.say(f"{written.bundle}: {written.events} events, {written.bytes} bytes.")
        output.say(f"Head: {written.head}")
    return 0


@sla.command()
@click.argument("bundle", type=options.PATH, metavar="BUNDLE")
@option("--head", "DIGEST", "Head that `sla evidence` printed when the bundle was made.")
@options.JSON
def verify(bundle: Path, head: str | None, as_json: bool) -> int:
    """Verify the digests and the verdict of a bundle.

    Exits with 1 if anything differs.
    """
    from nephoscope.features.sla import evidence as bundles
    from nephoscope.features.sla.text import section

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
@CONTRACT
@option(
    "--format form",
    click.Choice(("openslo", "prometheus")),
    "OpenSLO v1 documents, or recording and alerting rules.",
    required=True,
)
@option("--errors", "QUERY", "PromQL query of failed requests; [$window] stands for its range.")
@option("--total", "QUERY", "PromQL query of all requests; [$window] stands for its range.")
@UNIT
@SLO
def export(
    contract: str,
    form: str,
    errors: str | None,
    total: str | None,
    unit: str | None,
    slo: str | None,
) -> int:
    """Print a contract as OpenSLO or as rules for Prometheus."""
    import yaml

    from nephoscope.features.sla import files, openslo_export, prometheus

    agreement = files.load(contract, terms_reading(unit, slo))
    if form == "openslo":
        if errors or total:
            raise UsageError("--errors and --total are for Prometheus.", "Leave them out.")
        documents = openslo_export.documents_of(agreement)
    else:
        documents = [
            prometheus.rules(agreement, errors or prometheus.ERRORS, total or prometheus.TOTAL)
        ]
    output.say(yaml.safe_dump_all(documents, sort_keys=False, width=100).rstrip("\n"))
    return 0


def _judging(
    agreement: Any,
    now: str | None,
    exclusions: Sequence[str],
    holds_s: float | None,
    confidence: float,
) -> dict[str, Any]:
    """The settings that verdicts and evidence share."""
    from nephoscope.features.sla.periods import instant_ns
    from nephoscope.features.sla.terms import Exclusion

    times = []
    for text in exclusions:
        start, slash, end = text.partition("/")
        if not slash:
            raise UsageError(
                f"--exclude: '{text[:60]}' is no interval.",
                "Use, for example, 2026-06-01T00:00Z/2026-06-01T02:00Z.",
            )
        times.append(Exclusion(**{"from": start, "to": end}))
    return {
        "now_ns": time.time_ns() if now is None else instant_ns(now, agreement.time_zone),
        "exclusions": tuple(times),
        "holds_ns": round((holds_s or 0) * 1e9),
        "confidence": confidence,
    }


for _command in (
    watch_command.watch,
    what_if_command.what_if,
    what_if_command.budget,
    what_if_command.promise,
    what_if_command.client_time,
):
    sla.add_command(_command)
