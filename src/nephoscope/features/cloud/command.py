"""`nephoscope cloud`: rent machines, find them again, remove them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command, group
from nephoscope.cli.kit.options import argument, flag, option
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.features.cloud.choice import CHOICE, CloudChoice, carried_out, opened, words_of
from nephoscope.features.cloud.records import (
    CloudBill,
    CloudCheck,
    RentalList,
    RentedMachines,
    SweptResources,
)

if TYPE_CHECKING:
    from nephoscope.measure.cloud.model import CloudResource
    from nephoscope.measure.cloud.rental import Rentals
    from nephoscope.measure.cloud.spec import RentalSpec
    from nephoscope.measure.cloud.sweep import Swept
    from nephoscope.measure.provisioning import Quote

NOT_CLEAN = 3


@group()
def cloud() -> None:
    """Rent machines from clouds and remove them."""


@dataclass(frozen=True, slots=True)
class _CloudDoctorArguments:
    cloud: CloudChoice = CHOICE
    as_json: bool = options.JSON


@command(cloud, prints=Document("cloud_check", CloudCheck), requests=Excluded("asks a cloud"))
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


@command(cloud, prints=Document("rented_machines", RentedMachines), requests=Excluded("rents"))
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
        f"{_time(made.expires_s)}. Remove it with `nephoscope cloud down {made.name}`."
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
    return RentedMachines(spec.name, tuple(rows), _time(expires_s), cost, currency, elapsed_s)


@dataclass(frozen=True, slots=True)
class _CloudListArguments:
    cloud: CloudChoice = CHOICE
    as_json: bool = options.JSON


@command(cloud, prints=Document("rentals", RentalList), requests=Excluded("asks a cloud"))
def list_(args: _CloudListArguments) -> None:
    """List rentals: state, machines, and what is left of ended ones."""
    result = opened(args.cloud).existing()
    rows = [
        {
            "name": rental.name,
            "state": rental.state,
            "machines": list(rental.hosts),
            "since": None if rental.since is None else _time(rental.since),
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


@dataclass(frozen=True, slots=True)
class _DownArguments:
    name: str = argument(metavar="NAME")
    provider: str | None = argument(required=False, metavar="[PROVIDER]")
    endpoint: str = option("--endpoint", "URL", "As of `cloud up`.", default="")
    profile: str = option("--profile", "NAME", "As of `cloud up`.", default="")
    as_json: bool = options.JSON


@command(cloud, prints=Document("swept", SweptResources), requests=Excluded("removes machines"))
def down(args: _DownArguments) -> int:
    """Remove a rental and wait until the cloud's lists confirm it.

    PROVIDER is needed for a rental that another machine or user made.
    """
    from nephoscope.measure.cloud.intents import RentalFolder
    from nephoscope.measure.cloud.leftovers import SweepScope

    if args.provider is not None:
        choice = CloudChoice(args.provider, args.endpoint, args.profile)
    else:
        folder = RentalFolder(args.name)
        if (refusal := folder.refusal()) is not None:
            raise UsageError(*refusal)
        known = folder.read().get("cloud")
        if known is None:
            raise UsageError(
                f"There is no rental named {args.name} of this machine.",
                f"Name its cloud: `nephoscope cloud down {args.name} PROVIDER`.",
            )
        choice = CloudChoice(**known)
    return _swept(choice, SweepScope(run=args.name), as_json=args.as_json)


@dataclass(frozen=True, slots=True)
class _SweepArguments:
    cloud: CloudChoice = CHOICE
    run: str = option("--run", "NAME", "Only this rental, whatever its state.", default="")
    owner: str = option("--owner", "NAME", "Whose [default: user and host name].", default="")
    everything: bool = flag("--all", "Also what has not expired, but for rentals in use here.")
    regions: Sequence[str] = options.repeated("--region", "REGION", "Only this region.")
    dry_run: bool = flag("--dry-run", "Only list what would be removed.")
    as_json: bool = options.JSON


@command(cloud, prints=Document("swept", SweptResources), requests=Excluded("removes machines"))
def sweep(args: _SweepArguments) -> int:
    """Find by tag what ended rentals left, and remove it.

    Removed is what has expired, and what belongs to a rental of this machine whose process has
    ended. It returns when the cloud's lists confirm the removal, else says what is left.
    """
    from nephoscope.measure.cloud.leftovers import SweepScope

    scope = SweepScope(args.owner, args.run, args.everything)
    return _swept(
        args.cloud, scope, as_json=args.as_json, regions=args.regions, is_dry=args.dry_run
    )


def _swept(choice: CloudChoice, scope: Any, *, as_json: bool, **more: Any) -> int:
    from nephoscope.measure.cloud.leftovers import sweep_leftovers

    result = carried_out(sweep_leftovers(opened(choice), scope, say=output.log, **more))
    is_dry = more.get("is_dry", False)
    if as_json:
        output.document(
            SweptResources(
                tuple(map(_resource, result.removed)),
                tuple(
                    {**_resource(rental), "error": why} for rental, why in result.remaining.items()
                ),
                tuple(map(_resource, result.spared)),
                tuple({"region": name, "error": why} for name, why in result.unlisted.items()),
            )
        )
    else:
        _say_swept(result, choice, is_dry=is_dry)
    if is_dry:
        return 0
    if not as_json:
        result.require_clean(f"nephoscope cloud sweep {words_of(choice)}")
    return 0 if result.is_clean else NOT_CLEAN


def _say_swept(result: Swept, choice: CloudChoice, *, is_dry: bool) -> None:
    rows_shown = list(result.remaining) if is_dry else result.removed
    verb = "Would remove" if is_dry else "Removed"
    sentence = (
        f"{verb} {plural(len(rows_shown), 'resource')}" if rows_shown else "Found nothing to remove"
    )
    confirmed = "" if is_dry or not result.is_clean else "; the lists of all regions confirm it"
    output.say(f"{sentence}{confirmed}.")
    if rows_shown:
        rows = [
            (str(rental.kind), rental.id, rental.region, rental.tags.run) for rental in rows_shown
        ]
        output.say(output.table(("kind", "id", "region", "rental"), rows))
    if result.spared:
        runs = sorted({rental.tags.run for rental in result.spared})
        output.say(
            f"Left alone: {plural(len(result.spared), 'resource')} of {', '.join(runs[:8])}, "
            "in use, not expired or another owner's. Remove one with "
            f"`nephoscope cloud sweep {words_of(choice)} --run NAME`."
        )


@dataclass(frozen=True, slots=True)
class _BillArguments:
    file: Path = argument(options.PATH, metavar="BILL.csv")
    as_json: bool = options.JSON


@command(cloud, prints=Document("cloud_bill", CloudBill), requests=Excluded("reads a local file"))
def bill(args: _BillArguments) -> None:
    """Print what rentals cost by a bill in the FOCUS format.

    The quotes of rentals that this machine made stand beside it.
    """
    from nephoscope.features.cloud import bill as billing
    from nephoscope.measure.cloud import ended_rentals

    result = billing.read(args.file, ended_rentals.read())
    if args.as_json:
        rows = tuple(asdict(rental) for rental in result.rentals)
        output.document(CloudBill(rows, dict(result.left_out)))
        return
    total = sum(rental.billed for rental in result.rentals)
    currency = result.rentals[0].currency
    output.say(
        f"{plural(len(result.rentals), 'rental')} cost {total:.2f} {currency} by the bill."
        if len({rental.currency for rental in result.rentals}) == 1
        else f"{plural(len(result.rentals), 'rental')} in several currencies."
    )
    output.say(
        output.table(
            ("rental", "billed", "quoted", "rows", "days"),
            [
                (
                    rental.name,
                    f"{rental.billed:.2f} {rental.currency}",
                    "unknown" if rental.quoted is None else f"{rental.quoted:.2f}",
                    str(rental.rows),
                    rental.first
                    if rental.first == rental.last
                    else f"{rental.first} to {rental.last}",
                )
                for rental in result.rentals
            ],
            right=(1, 2, 3),
        )
    )
    for reason, count in result.left_out.items():
        output.say(f"Not used: {plural(count, 'row')} {reason}.")


@dataclass(frozen=True, slots=True)
class _PolicyArguments:
    provider: str = argument(metavar="PROVIDER")


@command(cloud)
def policy(args: _PolicyArguments) -> None:
    """Print the permissions that renting needs."""
    from nephoscope.measure.cloud.providers import policy_of

    output.say(json.dumps(policy_of(args.provider), indent=2))


def _resource(resource: CloudResource) -> dict[str, Any]:
    return {
        "kind": str(resource.kind),
        "id": resource.id,
        "region": resource.region,
        "rental": resource.tags.run,
        "owner": resource.tags.owner,
        "expires": _time(resource.tags.expires_s),
    }


def _seconds(value: float | None) -> str:
    return "not tried" if value is None else f"{value:.1f} s"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
