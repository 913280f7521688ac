"""`sla what-if`, `sla budget`, `sla promise`, `sla client-time`: computed, not measured."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Query, command
from nephoscope.cli.kit.options import SIZE, Checked, Count, argument, duration, option, ratio
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.features.sla.options import (
    CONFIDENCE,
    CONTRACT,
    EVENTS,
    NOW,
    SLO,
    UNIT,
    terms_reading,
)

_TIME = duration("0 s", "1 h")
_WINDOW = Checked("TIME", duration("1 min", "3660 d").read)


@dataclass(frozen=True, slots=True)
class _WhatIfArguments:
    expression: str = argument(metavar="EXPRESSION")
    as_json: bool = options.JSON


@command(
    prints=Document("composition", ".features.sla.what_if:Composition"),
    requests=Query(),
    examples=(
        "'series(99.9%, parallel(99.5%, 99.5%))'",
        "'of(2, 99.9%, 99.9%, 99.5%)'",
    ),
)
def what_if(args: _WhatIfArguments) -> int:
    """Compute the availability of a composed system.

    EXPRESSION is, for example, 'series(99.9%, parallel(99.5%, 99.5%), of(2, 99%, 99%, 99%))'.
    """
    from nephoscope.features.sla.section import share_text
    from nephoscope.features.sla.what_if import compose

    system = compose(args.expression)
    if args.as_json:
        output.document(system)
        return 0
    output.paragraph(
        f"Availability: {share_text(system.availability)}, "
        f"{units.format_duration(system.downtime_per_month_s)} down in 30 days, "
        f"{units.format_duration(system.downtime_per_year_s)} a year."
    )
    output.paragraph(
        f"{system.assumption} With any dependence it lies between {share_text(system.low)} and "
        f"{share_text(system.high)}."
    )
    return 0


@dataclass(frozen=True, slots=True)
class _BudgetArguments:
    objective: str = argument(metavar="OBJECTIVE")
    window: str = option("--window", _WINDOW, "Window of the objective.", default="30d")
    burn_rate: float = option(
        "--burn-rate",
        options.FiniteRange(0, 1e6),
        "Share of bad events relative to the share that the objective allows.",
        default=1.0,
        metavar="X",
    )
    years: float = option(
        "--years",
        options.FiniteRange(0, 1000),
        "Years over which a yearly share has to hold, for durability.",
        default=1.0,
        metavar="T",
    )
    confidence: float = CONFIDENCE
    as_json: bool = options.JSON


@command(
    prints=Document("error_budget", ".features.sla.what_if:BudgetPlan"),
    requests=Query(),
    examples=(
        "99.9%",
        "99.9% --window 30d --burn-rate 14.4",
    ),
)
def budget(args: _BudgetArguments) -> int:
    """Compute the error budget of an objective such as 99.9%."""
    from nephoscope.features.sla.terms import exact_share
    from nephoscope.features.sla.what_if import budget as plan_of

    try:
        share = exact_share(args.objective)
    except ValueError as error:
        raise UsageError(f"OBJECTIVE: {error}.", "Use, for example, 99.9%.") from None
    plan = plan_of(share, _WINDOW.read(args.window), args.burn_rate, args.confidence, args.years)
    if args.as_json:
        output.document(plan)
        return 0
    output.say(f"Allowed: {units.format_duration(plan.allowed_s)} in {args.window}.")
    if plan.exhausted_after_s is not None:
        output.say(
            f"At a burn rate of {args.burn_rate:g} the budget lasts "
            f"{units.format_duration(plan.exhausted_after_s)}."
        )
    if plan.least_n is not None:
        output.say(
            f"{plan.least_n:,} requests without a failure are needed to show it "
            f"({100 * args.confidence:g} % confidence)."
        )
    return 0


@dataclass(frozen=True, slots=True)
class _PromiseArguments:
    contract: str = CONTRACT
    events: Sequence[Path] = EVENTS
    bill: str | None = option("--bill", "AMOUNT", "Bill of a period, for the expected credit.")
    now: str | None = NOW
    unit: str | None = UNIT
    slo: str | None = SLO
    confidence: float = CONFIDENCE
    as_json: bool = options.JSON


@command(
    prints=Document("promises", ".features.sla.what_if:Promises"),
    requests=Query(),
    examples=(
        "ec2-region events.csv",
        "ec2-region events.csv --bill 1000",
    ),
)
def promise(args: _PromiseArguments) -> int:
    """Find the objective that a service could have promised.

    CONTRACT gives periods, slots and credits.
    """
    from nephoscope.features.sla import credit, files, result
    from nephoscope.features.sla import events as reading
    from nephoscope.features.sla.periods import instant_ns
    from nephoscope.features.sla.section import share_text
    from nephoscope.features.sla.what_if import promises

    agreement = files.load(args.contract, terms_reading(args.unit, args.slo))
    now_ns = time.time_ns() if args.now is None else instant_ns(args.now, agreement.time_zone)
    settings = result.VerdictSettings(now_ns=now_ns, confidence=args.confidence)
    judged = result.judge(agreement, reading.read(args.events), settings)
    answer = promises(judged, None if args.bill is None else credit.amount_of(args.bill, "--bill"))
    if args.as_json:
        output.document(answer)
        return 0
    rows = [
        (
            service.service or "-",
            share_text(row.objective),
            f"{row.met} of {service.periods}",
            f"{share_text(row.next_period.low or 0)} to {share_text(row.next_period.high or 0)}",
        )
        for service in answer.services
        for row in service.candidates
    ]
    output.say(output.table(("service", "objective", "periods that met it", "next period"), rows))
    for service in answer.services:
        if service.expected_credit_share is not None:
            amount = "" if service.expected_credit is None else f" ({service.expected_credit:.2f})"
            output.paragraph(
                f"{service.service or '-'}: expected credit "
                f"{100 * service.expected_credit_share:.3g} % of a bill{amount}."
            )
    for note in answer.notes:
        output.paragraph(note)
    return 0


@dataclass(frozen=True, slots=True)
class _ClientTimeArguments:
    drop: float | None = option("--drop", ratio(0, 0.4999), "Share of dropped SYNs.")
    counters: tuple[Path, Path] | None = option(
        "--counters",
        "BEFORE AFTER",
        "Copies of /proc/net/netstat and /proc/net/snmp of the server, instead of --drop.",
        nargs=2,
        type=options.PATH,
        is_local=True,
    )
    rto_s: float = option("--rto", _TIME, "First retransmission timeout of a SYN.", default="1s")
    linear: int = option(
        "--linear-timeouts",
        Count(0, 100),
        "Timeouts of the clients before they double; Linux 6.5 and later have 4.",
        default=0,
    )
    rtt_s: float | None = option("--rtt", _TIME, "Round-trip time between client and server.")
    tls_round_trips: int = option(
        "--tls-round-trips", Count(0, 10), "Round trips of the TLS handshake.", default=0
    )
    size_bytes: int | None = option("--size", SIZE, "Bytes of a response.")
    window_bytes: int = option(
        "--initial-window", SIZE, "Initial congestion window in bytes.", default="14600B"
    )
    server_s: float | None = option("--server-time", _TIME, "Mean response time at the server.")
    as_json: bool = options.JSON


@command(
    prints=Document("client_time", ".features.sla.client_time:ClientTime"),
    requests=Query(),
    examples=(
        "--drop 10%",
        "--drop 2% --rtt 40ms --size 320KB --server-time 25ms",
    ),
)
def client_time(args: _ClientTimeArguments) -> int:
    """Estimate clients' response time from server counters.

    Adds what a server cannot see to its own response time: dropped SYNs, handshakes, slow start.
    """
    from nephoscope.features.sla import client_time as certes

    if (args.drop is None) == (args.counters is None):
        raise UsageError("The share of dropped SYNs is needed once.", "Use --drop or --counters.")
    dropped, attempts = 0, 0
    if args.counters is not None:
        dropped, attempts = certes.drops_between(*map(certes.counters, args.counters))
        if not attempts:
            raise UsageError("The counters show no connection.", "Copy them at a longer distance.")
    if not args.window_bytes:
        raise UsageError("--initial-window is zero.", "Use, for example, 14600B.")
    estimate = certes.estimate(
        dropped,
        attempts,
        window_bytes=args.window_bytes,
        drop=args.drop,
        rto_s=args.rto_s,
        linear=args.linear,
        rtt_s=args.rtt_s,
        tls_round_trips=args.tls_round_trips,
        size_bytes=args.size_bytes,
        server_s=args.server_s,
    )
    if args.as_json:
        output.document(estimate)
        return 0
    output.say(f"Wait for dropped SYNs: {units.format_value(estimate.retry_ns, 'ns')} on average.")
    if estimate.setup_ns is not None:
        output.say(f"Handshakes: {units.format_value(estimate.setup_ns, 'ns')}.")
    if estimate.slow_start_round_trips is not None:
        output.say(f"Slow start: {estimate.slow_start_round_trips} round trips.")
    if estimate.total_ns is not None:
        output.say(f"Client's response time: {units.format_value(estimate.total_ns, 'ns')}.")
    output.paragraph(" ".join(estimate.assumptions))
    return 0
