"""`survival` of `nephoscope cloud`: how long machines of the spot market live."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import argument, duration, flag, option, repeated
from nephoscope.cli.kit.section_output import present
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.features.cloud.choice import CloudChoice, carried_out, opened
from nephoscope.features.cloud.command import cloud

if TYPE_CHECKING:
    from nephoscope.measure.cloud.machine_lives import MachineLife
    from nephoscope.measure.cloud.rental import Rentals
    from nephoscope.measure.cloud.spec import RentalSpec

_BOOT_H = 0.25
"""Time to the first login and for the removal, for which the machines are rented too."""


@dataclass(frozen=True, slots=True)
class _SurvivalArguments:
    provider: str | None = argument(required=False, metavar="[PROVIDER]")
    endpoint: str = option(
        "--endpoint", "URL", "Address of the API [default: the provider's].", default=""
    )
    profile: str = option("--profile", "NAME", "Credentials, as of `cloud up`.", default="")
    region: str = option("--region", "REGION", "Only this region; to rent, where.", default="")
    zone: str = option("--zone", "ZONE", "Only this zone; to rent, where.", default="")
    type: str = option("--type", "TYPE", "Only this type; to rent, which.", default="")
    image: str = option("--image", "IMAGE", "To rent: the image.", default="")
    count: int = option("--count", options.Count(1, 1000), "To rent: how many.", default=6)
    hours: float | None = option(
        "--hours",
        options.FiniteRange(0.001, 720),
        "Rent machines of the spot market and watch them for so many hours.",
    )
    network: str = option("--network", "NAME", "To rent: network.", default="")
    login_from: str = option(
        "--login-from", "CIDR", "Network that may log in [default: this machine].", default=""
    )
    money: float | None = option(
        "--money", options.FiniteRange(0, min_open=True), "Most that all of it may cost."
    )
    currency: str = option("--currency", "CODE", "Currency of --money.", default="USD")
    jobs_s: Sequence[float] = repeated(
        "--job", duration("1 s", "365 d"), "Length of a job [default: 1h, 8h, 24h]."
    )
    price: float | None = option(
        "--price", options.FiniteRange(0, min_open=True), "Price of a machine-hour, for the jobs."
    )
    file: Path | None = option("--lives", options.PATH, "Lives that another machine noted.")
    confidence: float = options.CONFIDENCE
    to: Path | None = options.REPORT_FILE
    dry_run: bool = flag("--dry-run", "Print what would be rented, and its price.")
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("spot_survival", ".features.cloud.survival:SpotSurvival"),
    requests=Excluded("may rent machines"),
    examples=(
        "ec2 --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 --count 10 "
        "--hours 24 --money 2 --dry-run",
        "--lives lives.csv --job 6h",
    ),
)
def survival(args: _SurvivalArguments) -> None:
    """Estimate how long spot machines live.

    Without --hours the machines of all rentals that ended here are analysed; with it, machines are
    rented, watched and removed first. A machine that was removed here counts as cut off.
    """
    from nephoscope.features.cloud.survival import analyse
    from nephoscope.features.cloud.survival_section import section
    from nephoscope.measure.cloud import machine_lives

    if args.dry_run and args.hours is None:
        raise UsageError("Nothing is rented without --hours.", "Omit --dry-run.")
    if args.hours is not None and not _rent(args, args.hours):
        return
    lives, broken = machine_lives.read(args.file)
    left_out = {"that are not whole": broken} if broken else {}
    chosen = [life for life in lives if _is_wanted(life, args)]
    if len(chosen) < len(lives):
        left_out["that the options leave out"] = len(lives) - len(chosen)
    result = analyse(
        chosen,
        job_h=[each / 3600 for each in args.jobs_s] or (1.0, 8.0, 24.0),
        confidence=args.confidence,
        left_out=left_out,
    )
    source = str(args.file or "rentals that ended here")
    page = section(result, args.price, args.currency)
    present(result, page, as_json=args.as_json, to=args.to, source=source)


def _is_wanted(life: MachineLife, args: _SurvivalArguments) -> bool:
    return all(
        wanted in ("", None, getattr(life, name))
        for name, wanted in (
            ("provider", args.provider),
            ("region", args.region),
            ("zone", args.zone),
            ("type", args.type),
        )
    )


def _rent(args: _SurvivalArguments, hours: float) -> bool:
    """Rents, watches and removes machines; returns whether it did, rather than only print it."""
    from nephoscope.features.cloud.spot_campaign import require_spot, watch_lives
    from nephoscope.measure.provisioning import SpendingLimit

    missing = [f"--{name}" for name in ("region", "type", "image") if not getattr(args, name)]
    if not args.provider or missing:
        what = "PROVIDER" if not args.provider else " and ".join(missing)
        raise UsageError(f"To rent machines, {what} has to be given.", "Or omit --hours.")
    rentals = opened(CloudChoice(args.provider, args.endpoint, args.profile))
    require_spot(rentals)
    spec = carried_out(rentals.checked(_spec(args, hours)))
    quote = rentals.quote(spec)
    if args.dry_run:
        _preview(rentals, spec)
        return False
    if quote is not None and args.money is None:
        raise UsageError(
            f"These machines cost up to {quote.cost(spec.hours):.2f} {quote.currency} until their "
            "time ends, and no limit is set.",
            "Add --money AMOUNT.",
        )
    limit = None if args.money is None else SpendingLimit(args.money, args.currency)
    carried_out(watch_lives(rentals, spec, seconds=3600 * hours, limit=limit, say=output.log))
    return True


def _spec(args: _SurvivalArguments, hours: float) -> RentalSpec:
    from nephoscope.features.cloud.spot_campaign import LEASE_S
    from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

    group = MachineGroup(
        "m",
        args.region,
        args.type,
        args.image,
        zone=args.zone,
        market="spot",
        count=args.count,
        network=args.network,
    )
    return RentalSpec(
        f"survival-{secrets.token_hex(4)}",
        (group,),
        hours=hours + _BOOT_H,
        lease_s=min(LEASE_S, 3600 * (hours + _BOOT_H)),
        login_from=args.login_from,
        # A machine may be taken back before its first login, which is a life too.
        contact=False,
    )


def _preview(rentals: Rentals, spec: RentalSpec) -> None:
    quote = rentals.quote(spec)
    cost = "no price" if quote is None else f"up to {quote.cost(spec.hours):.2f} {quote.currency}"
    machines = plural(sum(group.count for group in spec.groups), "machine")
    output.say(
        f"Nothing was created. {machines} of the spot market for "
        f"{units.format_duration(3600 * spec.hours)} would cost: {cost}."
    )
