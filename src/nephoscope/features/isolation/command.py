"""`nephoscope isolate`: what does a neighbour take away, of which resource, does it come back?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nephoscope.cli.kit import measuring, options, output
from nephoscope.cli.kit.command import MEASURES, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.named import ROLE, VICTIM, Named, victims_of
from nephoscope.cli.kit.options import Parsed, argument, flag, option, repeated
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


NEIGHBOUR = Named("RESOURCE", names=victims_of)


@dataclass(frozen=True, slots=True)
class _IsolateArguments:
    victims: Sequence[str] = argument(VICTIM, nargs=-1, metavar="VICTIM…")
    aggressors: Sequence[str] = repeated(
        "--aggressor", NEIGHBOUR, "Resource for the aggressor to load [default: all]."
    )
    intensities: tuple[float, ...] | None = option(
        "--intensity",
        Parsed("LIST", _intensities),
        "Load levels as fractions of full load, e.g. 0.25,0.5,1.",
    )
    neighbours: int = option(
        "--neighbours",
        click.IntRange(1),
        "Run with 1 to K concurrent aggressors.",
        default=1,
        metavar="K",
    )
    targets: Sequence[str] = repeated(
        "--target", ROLE, "Host for a role [default: hosts of a new lab]."
    )
    placement: str = option(
        "--placement",
        click.Choice(PLACEMENTS),
        "CPU placement: one CPU per host, one shared CPU, or one each with a quota.",
        default="own",
    )
    price_per_h: Any = option(
        "--price",
        Parsed("PRICE", _price),
        "Price of the victim per hour, in USD, to state what a neighbour costs.",
    )
    a_a: bool = flag("--a-a", "Use idle aggressors only, to measure the false-positive rate.")
    quick: bool = flag("--quick", "Measure at full load only, in six rounds.")
    dry_run: bool = options.DRY_RUN
    budget: float | None = options.BUDGET
    seed: int | None = options.SEED
    labels: Mapping[str, str] = options.LABELS
    store: Path | None = options.STORE
    as_json: bool = options.JSON
    fresh: bool = options.FRESH


@command(
    prints={"": RESULT, "--dry-run": PREVIEW},
    requests=MEASURES,
    examples=(
        "cpu disk_read",
        "all --quick --dry-run",
    ),
)
def isolate(args: _IsolateArguments) -> int:
    """Measure how much a neighbour on the same host slows you.

    VICTIM is `all`, a benchmark, or a resource: cpu, memory, cache, disk_read, disk_write, fsync,
    net_send, net_receive, packets, switches. RESOURCE takes the same names, and `idle`. ROLE is
    victim, aggressor or server. TARGET is local, ssh:[user@]host[:port] or lab:LAB/HOST.
    """
    from nephoscope.features.isolation import plan as isolation_plan
    from nephoscope.features.isolation import terminal
    from nephoscope.store import Store

    request = isolation_plan.IsolationRequest(
        victims=tuple(args.victims),
        aggressors=tuple(args.aggressors),
        intensities=args.intensities or (),
        targets=_targets(args.targets),
        budget_s=args.budget,
        seed=args.seed,
        neighbours=args.neighbours,
        placement=args.placement,
        price_per_h=args.price_per_h,
        a_a=args.a_a,
        quick=args.quick,
    )
    result = isolation_plan.plan_isolation(request)
    for warning in result.warnings:
        output.warn(warning)
    return measuring.run_or_preview(
        result.plan,
        Store(args.store),
        as_json=args.as_json,
        fresh=args.fresh,
        dry_run=args.dry_run,
        lab_for="" if request.targets else f"nephoscope isolate {' '.join(args.victims)}",
        text_of=terminal.text,
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
