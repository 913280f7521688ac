"""`fleet` and `collect` of `nephoscope cloud`: machines that work alone, and their results."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import Count, FiniteRange, argument, option, repeated
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.features.cloud.choice import CloudChoice, carried_out, opened
from nephoscope.features.cloud.command import as_time, cloud
from nephoscope.features.cloud.rented_options import BucketOptions, MachineOptions

if TYPE_CHECKING:
    from nephoscope.features.cloud.fleet import FleetSpec
    from nephoscope.features.cloud.fleet_records import FleetCollection, LaunchedFleet
    from nephoscope.measure.cloud.rental import Rental, Rentals
    from nephoscope.measure.plans import Plan
    from nephoscope.measure.provisioning import Quote
    from nephoscope.store import StoredRun

INCOMPLETE = 3
_ROWS = 40
"""Machines of which something is missing, as many as are listed."""


@dataclass(frozen=True, slots=True)
class _CloudFleetArguments:
    machines: MachineOptions = options.group(MachineOptions)
    bucket: BucketOptions = options.group(BucketOptions)
    name: str = option("--name", "NAME", "Name of the fleet.", required=True)
    zones: Sequence[str] = repeated("--zone", "ZONE", "Zone [default: the cloud's choice].")
    count: int = option(
        "--count",
        Count(1, 1000),
        "Number of machines of each type, image and zone.",
        required=True,
    )
    at_least: int | None = option(
        "--at-least", Count(1, 1000), "Fewer machines are worth nothing [default: all]."
    )
    hours: float = option(
        "--hours",
        FiniteRange(0.05, 167),
        "After which each machine powers itself off, done or not.",
        default=1.0,
    )
    benchmark: str = option(
        "--bench", "ID", "Benchmark to run [default: those of a census].", default=""
    )
    values: dict[str, str] = options.SETS
    plan: Path | None = option("--plan", options.PATH, "Plan file whose benchmarks to run.")
    rounds: int | None = option(
        "--repetitions", Count(1, 1000), "Repetitions of each benchmark [default: the plan's]."
    )
    seed: int | None = options.SEED
    accept_unknown_price: bool = options.flag(
        "--accept-unknown-price", "Rent also what has no known price."
    )
    dry_run: bool = options.flag("--dry-run", "Print what would be created, its price and time.")
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("launched_fleet", ".features.cloud.fleet_records:LaunchedFleet"),
    requests=Excluded("rents machines"),
    examples=(
        "ec2 --name night --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 "
        "--count 4 --hours 1 --bucket s3://results/fleets --money 1 --dry-run",
        "ec2 --name night --region us-east-1 --type t3.micro --image ami-0123456789abcdef0 "
        "--count 4 --hours 1 --bucket s3://results/fleets --money 1 --bench cpu.hash",
    ),
)
def fleet(args: _CloudFleetArguments) -> int:
    """Launch machines that measure and store their results alone.

    Nobody logs in to them, and no port is open. When the command returns, this machine may be
    switched off. `nephoscope cloud collect` gathers the results at any time.
    """
    from nephoscope.features.cloud import fleet as fleets
    from nephoscope.measure.provisioning import SpendingLimit
    from nephoscope.store import Store

    rentals, spec = _prepared(args)
    rental = carried_out(rentals.checked(spec.rental()))
    quote = rentals.quote(rental)
    if args.dry_run:
        _say_launched(_launched(spec, quote, None, None), rentals, as_json=args.as_json)
        return 0
    money = args.machines.money
    if quote is not None and money is None:
        raise UsageError(
            f"These machines cost up to {quote.cost(spec.hours):.2f} {quote.currency} until their "
            "time ends, and no limit is set.",
            "Add --money AMOUNT.",
        )
    limit = None if money is None else SpendingLimit(money, args.machines.currency)
    run, made = carried_out(fleets.launch(spec, rentals, Store(args.store), limit, output.log))
    document = _launched(spec, quote, run, made)
    _say_launched(document, rentals, as_json=args.as_json)
    return INCOMPLETE if document.missing else 0


def _prepared(args: _CloudFleetArguments) -> tuple[Rentals, FleetSpec]:
    """Returns what is launched, held against nothing but this program yet. Raises UsageError."""
    from nephoscope.features.cloud.fleet import FleetSpec, plan_of
    from nephoscope.measure.cloud.result_bucket import ResultBucket
    from nephoscope.measure.cloud.unattended import require_user_data

    bucket = args.bucket.settings()
    if bucket is None:
        raise UsageError(
            "A fleet stores its results in a bucket, and none is named.",
            "Add --bucket s3://NAME/PREFIX; `nephoscope cloud census` needs none.",
        )
    if not re.fullmatch(r"[a-z0-9]([a-z0-9_-]{0,38}[a-z0-9])?", args.name):
        raise UsageError(
            f"'{args.name[:60]}' is no name of a fleet.",
            "Write up to 40 lower-case letters, digits, - and _.",
        )
    if args.machines.login_from:
        raise UsageError("Nobody logs in to the machines of a fleet.", "Leave out --login-from.")
    rentals = opened(args.machines.cloud)
    require_user_data(rentals.provider.traits, args.machines.cloud.provider)
    source = _source(args)
    zones = tuple(dict.fromkeys(args.zones)) or ("any",)
    record = args.machines.record(zones).model_copy(update={"count": args.count})
    records = list(record.each())
    if args.at_least is not None and args.at_least > len(records):
        raise UsageError(
            f"--at-least {args.at_least} is more than the {len(records)} machines that are asked "
            "for.",
            "Lower it, or raise --count.",
        )
    types = carried_out(rentals.calls.repeat(lambda: rentals.provider.types(args.machines.region)))
    cpus = {entry.name: max(1, int(entry.vcpus)) for entry in types}
    plan = plan_of(records, cpus, source, args.rounds)
    if args.seed is not None:
        plan = plan.model_copy(update={"seed": args.seed})
    spec = FleetSpec(
        args.name,
        plan,
        args.hours,
        len(records) if args.at_least is None else args.at_least,
        ResultBucket(bucket),
        args.accept_unknown_price,
    )
    return rentals, spec


def _source(args: _CloudFleetArguments) -> Plan | None:
    """Returns the plan whose benchmarks are run; None for those of a census."""
    from nephoscope.measure import plans

    if args.plan is not None and (args.benchmark or args.values):
        raise UsageError(
            "--plan excludes --bench and --set.", "Write the parameters into the plan."
        )
    if args.values and not args.benchmark:
        raise UsageError("--set needs a benchmark.", "Add --bench ID.")
    if args.plan is not None:
        return plans.load(args.plan)
    if not args.benchmark:
        return None
    single = plans.single(args.benchmark, args.values, rounds=args.rounds or 10)
    entries = [entry.model_copy(update={"on": ()}) for entry in single.benchmarks]
    return single.model_copy(update={"benchmarks": tuple(entries)})


def _launched(
    spec: FleetSpec, quote: Quote | None, run: StoredRun | None, rental: Rental | None
) -> LaunchedFleet:
    from nephoscope import catalog
    from nephoscope.features.cloud.fleet_records import LaunchedFleet
    from nephoscope.measure import plans
    from nephoscope.measure.runs.unattended_jobs import batches_of

    known = catalog.load()
    planned = batches_of(spec.plan, plans.expand(spec.plan, known), known, 0)
    names = [target.name for target in spec.machines]
    return LaunchedFleet(
        spec.name,
        None if run is None else run.id,
        spec.bucket.url,
        tuple(names if rental is None else sorted(rental.machines)),
        {} if rental is None else {entry.group: entry.reason for entry in rental.shortfalls},
        sum(map(len, planned.values())),
        # The first batch of each machine has its fingerprint, which is no trial of the plan.
        sum(len(batch.trials) for batches in planned.values() for batch in batches[1:]),
        None if quote is None else quote.cost(spec.hours),
        "" if quote is None else quote.currency,
        as_time(time.time() + 3600 * spec.hours if rental is None else rental.expires_s),
    )


def _say_launched(document: LaunchedFleet, rentals: Rentals, *, as_json: bool) -> None:
    if as_json:
        output.document(document)
        return
    cost = "no price" if document.cost is None else f"up to {document.cost:.2f} {document.currency}"
    work = (
        f"{plural(document.trials, 'trial')} in {_batches(document.batches)}, "
        f"each an object in {document.bucket}"
    )
    machines = plural(len(document.machines), "machine")
    if document.run is None:
        output.say(
            f"Nothing was created. {machines} of {rentals.settings.provider} would run {work}, "
            f"until {document.ends} at the latest, for {cost}. No key pair, no open port."
        )
        return
    output.say(
        f"Fleet {document.name} works: {machines}, until {document.ends} at the latest, for "
        f"{cost}. They run {work}."
    )
    for name, reason in document.missing.items():
        output.warn(f"{name} was not granted: {reason}.")
    output.say(
        f"Collect with `nephoscope cloud collect {document.name}`, now or later, into run "
        f"{document.run}."
    )


def _batches(count: int) -> str:
    return f"{count} batch{'' if count == 1 else 'es'}"


@dataclass(frozen=True, slots=True)
class _CollectArguments:
    name: str = argument(metavar="NAME")
    provider: str | None = argument(required=False, metavar="[PROVIDER]")
    endpoint: str = option("--endpoint", "URL", "As of `cloud fleet`.", default="")
    profile: str = option("--profile", "NAME", "As of `cloud fleet`.", default="")
    bucket: BucketOptions = options.group(BucketOptions)
    end: bool = options.flag(
        "--end", "Give up what has not arrived, and remove the machines that still work."
    )
    store: Path | None = options.STORE
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("fleet_collection", ".features.cloud.fleet_records:FleetCollection"),
    requests=Excluded("asks a cloud"),
    examples=(
        "night",
        "night --end",
    ),
)
def collect(args: _CollectArguments) -> int:
    """Gather what a fleet has stored so far into its run.

    When nothing more comes, the run is finished, and everything that was rented and stored in the
    bucket is removed. PROVIDER and --bucket are needed for a fleet that another machine launched.
    """
    from nephoscope.features.cloud.fleet_collection import collect as collected
    from nephoscope.measure.cloud.bucket_listing import bucket_of
    from nephoscope.measure.cloud.intents import RentalFolder
    from nephoscope.measure.cloud.result_bucket import ResultBucket
    from nephoscope.store import Store

    folder = RentalFolder(args.name)
    known = folder.read()
    here = bucket_of(folder)
    bucket = args.bucket.settings() or (here[0] if here is not None else None)
    if bucket is None or (args.provider is None and not known.get("cloud")):
        raise UsageError(
            f"There is no fleet named {args.name} of this machine.",
            f"Name its cloud and its bucket: `nephoscope cloud collect {args.name} PROVIDER "
            "--bucket s3://NAME/PREFIX`.",
        )
    choice = (
        CloudChoice(**known["cloud"])
        if args.provider is None
        else CloudChoice(args.provider, args.endpoint, args.profile)
    )
    store = Store(args.store or (Path(known["store"]) if known.get("store") else None))
    work = collected(
        opened(choice, [bucket]), ResultBucket(bucket), store, args.name, is_ended=args.end
    )
    result, stored = carried_out(work)
    if result.is_final:
        _report(stored)
    if args.as_json:
        output.document(result)
    else:
        _say_collected(result)
    return 0 if result.is_final and not result.trials_missing else INCOMPLETE


def _report(stored: StoredRun) -> None:
    """Writes the report of a run that has ended and has a result."""
    from nephoscope.cli.kit import measuring
    from nephoscope.store import MEASURED

    if stored.state == MEASURED:
        measuring.reported(stored)


def _say_collected(result: FleetCollection) -> None:
    machines = plural(len(result.machines), "machine")
    output.say(
        f"Fleet {result.name}: {result.machines_complete} of {machines} complete, {result.batches} "
        f"of {_batches(result.batches_planned)} arrived.\n"
        f"Trials: {result.trials_planned} planned = {result.trials_done} done + "
        f"{result.trials_failed} failed + {result.trials_missing} missing; {result.trials_valid} "
        "of those done count."
    )
    rows = [
        (entry.name, entry.id or "-", entry.state or "-", entry.why)
        for entry in result.machines
        if entry.why
    ]
    if rows:
        output.say(output.table(("machine", "id", "state", "missing"), rows[:_ROWS]))
    if len(rows) > _ROWS:
        output.say(f"{len(rows) - _ROWS} more are in the output of --json.")
    for name, why in result.refused.items():
        output.warn(f"The object {name} was not used: {why}.")
    if result.is_final:
        output.say(
            f"Run {result.run} has the results (`nephoscope show {result.run}`). What was rented "
            "and stored in the bucket is removed; the lists confirm it."
        )
    else:
        output.say(
            f"Run {result.run} has what arrived so far. Machines still work; collect again later, "
            f"or give the rest up with `nephoscope cloud collect {result.name} --end`."
        )
