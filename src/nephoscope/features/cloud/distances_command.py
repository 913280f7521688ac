"""`distances` of `nephoscope cloud`: round trip and throughput between places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options
from nephoscope.cli.kit.command import Excluded, command
from nephoscope.cli.kit.documents import PREVIEW, RESULT
from nephoscope.cli.kit.options import Count, duration, option, repeated
from nephoscope.cli.kit.run_options import RunOptions
from nephoscope.core.errors import UsageError
from nephoscope.features.cloud.command import cloud
from nephoscope.features.cloud.rented_options import MachineOptions

if TYPE_CHECKING:
    from nephoscope.measure.targets.kinds.rented import RentedRecord

_SPARE = 3.0
"""The default of --budget as a multiple of the time of all trials, plus that to begin."""
_BEGIN_S = 300.0


@dataclass(frozen=True, slots=True)
class _PlacedOptions(MachineOptions):
    """Machines that may be at several places, each with a region of its own."""

    region: str = option("--region", "REGION", "Region of --zone, by the cloud's name.", default="")
    types: Sequence[str] = repeated("--type", "TYPE", "Type of the machines.")
    images: Sequence[str] = repeated("--image", "IMAGE", "Image that they boot, by id or name.")


@dataclass(frozen=True, slots=True)
class _DistancesArguments:
    machines: _PlacedOptions = options.group(_PlacedOptions)
    zones: Sequence[str] = repeated("--zone", "ZONE", "Zone of --region.")
    places: Sequence[str] = repeated(
        "--place", "PLACE", "[PROVIDER:]REGION[/ZONE][,KEY=VALUE...], also of another cloud."
    )
    placements: Sequence[str] = repeated(
        "--placement",
        click.Choice(["none", "cluster", "spread", "partition"]),
        "Compare pairs of machines within each place by their placement group.",
    )
    benchmarks: Sequence[str] = repeated(
        "--benchmark", "NAME", "Measure also this at each place, for `cloud where`."
    )
    rounds: int = option("--repetitions", Count(6, 1000), "Trials of each pair.", default=8)
    duration_s: float = option(
        "--duration", duration("200 ms", "10 min"), "Time of a trial.", default="1s"
    )
    transfer: int | None = option(
        "--transfer",
        options.SIZE,
        "Carried by a trial of throughput [default: between zones 256 MB, between regions and "
        "clouds 16 MB, else --duration].",
    )
    streams: int = option("--streams", Count(1, 128), "TCP connections of a trial.", default=1)
    per_gib_out: float | None = option(
        "--per-gib-out",
        options.FiniteRange(0),
        "Price of a GiB that leaves a region or cloud [default: the cloud's list].",
    )
    per_gib_zones: float | None = option(
        "--per-gib-zones",
        options.FiniteRange(0),
        "Price of a GiB between zones of a region [default: the cloud's list].",
    )
    run: RunOptions = options.group(RunOptions)


@command(
    cloud,
    prints={"": RESULT, "--dry-run": PREVIEW},
    requests=Excluded("rents machines"),
    examples=(
        "ec2 --region us-east-1 --type m5.large --image ami-0123456789abcdef0 --zone "
        "us-east-1a --zone us-east-1b --money 3 --dry-run",
        "ec2 --type m5.large --image debian-12 --place us-east-1/us-east-1a --place eu-west-1"
        " --money 3",
    ),
)
def distances(args: _DistancesArguments) -> int:
    """Measure round trip and throughput between places.

    Rents one machine at each place (zone, region or cloud) and measures each pair in both
    directions, pairs in random order. The firewalls of the machines let in exactly one another. The
    machines are removed in the end. With --placement, two machines for each kind of placement group
    are measured within each place instead.
    """
    from nephoscope.features.cloud.distance_section import text_of
    from nephoscope.features.cloud.distances import DistanceRequest, pairs_of, plan_of

    request = DistanceRequest(
        _records(args),
        args.rounds,
        args.duration_s,
        args.transfer,
        args.streams,
        tuple(dict.fromkeys(args.benchmarks)),
    )
    trials_s = 3 * (args.rounds + 1) * sum(request.trial_s(*pair) + 1 for pair in pairs_of(request))
    plan = plan_of(
        request,
        budget=args.run.budget or _BEGIN_S + _SPARE * trials_s,
        seed=args.run.seed,
        **args.machines.spending(),
    )
    return args.run.carry_out(plan, text_of)


def _records(args: _DistancesArguments) -> list[RentedRecord]:
    """Returns the places of a command line. Raises UsageError."""
    from nephoscope.features.cloud.places import check_distinct, place_of

    shared = args.machines.shared()
    shared |= _traffic_prices(args)
    records = [*_zones(args), *(place_of(text, shared) for text in args.places)]
    if not records:
        raise UsageError(
            "No place is named.", "Repeat --place REGION[/ZONE], or give --region and --zone."
        )
    check_distinct([machine for record in records for machine in record.each()])
    if not args.placements:
        return records
    kinds = tuple(dict.fromkeys(args.placements))
    if "none" not in kinds or len(kinds) < 2:
        raise UsageError(
            "A placement group is compared with machines in none.",
            "Give --placement none and --placement cluster (or spread, partition).",
        )
    return [record.model_copy(update={"placement": kinds, "count": 2}) for record in records]


def _zones(args: _DistancesArguments) -> list[RentedRecord]:
    """Returns the zones of --zone. Raises UsageError."""
    machines = args.machines
    if not args.zones:
        if machines.region and not args.places:
            raise UsageError(
                f"The region {machines.region} alone is no place.",
                "Repeat --zone, or write --place for each region.",
            )
        return []
    needed = {"--region": machines.region, "--type": machines.types, "--image": machines.images}
    for name, value in needed.items():
        if not value:
            raise UsageError(f"--zone needs {name}.", f"Give {name}, or write --place.")
    for zone in args.zones:
        if args.zones.count(zone) > 1:
            raise UsageError(
                f"{zone} is named twice.",
                "Name each place once; --repetitions measures it more often.",
            )
    record = machines.record(tuple(args.zones))
    return [record.model_copy(update=_traffic_prices(args))]


def _traffic_prices(args: _DistancesArguments) -> dict[str, float]:
    """Returns the prices of traffic that a command line states, by the key of a rented target."""
    stated = {"per_gib_out": args.per_gib_out, "per_gib_zones": args.per_gib_zones}
    return {key: price for key, price in stated.items() if price is not None}
