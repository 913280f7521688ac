"""`nephoscope sla`: is a service level agreement kept, what is owed, and how is it proved?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, Query, command, group
from nephoscope.cli.kit.options import FILE, argument, duration, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core.errors import UsageError
from nephoscope.features.sla import watch_command, what_if_command
from nephoscope.features.sla.options import (
    BILL,
    CONFIDENCE,
    CONTRACT,
    CONTRACT_NAME,
    EVENTS,
    NOW,
    SLO,
    UNIT,
    terms_reading,
)

VIOLATED = 1
"""Exit code where an objective is violated, as of the other checks."""

_EXCLUDE = repeated("--exclude", "FROM/TO", "Time that does not count, e.g. maintenance, ISO 8601.")
_HOLDS = option(
    "--holds",
    duration("1 s", "1 d"),
    "Time for which a slot without events keeps the state before it [default: none].",
)


@group()
def sla() -> None:
    """Check service level agreements: verdict, credit, evidence."""


@dataclass(frozen=True, slots=True)
class _SlaContractsArguments:
    name: str | None = argument(CONTRACT_NAME, required=False, metavar="[CONTRACT]")
    as_json: bool = options.JSON


@command(
    sla,
    prints=Document("contracts", ".features.sla.listing:ContractList"),
    requests=Query(),
    examples=(
        "",
        "ec2-region",
    ),
)
def contracts(args: _SlaContractsArguments) -> int:
    """List the built-in contracts, or print one as a file."""
    from nephoscope.features.sla import files
    from nephoscope.features.sla.listing import contract_list

    if args.name is not None and not args.as_json:
        output.say(files.text_of(args.name)[0].rstrip("\n"))
        return 0
    listed = contract_list([args.name] if args.name else files.names())
    if args.as_json:
        output.document(listed)
        return 0
    rows = [
        (row.name, row.title, row.period, "; ".join(row.objectives)) for row in listed.contracts
    ]
    output.say(output.table(("name", "title", "period", "objectives"), rows))
    return 0


@dataclass(frozen=True, slots=True)
class _SlaVerdictArguments:
    contract: str = CONTRACT
    events: Sequence[Path] = EVENTS
    services: Sequence[str] = repeated("--service", "NAME", "Service to judge [default: all].")
    periods: Sequence[str] = repeated(
        "--period", "NAME", "Period to judge, e.g. 2026-06 [default: all]."
    )
    bill: str | None = BILL
    bills: Path | None = option("--bills", FILE, "CSV file of bills.")
    loss_per_hour: str | None = option(
        "--loss-per-hour", "AMOUNT", "Business loss per hour of downtime."
    )
    exclusions: tuple[str, ...] = _EXCLUDE
    holds_s: float | None = _HOLDS
    now: str | None = NOW
    unit: str | None = UNIT
    slo: str | None = SLO
    confidence: float = CONFIDENCE
    engine: str | None = option(
        "--engine",
        options.ENGINE_URL,
        "Engine that reads the events: local:N, spark://HOST:PORT or sc://HOST:PORT "
        "[default: this process].",
        is_local=True,
    )
    to: Path | None = options.REPORT_FILE
    as_json: bool = options.JSON


@command(
    sla,
    prints=Document("sla_verdict", ".features.sla.result:SlaVerdict"),
    requests=Query(),
    examples=(
        "ec2-region events.csv",
        "ec2-region events.csv --bill 1234.56 --loss-per-hour 900",
    ),
)
def verdict(args: _SlaVerdictArguments) -> int:
    """Judge events by a contract: verdict, error budget, credit.

    CONTRACT is the name of a built-in contract or a file; EVENTS are CSV or Parquet files with the
    columns of docs/how-to/service-levels.md. Exits with 1 if an objective is violated.
    """
    from nephoscope.features.sla import credit, files, question, result
    from nephoscope.features.sla import events as reading
    from nephoscope.features.sla.section import section
    from nephoscope.store.engines import using

    agreement = files.load(args.contract, terms_reading(args.unit, args.slo))
    amounts = {} if args.bills is None else result.read_bills(args.bills, agreement.currency)
    if args.bill is not None:
        amounts.setdefault(("", ""), credit.amount_of(args.bill, "--bill"))
    loss = (
        None
        if args.loss_per_hour is None
        else credit.amount_of(args.loss_per_hour, "--loss-per-hour")
    )
    settings = result.VerdictSettings(
        **_judging(
            agreement,
            exclusions=args.exclusions,
            holds_s=args.holds_s,
            now=args.now,
            confidence=args.confidence,
        ),
        bills=tuple((*key, amount) for key, amount in amounts.items()),
        loss_per_h=loss,
        services=tuple(args.services),
        periods=tuple(args.periods),
    )
    if args.engine is None:
        read = reading.read(args.events, numbers=agreement.is_timed)
        judged = result.judge(agreement, read, settings)
    else:
        with using(args.engine, question.folder_of(args.events)) as engine:
            judged = question.judge(agreement, args.events, settings, engine)
    present(judged, section(judged), as_json=args.as_json, to=args.to, source=judged.title)
    return VIOLATED if any(period.verdict == "violated" for period in judged.periods) else 0


@dataclass(frozen=True, slots=True)
class _SlaEvidenceArguments:
    contract: str = CONTRACT
    events: Sequence[Path] = EVENTS
    to: Path = option("-o --output", FILE, "Bundle to write.", required=True)
    bill: str | None = BILL
    exclusions: tuple[str, ...] = _EXCLUDE
    holds_s: float | None = _HOLDS
    now: str | None = NOW
    unit: str | None = UNIT
    slo: str | None = SLO
    confidence: float = CONFIDENCE
    as_json: bool = options.JSON


@command(
    sla,
    prints=Document("evidence", ".features.sla.evidence:Evidence"),
    requests=Excluded("writes a bundle"),
    examples=(
        "ec2-region events.csv -o june.zip",
        "ec2-region events.csv --bill 1234.56 -o june.zip",
    ),
)
def evidence(args: _SlaEvidenceArguments) -> int:
    """Write events, terms and verdict as a verifiable bundle.

    The head that it prints stands for the whole bundle: give it to the other side at once.
    """
    from nephoscope.features.sla import credit, files, result
    from nephoscope.features.sla import evidence as bundles

    bills = () if args.bill is None else (("", "", credit.amount_of(args.bill, "--bill")),)
    terms = terms_reading(args.unit, args.slo)
    judged_by = _judging(
        files.load(args.contract, terms),
        exclusions=args.exclusions,
        holds_s=args.holds_s,
        now=args.now,
        confidence=args.confidence,
    )
    settings = result.VerdictSettings(**judged_by, bills=bills, terms=terms)
    written = bundles.write(args.to, args.contract, args.events, settings)
    if args.as_json:
        output.document(written)
    else:
        output.say(f"{written.bundle}: {written.events} events, {written.bytes} bytes.")
        output.say(f"Head: {written.head}")
    return 0


@dataclass(frozen=True, slots=True)
class _SlaVerifyArguments:
    bundle: Path = argument(options.PATH, metavar="BUNDLE")
    head: str | None = option(
        "--head", "DIGEST", "Head that `sla evidence` printed when the bundle was made."
    )
    as_json: bool = options.JSON


@command(
    sla,
    prints=Document("evidence_check", ".features.sla.evidence:EvidenceCheck"),
    requests=Query(),
    examples=(
        "june.zip",
        "june.zip --json",
    ),
)
def verify(args: _SlaVerifyArguments) -> int:
    """Verify the digests and the verdict of a bundle.

    Exits with 1 if anything differs.
    """
    from nephoscope.features.sla import evidence as bundles
    from nephoscope.features.sla.section import section

    check = bundles.verify(args.bundle, args.head)
    if args.as_json:
        output.document(check)
    elif check.verdict is not None and check.intact:
        output.say(f"{check.bundle} is intact. Head: {check.head}")
        present(check, section(check.verdict), as_json=False)
    if not check.intact:
        output.complain(f"{args.bundle}: {' '.join(check.problems)} Ask for the bundle again.", 1)
    return 0 if check.intact else 1


@dataclass(frozen=True, slots=True)
class _SlaExportArguments:
    contract: str = CONTRACT
    form: str = option(
        "--format",
        click.Choice(("openslo", "prometheus")),
        "OpenSLO v1 documents, or recording and alerting rules.",
        required=True,
    )
    errors: str | None = option(
        "--errors", "QUERY", "PromQL query of failed requests; [$window] stands for its range."
    )
    total: str | None = option(
        "--total", "QUERY", "PromQL query of all requests; [$window] stands for its range."
    )
    unit: str | None = UNIT
    slo: str | None = SLO


@command(
    sla,
    examples=(
        "ec2-region --format openslo",
        "ec2-region --format prometheus",
    ),
)
def export(args: _SlaExportArguments) -> int:
    """Print a contract as OpenSLO or as rules for Prometheus."""
    import yaml

    from nephoscope.features.sla import files, openslo_export, prometheus

    agreement = files.load(args.contract, terms_reading(args.unit, args.slo))
    if args.form == "openslo":
        if args.errors or args.total:
            raise UsageError("--errors and --total are for Prometheus.", "Leave them out.")
        documents = openslo_export.documents_of(agreement)
    else:
        documents = [
            prometheus.rules(
                agreement, args.errors or prometheus.ERRORS, args.total or prometheus.TOTAL
            )
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
