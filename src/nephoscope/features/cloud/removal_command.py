"""`down` and `sweep` of `nephoscope cloud`: removal that the cloud's lists confirm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import argument, flag, option
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.features.cloud.choice import CHOICE, CloudChoice, carried_out, opened, words_of
from nephoscope.features.cloud.command import NOT_CLEAN, as_time, cloud
from nephoscope.features.cloud.records import SweptResources
from nephoscope.features.cloud.rented_options import BucketOptions

if TYPE_CHECKING:
    from nephoscope.measure.cloud.model import CloudResource
    from nephoscope.measure.cloud.result_bucket import BucketSettings
    from nephoscope.measure.cloud.sweep import Swept


@dataclass(frozen=True, slots=True)
class _DownArguments:
    name: str = argument(metavar="NAME")
    provider: str | None = argument(required=False, metavar="[PROVIDER]")
    endpoint: str = option("--endpoint", "URL", "As of `cloud up`.", default="")
    profile: str = option("--profile", "NAME", "As of `cloud up`.", default="")
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("swept", SweptResources),
    requests=Excluded("removes machines"),
    examples=(
        "night",
        "night ec2",
    ),
)
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
    bucket: BucketOptions = options.group(BucketOptions)
    dry_run: bool = flag("--dry-run", "Only list what would be removed.")
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("swept", SweptResources),
    requests=Excluded("removes machines"),
    examples=(
        "ec2 --dry-run",
        "ec2 --all",
    ),
)
def sweep(args: _SweepArguments) -> int:
    """Find by tag what ended rentals left, and remove it.

    Removed is what has expired, and what belongs to a rental of this machine whose process has
    ended. It returns when the cloud's lists confirm the removal, else says what is left.
    """
    from nephoscope.measure.cloud.leftovers import SweepScope

    scope = SweepScope(args.owner, args.run, args.everything)
    results = args.bucket.settings()
    return _swept(
        args.cloud,
        scope,
        as_json=args.as_json,
        buckets=[] if results is None else [results],
        regions=args.regions,
        is_dry=args.dry_run,
    )


def _swept(
    choice: CloudChoice,
    scope: Any,
    *,
    as_json: bool,
    buckets: Sequence[BucketSettings] = (),
    **more: Any,
) -> int:
    from nephoscope.measure.cloud.leftovers import sweep_leftovers

    result = carried_out(sweep_leftovers(opened(choice, buckets), scope, say=output.log, **more))
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


def _resource(resource: CloudResource) -> dict[str, Any]:
    return {
        "kind": str(resource.kind),
        "id": resource.id,
        "region": resource.region,
        "rental": resource.tags.run,
        "owner": resource.tags.owner,
        "expires": as_time(resource.tags.expires_s),
    }
