"""`census` of `nephoscope cloud`: which CPUs a cloud gives for a type, and how fast they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import flag, option, repeated
from nephoscope.core import units
from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.core.naming import plural
from nephoscope.features.cloud.choice import (
    BOOT,
    CHOICE,
    CloudChoice,
    carried_out,
    opened,
    words_of,
)
from nephoscope.features.cloud.command import cloud

if TYPE_CHECKING:
    from nephoscope.features.cloud.census import Campaign, CensusSpec
    from nephoscope.features.cloud.census_records import CloudCensus
    from nephoscope.measure.cloud.rental import Rentals
    from nephoscope.store import Store

INCOMPLETE = 3


@dataclass(frozen=True, slots=True)
class _CloudCensusArguments:
    cloud: CloudChoice = CHOICE
    types: Sequence[str] = repeated("--type", "TYPE", "Type of the machines.", required=True)
    region: str = option("--region", "REGION", "Region, by the cloud's name.", required=True)
    zones: str = option(
        "--zones", "A,B", "Zones, separated by commas [default: the cloud's choice].", default=""
    )
    image: str = option("--image", "IMAGE", "Image that they boot, by id or name.", required=True)
    count: int = option(
        "--count",
        options.Count(1, 1000),
        "Number of machines of each type in each zone.",
        required=True,
    )
    at_once: int = option(
        "--at-once",
        options.Count(1, 64),
        "Maximum number of machines at the same time.",
        default=16,
    )
    every: float | None = option(
        "--every", options.duration("1 s", "30 d"), "Time from one wave of machines to the next."
    )
    duration: float | None = option(
        "--for", options.duration("1 s", "365 d"), "Time over which waves are repeated."
    )
    spot: bool = flag("--spot", "Rent on the spot market.")
    budget: float = option(
        "--budget",
        options.duration("1 s", "1 h"),
        "Maximum time to measure one machine.",
        default="25s",
    )
    boot: float = BOOT
    network: str = option("--network", "NAME", "Network [default: the cloud's].", default="")
    login_from: str = option(
        "--login-from", "CIDR", "Network that may log in [default: this machine].", default=""
    )
    money: float | None = option(
        "--money", options.FiniteRange(0, min_open=True), "Most that the whole census may cost."
    )
    currency: str = option("--currency", "CODE", "Currency of --money.", default="USD")
    fresh: bool = flag("--fresh", "Start a new census even if one of this command is unfinished.")
    dry_run: bool = flag("--dry-run", "Print what would be created and its price.")
    confidence: float = options.CONFIDENCE
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("cloud_census", ".features.cloud.census_records:CloudCensus"),
    requests=Excluded("rents machines"),
    examples=(
        "ec2 --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 --count 10 "
        "--money 1 --dry-run",
        "ec2 --region us-east-1 --zones us-east-1a,us-east-1b --type t3.micro --image "
        "ami-0123456789abcdef0 --count 10 --money 1",
    ),
)
def census(args: _CloudCensusArguments) -> int:
    """Rent machines, count their CPU models and measure them.

    Machines are launched in random order, in batches, and removed; each batch is a stored run,
    which `nephoscope census` reads too. A census that was ended goes on with the same command.
    """
    from nephoscope.cli.kit.section_output import present
    from nephoscope.features.cloud.census_result import result_of
    from nephoscope.features.cloud.census_section import section
    from nephoscope.store import Store

    spec = _spec(args)
    campaign = campaign_of(
        args.cloud, spec, Store(args.store), fresh=args.fresh, dry_run=args.dry_run
    )
    if campaign is None:
        return 0
    result = result_of(campaign, spec, confidence=args.confidence)
    present(result, section(result), as_json=args.as_json, to=args.to, source=args.cloud.provider)
    return _exit_code(result)


def campaign_of(
    cloud: CloudChoice, spec: CensusSpec, store: Store, *, fresh: bool, dry_run: bool
) -> Campaign | None:
    """Returns a census that was carried out as far as it got; None for a preview, which is printed.

    Raises UsageError without a limit, RunFailed where no machine was measured.
    """
    from nephoscope.features.cloud import census as campaigns

    rentals = opened(cloud)
    cpus = carried_out(_offered(rentals, spec))
    if dry_run:
        _preview(rentals, spec)
        return None
    if rentals.provider.traits.rents and spec.money is None:
        raise UsageError(
            "These machines are rented, and no spending limit is set.",
            "Add --money; --dry-run prints the price.",
        )
    campaign = campaigns.run(spec, store, cpus, fresh=fresh)
    if not campaign.measured:
        why = " ".join(campaigns.problems_of(campaign)) or campaign.stopped
        raise RunFailed(
            f"The census has no machine that was measured: {why}",
            f"See what is left with `nephoscope cloud list {words_of(cloud)}`.",
        )
    return campaign


def _exit_code(result: CloudCensus) -> int:
    if result.measured < result.planned:
        why = result.stopped or " ".join(result.problems)
        output.warn(
            f"{result.measured} of {plural(result.planned, 'planned machine')} were measured. {why}"
        )
        return INCOMPLETE
    return 0


def _spec(args: _CloudCensusArguments) -> CensusSpec:
    from nephoscope.features.cloud.census import CensusSpec, plan_waves
    from nephoscope.measure.cloud.provider import CloudSettings

    zones = [zone.strip() for zone in args.zones.split(",")] if args.zones else []
    for what, names in (("--zones", zones), ("--type", list(args.types))):
        if "" in names or len(set(names)) < len(names):
            raise UsageError(f"{what} names something twice, or nothing.", "Write each name once.")
    waves, every_s = plan_waves(args.duration, args.every)
    return CensusSpec(
        CloudSettings(args.cloud.provider, args.cloud.endpoint, args.cloud.profile),
        args.region,
        tuple(args.types),
        tuple(zones),
        args.image,
        args.count,
        market="spot" if args.spot else "on demand",
        waves=waves,
        every_s=every_s,
        at_once=args.at_once,
        budget_s=args.budget,
        boot_s=args.boot,
        money=args.money,
        currency=args.currency,
        network=args.network,
        login_from=args.login_from,
    )


async def _offered(rentals: Rentals, spec: CensusSpec) -> dict[str, int]:
    """Returns the CPUs of each type, after the whole census was held against the cloud."""
    from nephoscope.features.cloud.census import rental_of

    await rentals.checked(rental_of(spec))
    types = await rentals.calls.repeat(lambda: rentals.provider.types(spec.region))
    return {entry.name: max(1, int(entry.vcpus)) for entry in types if entry.name in spec.types}


def _preview(rentals: Rentals, spec: CensusSpec) -> None:
    from nephoscope.features.cloud.census import rental_of

    rental = carried_out(rentals.checked(rental_of(spec)))
    quote = rentals.quote(rental)
    machines = len(rental.groups) * spec.count * spec.waves
    cost = "no price"
    if quote is not None:
        cost = f"up to {spec.waves * quote.cost(rental.hours):.2f} {quote.currency}"
    each = units.format_duration(3600 * rental.hours)
    output.say(
        f"Nothing was created. {plural(machines, 'machine')} in {plural(spec.waves, 'wave')}, "
        f"each for up to {each}, would cost: {cost}."
    )
    rows = [(entry.type, entry.zone or "any", str(spec.count)) for entry in rental.groups]
    output.say(output.table(("type", "zone", "machines a wave"), rows, right=(2,)))
