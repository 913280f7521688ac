"""`nephoscope cloud`: rent machines, find them again, remove them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command, group
from nephoscope.cli.kit.options import flag, option
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.features.cloud.choice import CHOICE, CloudChoice, carried_out, opened
from nephoscope.features.cloud.records import (
    CloudCheck,
    RentalList,
    RentedMachines,
)

if TYPE_CHECKING:
    from nephoscope.measure.cloud.rental import Rentals
    from nephoscope.measure.cloud.spec import RentalSpec
    from nephoscope.measure.provisioning import Quote

NOT_CLEAN = 3


@group()
def cloud() -> None:
    """Rent machines from clouds and remove them."""


@dataclass(frozen=True, slots=True)
class _CloudDoctorArguments:
    cloud: CloudChoice = CHOICE
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("cloud_check", CloudCheck),
    requests=Excluded("asks a cloud"),
    examples=(
        "ec2",
        "hosts --endpoint inventory.ini",
    ),
)
def doctor(args: _CloudDoctorArguments) -> int:
    """Check credentials, quotas, regions and types; creates nothing."""
    from nephoscope.features.cloud.doctor import check

    result = check(opened(args.cloud), args.cloud.provider)
    if args.as_json:
        output.document(result)
    else:
        output.say(
            f"{args.cloud.provider}: the credentials of {result.account} are valid; "
            f"{plural(len(result.regions), 'region')}."
        )
        rows = [
            (str(row["region"]), ", ".join(row["zones"]) or "-", str(row["types"]))
            for row in result.regions
        ]
        output.say(output.table(("region", "zones", "types"), rows, right=(2,)))
        quotas = [
            (str(row["name"]), _number(row["used"]), _number(row["limit"])) for row in result.quotas
        ]
        if quotas:
            output.say(output.table(("quota", "used", "limit"), quotas, right=(1, 2)))
        for sentence in result.errors:
            output.warn(sentence)
    return NOT_CLEAN if result.errors else 0


@dataclass(frozen=True, slots=True)
class _UpArguments:
    cloud: CloudChoice = CHOICE
    name: str = option("--name", "NAME", "Name of the rental.", required=True)
    region: str = option("--region", "REGION", "Region, by the cloud's name.", required=True)
    type: str = option("--type", "TYPE", "Type of the machines.", required=True)
    image: str = option("--image", "IMAGE", "Image that they boot, by id or name.", required=True)
    zone: str = option("--zone", "ZONE", "Zone [default: the cloud's choice].", default="")
    spot: bool = flag("--spot", "Rent on the spot market.")
    count: int = option("--count", options.Count(1, 1000), "Number of machines.", default=1)
    at_least: int | None = option(
        "--at-least", options.Count(1, 1000), "Fewer are worth nothing [default: all]."
    )
    network: str = option("--network", "NAME", "Network [default: the cloud's].", default="")
    login_from: str = option(
        "--login-from", "CIDR", "Network that may log in [default: this machine].", default=""
    )
    hours: float = option(
        "--hours",
        options.FiniteRange(0.05, 720),
        "After which they power themselves off.",
        default=1.0,
    )
    money: float | None = option(
        "--money", options.FiniteRange(0, min_open=True), "Most that the rental may cost."
    )
    currency: str = option("--currency", "CODE", "Currency of --money.", default="USD")
    machine_hours: float | None = option(
        "--machine-hours", options.FiniteRange(0, min_open=True), "Most machines times hours."
    )
    accept_unknown_price: bool = flag(
        "--accept-unknown-price", "Rent also what has no known price."
    )
    dry_run: bool = flag("--dry-run", "Print what would be created, its price and time.")
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("rented_machines", RentedMachines),
    requests=Excluded("rents"),
    examples=(
        "ec2 --name try --region eu-west-1 --type t3.micro --image 'debian-12-amd64-*' "
        "--money 1 --dry-run",
        "hosts --endpoint inventory.ini --name two --region hosts --type web --image "
        "installed --count 2 --hours 1",
    ),
)
def up(args: _UpArguments) -> None:
    """Rent machines that stay until `cloud down`.

    All or none: after a failure everything is removed again. Each is reached with a key of its own
    and a host key that was made here.
    """
    from nephoscope.measure.provisioning import SpendingLimit, create_within

    rentals = opened(args.cloud)
    spec = carried_out(rentals.checked(_spec(args)))
    began = time.monotonic()
    if args.dry_run:
        _preview(rentals, spec, as_json=args.as_json)
        return
    limit = (
        None if args.money is None else SpendingLimit(args.money, args.currency, args.machine_hours)
    )
    quote = rentals.quote(spec)
    if quote is not None and limit is None:
        raise UsageError(
            f"These machines cost up to {quote.cost(spec.hours):.2f} {quote.currency} until their "
            "time ends, and no limit is set.",
            "Add --money AMOUNT.",
        )
    made = carried_out(create_within(rentals, spec, hours=spec.hours, limit=limit, say=output.log))
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "id": machine.id,
            "type": machine.type,
            "region": machine.region,
            "zone": machine.zone,
            "address": machine.address,
            "ready_s": made.boot_s.get(name),
        }
        for name, machine in made.machines.items()
    ]
    elapsed_s = time.monotonic() - began
    if args.as_json:
        output.document(_rented(spec, rows, quote, made.expires_s, elapsed_s))
        return
    output.say(
        f"Rental {made.name} is up: {plural(len(rows), 'machine')} ({elapsed_s:.1f} s), until "
        f"{as_time(made.expires_s)}. Remove it with `nephoscope cloud down {made.name}`."
    )
    rows_shown = [
        (row["name"], row["id"], row["address"], _seconds(row["ready_s"])) for row in rows
    ]
    output.say(output.table(("name", "id", "address", "first login"), rows_shown, right=(3,)))


def _spec(args: _UpArguments) -> RentalSpec:
    from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

    market: Any = "spot" if args.spot else "on demand"
    machines = MachineGroup(
        "m",
        args.region,
        args.type,
        args.image,
        zone=args.zone,
        market=market,
        count=args.count,
        at_least=args.at_least,
        network=args.network,
    )
    return RentalSpec(
        args.name,
        (machines,),
        hours=args.hours,
        lease_s=3600 * args.hours,
        login_from=args.login_from,
        accept_unknown_price=args.accept_unknown_price,
        is_kept=True,
    )


def _preview(rentals: Rentals, spec: RentalSpec, *, as_json: bool) -> None:
    quote = rentals.quote(spec)
    rows = [
        {
            "name": name,
            "type": rental.type,
            "region": rental.region,
            "zone": rental.zone,
            "image": rental.image,
        }
        for rental in spec.groups
        for name in rental.hosts()
    ]
    if as_json:
        output.document(_rented(spec, rows, quote, time.time() + 3600 * spec.hours, None))
        return
    cost = "no price" if quote is None else f"up to {quote.cost(spec.hours):.2f} {quote.currency}"
    kinds = sorted(rentals.provider.traits.kinds)
    output.say(
        f"Nothing was created. {plural(len(rows), 'machine')} for "
        f"{units.format_duration(3600 * spec.hours)} would cost: {cost}. Resources of the kinds "
        f"{', '.join(kinds)} carry the tags of rental {spec.name}."
    )
    rows_shown = [(row["name"], row["type"], row["region"], row["zone"] or "any") for row in rows]
    output.say(output.table(("name", "type", "region", "zone"), rows_shown))


def _rented(
    spec: RentalSpec,
    rows: Sequence[dict[str, Any]],
    quote: Quote | None,
    expires_s: float,
    elapsed_s: float | None,
) -> RentedMachines:
    cost = None if quote is None else quote.cost(spec.hours)
    currency = "" if quote is None else quote.currency
    return RentedMachines(spec.name, tuple(rows), as_time(expires_s), cost, currency, elapsed_s)


@dataclass(frozen=True, slots=True)
class _CloudListArguments:
    cloud: CloudChoice = CHOICE
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("rentals", RentalList),
    requests=Excluded("asks a cloud"),
    examples=(
        "ec2",
        "hosts --endpoint inventory.ini",
    ),
)
def list_(args: _CloudListArguments) -> None:
    """List rentals: state, machines, and what is left of ended ones."""
    result = opened(args.cloud).existing()
    rows = [
        {
            "name": rental.name,
            "state": rental.state,
            "machines": list(rental.hosts),
            "since": None if rental.since is None else as_time(rental.since),
            "problem": rental.problem,
        }
        for rental in result
    ]
    if args.as_json:
        output.document(RentalList(tuple(rows)))
    elif not result:
        output.say(f"Nothing is rented from {args.cloud.provider} in any region of this account.")
    else:
        rows_shown = [
            (rental.name, rental.state, str(len(rental.hosts)), rental.problem or "-")
            for rental in result
        ]
        output.say(output.table(("name", "state", "machines", "problem"), rows_shown, right=(2,)))


def _seconds(value: float | None) -> str:
    return "not tried" if value is None else f"{value:.1f} s"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def as_time(seconds: float) -> str:
    """Returns a moment, in seconds since the epoch, as UTC in ISO 8601."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
