"""`pick` of `nephoscope cloud`: launch machines until one is worth keeping."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.named import RUN
from nephoscope.cli.kit.options import flag, option, repeated
from nephoscope.core.errors import UsageError
from nephoscope.features.cloud.choice import (
    BOOT,
    CHOICE,
    CloudChoice,
    carried_out,
    opened,
)
from nephoscope.features.cloud.command import cloud

if TYPE_CHECKING:
    from nephoscope.features.cloud.picking import MachineSearch, SpeedMix
    from nephoscope.features.cloud.speeds import SpeedLine
    from nephoscope.measure.cloud.rental import Rentals
    from nephoscope.measure.cloud.spec import RentalSpec
    from nephoscope.measure.provisioning import Quote
    from nephoscope.store import Store

LAUNCH, RESTART = "launch", "stop-start"
UNKNOWN_LAUNCH_S = 60.0
SEARCH_H = 0.5
"""For which the kept machine is rented beside its hours of work: the search itself."""


@dataclass(frozen=True, slots=True)
class _PickArguments:
    cloud: CloudChoice = CHOICE
    type: str = option("--type", "TYPE", "Type of the machines.", required=True)
    region: str = option("--region", "REGION", "Region, by the cloud's name.", required=True)
    zone: str = option("--zone", "ZONE", "Zone [default: the cloud's choice].", default="")
    image: str = option("--image", "IMAGE", "Image that they boot, by id or name.", required=True)
    spot: bool = flag("--spot", "Rent on the spot market.")
    hours: float = option(
        "--hours",
        options.FiniteRange(0.05, 720),
        "Hours of work on an average machine, for which the kept one is rented.",
        required=True,
    )
    at_most: int = option(
        "--at-most", options.Count(1, 100), "Maximum number of launches.", default=5
    )
    best: bool = flag(
        "--best",
        "Keep the best machine while others are tried, so that two are billed at a time; without, "
        "a machine is removed before the next launch.",
    )
    at_once: int = option(
        "--at-once",
        options.Count(1, 20),
        "Number of machines launched at the same time.",
        default=1,
    )
    by: str = option(
        "--by",
        click.Choice((LAUNCH, RESTART)),
        "How to get another machine: launch one, or stop and start the one that is there.",
        default=LAUNCH,
    )
    benchmark: str = option(
        "--bench", "ID", "Benchmark by which machines are compared.", default="cpu.pi"
    )
    values: dict[str, str] = options.SETS
    census: Sequence[str] = repeated(
        "--census", RUN, "Stored run with the known mix [default: all of this type]."
    )
    trial: float | None = option(
        "--trial",
        options.duration("1 s", "1 h"),
        "Expected time from a launch to its measured speed [default: of stored launches].",
    )
    budget: float = option(
        "--budget",
        options.duration("1 s", "1 h"),
        "Maximum time to measure a machine.",
        default="25s",
    )
    boot: float = BOOT
    name: str = option(
        "--name", "NAME", "Name of the rental [default: pick-TYPE-TIME].", default=""
    )
    network: str = option("--network", "NAME", "Network [default: the cloud's].", default="")
    login_from: str = option(
        "--login-from", "CIDR", "Network that may log in [default: this machine].", default=""
    )
    money: float | None = option(
        "--money",
        options.FiniteRange(0, min_open=True),
        "Most that the search and the hours of the kept machine may cost.",
    )
    currency: str = option("--currency", "CODE", "Currency of --money.", default="USD")
    confidence: float = options.CONFIDENCE
    to: Path | None = options.REPORT_FILE
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("picked_machine", ".features.cloud.pick_records:PickedMachine"),
    requests=Excluded("rents machines"),
    examples=(
        "ec2 --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 --best "
        "--at-most 5 --hours 20 --money 1 --name fast",
        "ec2 --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 --by stop-start"
        " --hours 20 --money 1",
    ),
)
def pick(args: _PickArguments) -> int:
    """Launch machines until one is fast enough, and keep it.

    The others are removed. A machine is kept as soon as another launch would cost more than it is
    expected to save over --hours of work, by the speeds of the stored machines of this type
    (`nephoscope cloud census` measures them). Without them, all of --at-most are launched. The
    expected saving is printed beside the real one.
    """
    from nephoscope.cli.kit.section_output import present
    from nephoscope.features.cloud import candidates as sources
    from nephoscope.features.cloud import pick as picks
    from nephoscope.features.cloud.pick_section import section
    from nephoscope.store import Store

    _require_possible(args)
    # What is stored is read first: nothing is asked of a cloud for a run that cannot be used.
    store = Store(args.store)
    plan = picks.plan_of(args.benchmark, args.values, args.budget)
    line, mix, mix_text = _mix(args, store)
    trial_h = _trial_h(args, store)
    rentals = opened(args.cloud)
    spec = carried_out(rentals.checked(_spec(args)))
    quote = _quote(rentals, spec, args)
    search = _search(args, quote, trial_h, has_mix=mix is not None)
    source_of = sources.Restarts if args.by == RESTART else sources.Candidates
    cpus = carried_out(_cpus(rentals, args))
    labels = {"pick": spec.name}
    measure = sources.BenchmarkMeasure(
        plan, args.benchmark, line, store, labels, cpus, args.cloud.provider
    )
    spending = sources.Spending(quote, spec.hours, trial_h, args.money)
    source = source_of(rentals, spec, measure, line, spending, output.log)
    output.log(f"Mix: {mix_text}.")
    outcome = carried_out(picks.pick(source, search, mix, quote, output.log, args.confidence))
    assert source.selected is not None
    result = picks.document(
        outcome,
        source,
        provider=args.cloud.provider,
        region=args.region,
        type=args.type,
        by=args.by,
        hours=args.hours,
        mix=mix_text,
        mix_machines=len(mix.seconds) if mix else 0,
        at_most=args.at_most,
        currency=search.currency,
        expires=f"{datetime.fromtimestamp(source.selected.expires_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
        remove=f"nephoscope cloud down {source.selected.name}",
    )
    return present(
        result, section(result), as_json=args.as_json, to=args.to, source=args.cloud.provider
    )


def _require_possible(args: _PickArguments) -> None:
    if args.by == RESTART and (args.best or args.at_once > 1):
        raise UsageError(
            "A machine that is stopped and started takes the place of the one before.",
            "Leave out --best and --at-once, or launch machines: --by launch.",
        )
    if args.at_once > args.at_most:
        raise UsageError("--at-once is more than --at-most.", "Lower --at-once.")


def _spec(args: _PickArguments) -> RentalSpec:
    from nephoscope.features.cloud.candidates import LEASE_S
    from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec
    from nephoscope.measure.targets.kinds.record import as_name

    name = args.name or f"pick-{as_name(args.type)}-{time.strftime('%Y%m%dt%H%M%S', time.gmtime())}"
    group = MachineGroup(
        "m",
        args.region,
        args.type,
        args.image,
        zone=args.zone,
        market="spot" if args.spot else "on demand",
        network=args.network,
    )
    hours = args.hours + SEARCH_H
    return RentalSpec(
        name,
        (group,),
        hours=hours,
        lease_s=min(LEASE_S, 3600 * hours),
        login_from=args.login_from,
        boot_s=args.boot,
    )


def _quote(rentals: Rentals, spec: RentalSpec, args: _PickArguments) -> Quote | None:
    quote = rentals.quote(spec)
    if quote is None:
        return None
    if args.money is None:
        raise UsageError(
            f"A machine is rented for {quote.per_h:.4g} {quote.currency} an hour, and no spending "
            "limit is set.",
            "Add --money.",
        )
    if quote.currency != args.currency:
        raise UsageError(
            f"The spending limit is in {args.currency}, the price in {quote.currency}.",
            f"Add --currency {quote.currency}.",
        )
    return quote


def _trial_h(args: _PickArguments, store: Store) -> float:
    """Returns the expected hours from a launch to a measured speed."""
    if args.trial is not None:
        return args.trial / 3600
    from nephoscope.features.census.command import stored_runs
    from nephoscope.features.cloud.census_result import mean_launch_s

    launch_s = mean_launch_s(stored_runs(store, args.census), args.type)
    return ((UNKNOWN_LAUNCH_S if launch_s is None else launch_s) + args.budget) / 3600


def _search(
    args: _PickArguments, quote: Quote | None, trial_h: float, *, has_mix: bool
) -> MachineSearch:
    from nephoscope.features.cloud.picking import MachineSearch

    per_h, currency = (0.0, args.currency) if quote is None else (quote.per_h, quote.currency)
    if quote is not None and quote.per_h > 0:
        trial_h = quote.cost(trial_h) / quote.per_h
    # Without a mix nothing says when to stop: the best of all launches is kept.
    recall = args.by == LAUNCH and (args.best or not has_mix)
    return MachineSearch(
        args.hours, trial_h, args.at_most, per_h, currency, args.at_once, recall=recall
    )


def _mix(args: _PickArguments, store: Store) -> tuple[SpeedLine | None, SpeedMix | None, str]:
    """Returns the line that is compared, the mix, and where it is from or why there is none."""
    from nephoscope.features.census.command import stored_runs
    from nephoscope.features.cloud import speeds
    from nephoscope.features.cloud.pick import mix_for

    runs = stored_runs(store, args.census)
    known_mix = mix_for(speeds.of_type(runs, args.benchmark, args.type), args.type)
    if isinstance(known_mix, str):
        if args.census or args.by == RESTART:
            raise UsageError(
                f"{known_mix}, so that nothing says which machine is worth keeping.",
                "Measure some first with `nephoscope cloud census`, or name their runs: --census.",
            )
        return None, None, f"{known_mix}: all {args.at_most} are launched"
    line, mix = known_mix
    return line, mix, mix.source


async def _cpus(rentals: Rentals, args: _PickArguments) -> int:
    types = await rentals.calls.repeat(lambda: rentals.provider.types(args.region))
    return next((max(1, int(entry.vcpus)) for entry in types if entry.name == args.type), 1)
