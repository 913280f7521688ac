"""`nephoscope isolate`: what does a neighbour take away, of which resource, does it come back?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.options import Parsed, flag, option, repeated
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.features.isolation.placement import PLACEMENTS

if TYPE_CHECKING:
    from nephoscope.measure.targets.kinds.record import TargetRecord as Target

ROLES = ("victim", "aggressor", "server")


def _intensities(text: str) -> tuple[float, ...]:
    try:
        return tuple(units.parse_ratio(part) for part in text.split(","))
    except UsageError as error:
        raise UsageError(error.message, "Use a list such as 0.25,0.5,1 or 25%,50%.") from None


def _price(text: str) -> float:
    from nephoscope.features.cost.mix import number

    return number("--price", text, "a price above 0")


@click.command()
@click.argument("victims", nargs=-1, metavar="VICTIM…")
@repeated(
    "--aggressor aggressors", "RESOURCE", "Resource for the aggressor to load [default: all]."
)
@option(
    "--intensity intensities",
    Parsed("LIST", _intensities),
    "Load levels as fractions of full load, e.g. 0.25,0.5,1.",
)
@option(
    "--neighbours",
    click.IntRange(1),
    "Run with 1 to K concurrent aggressors.",
    default=1,
    metavar="K",
)
@repeated("--target targets", "ROLE=TARGET", "Host for a role [default: hosts of a new lab].")
@option(
    "--placement",
    click.Choice(PLACEMENTS),
    "CPU placement: one CPU per host, one shared CPU, or one each with a quota.",
    default="own",
)
@option(
    "--price price_per_h",
    Parsed("PRICE", _price),
    "Price of the victim per hour, in USD, to state what a neighbour costs.",
)
@flag("--a-a", "Use idle aggressors only, to measure the false-positive rate.")
@flag("--quick", "Measure at full load only, in six rounds.")
@options.DRY_RUN
@options.BUDGET
@options.SEED
@options.LABELS
@options.STORE
@options.JSON
@options.FRESH
def isolate(
    victims: Sequence[str],
    aggressors: Sequence[str],
    intensities: tuple[float, ...] | None,
    targets: Sequence[str],
    dry_run: bool,
    budget: float | None,
    seed: int | None,
    store: Path | None,
    as_json: bool,
    fresh: bool,
    **conditions: Any,
) -> int:
    """Measure how much a neighbour on the same host slows you.

    VICTIM is `all`, a benchmark, or a resource: cpu, memory, cache, disk_read, disk_write, fsync,
    net_send, net_receive, packets, switches. RESOURCE takes the same names, and `idle`. ROLE is
    victim, aggressor or server. TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.features.isolation import plan as isolation_plan
    from nephoscope.features.isolation import text
    from nephoscope.store import Store

    request = isolation_plan.IsolationRequest(
        victims=tuple(victims),
        aggressors=tuple(aggressors),
        intensities=intensities or (),
        targets=_targets(targets),
        budget_s=budget,
        seed=seed,
        **conditions,
    )
    result = isolation_plan.plan_isolation(request)
    for warning in result.warnings:
        output.warn(warning)
    return measuring.run_or_preview(
        result.plan,
        Store(store),
        as_json=as_json,
        fresh=fresh,
        dry_run=dry_run,
        lab_for="" if request.targets else f"nephoscope isolate {' '.join(victims)}",
        text_of=text.text,
    )


def _targets(texts: Sequence[str]) -> tuple[tuple[str, Target], ...]:
    """(role, target) of each `--target`; without a word the first is the victim, others are not."""
    from nephoscope.measure.targets.kinds import parse

    targets = []
    for number, text in enumerate(texts):
        role, equals, rest = text.partition("=")
        if not equals:
            role, rest = ROLES[0] if number == 0 else ROLES[1], text
        if role not in ROLES:
            raise UsageError(
                f"--target: '{role}' is not a role.",
                f"Use {', '.join(f'{word}=TARGET' for word in ROLES)}.",
            )
        targets.append((role, parse(rest)))
    return tuple(targets)
