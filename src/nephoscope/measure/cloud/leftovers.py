"""What earlier rentals left behind: found by tag in every region, removed if nobody uses it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from nephoscope.core.errors import UsageError
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud import ended_rentals, machine_lives
from nephoscope.measure.cloud.intents import RentalFolder, folders
from nephoscope.measure.cloud.model import CloudResource
from nephoscope.measure.cloud.rental import Rentals
from nephoscope.measure.cloud.rental_state import own_name
from nephoscope.measure.cloud.sweep import PATIENCE_S, Swept, sweep
from nephoscope.measure.provisioning import UP, Say


@dataclass(frozen=True, slots=True)
class SweepScope:
    """Which leftovers are removed: those of `owner` that have expired, and those of rentals of this
    machine whose process has ended. Rentals that are kept stay until they expire.

    run: only of this rental, whatever its state, if its name says whose it is: two owners may have
    taken one name. everything: of the owner, whatever their state,
    but for what a process of this machine is using now.
    """

    owner: str = ""
    run: str = ""
    everything: bool = False


async def sweep_leftovers(
    rentals: Rentals,
    scope: SweepScope,
    *,
    say: Say,
    regions: Sequence[str] = (),
    is_dry: bool = False,
    patience_s: float = PATIENCE_S,
) -> Swept:
    """Removes leftovers and waits until listings confirm it; see `sweep.sweep`.

    regions: only there; all of the account when empty. is_dry: lists them, as remaining.
    """
    here = {entry.name: entry for entry in folders(rentals.root)}
    if not regions:
        regions = await rentals.calls.repeat(rentals.provider.regions)
    unused = [entry for entry in here.values() if _may_remove(entry, scope)]
    owner = await _owner(rentals, scope, here, regions)

    def wanted(resource: CloudResource) -> bool:
        run = resource.tags.run
        if scope.run and run != scope.run:
            return False
        if scope.run and owner in ("", resource.tags.owner):
            return True
        if resource.tags.owner != owner:
            return False
        has_expired = resource.tags.expires_s < time.time()
        if run in here:
            return here[run] in unused or (has_expired and not _is_in_use(here[run]))
        return scope.everything or has_expired

    if is_dry:
        resources = [
            entry for region in regions for entry in await rentals.calls.list(region, None)
        ]
        left = {entry: "" for entry in resources if wanted(entry)}
        return Swept(remaining=left, spared=[entry for entry in resources if entry not in left])
    swept = await sweep(
        rentals.calls,
        regions,
        run=scope.run or None,
        wanted=wanted,
        settled_s=partial(_settled_s, rentals, unused, scope, time.time()),
        say=say,
        patience_s=patience_s,
    )
    left_runs = {entry.tags.run for entry in swept.remaining}
    for folder in unused:
        if not swept.unlisted and folder.name not in left_runs and _is_of(folder, rentals):
            ended_rentals.append(folder, time.time())
            machine_lives.append(folder, time.time())
            folder.remove()
    return swept


async def _owner(
    rentals: Rentals,
    scope: SweepScope,
    here: Mapping[str, RentalFolder],
    regions: Sequence[str],
) -> str:
    """Returns whose resources are removed; '' where a rental is named and nobody else has one of
    that name. Raises UsageError where several do, and while a process uses the rental."""
    if scope.run in here and here[scope.run].is_held():
        raise UsageError(
            f"Another process is using the rental {scope.run}.", "Wait for it, or end it."
        )
    if scope.owner or not scope.run:
        return scope.owner or own_name()
    if scope.run in here and (known := here[scope.run].read().get("owner")):
        return str(known)
    owners = sorted(
        {
            resource.tags.owner
            for region in regions
            for resource in await rentals.calls.list(region, scope.run)
        }
    )
    if len(owners) > 1:
        raise UsageError(
            f"Rentals named {scope.run} belong to {' and '.join(owners)}.",
            "Say whose is meant: `nephoscope cloud sweep PROVIDER --run NAME --owner OWNER`.",
        )
    return ""


def _may_remove(folder: RentalFolder, scope: SweepScope) -> bool:
    """Returns whether nobody uses a rental of this machine, as far as the scope asks."""
    if scope.run:
        return folder.name == scope.run
    if folder.is_held() or folder.refusal() is not None:
        return False
    known = folder.read()
    is_kept = known.get("phase") == UP and known.get("is_kept")
    return scope.everything or not is_kept or known.get("expires_s", 0) < time.time()


def _is_in_use(folder: RentalFolder) -> bool:
    """Returns whether a process uses a rental, or a later program made it. Of others the machines
    may have expired while their results are still wanted."""
    return folder.is_held() or folder.refusal() is not None


def _is_of(folder: RentalFolder, rentals: Rentals) -> bool:
    """Returns whether a folder's rental was in this cloud: another one was not listed."""
    known = folder.read().get("cloud")
    return known is None or known == asdict(rentals.settings)


def _settled_s(
    rentals: Rentals, unused: Sequence[RentalFolder], scope: SweepScope, began_s: float
) -> float:
    """Returns from when on a listing shows everything that was asked for."""
    traits = rentals.provider.traits
    if scope.run and not unused:
        # Asked for elsewhere, who knows when.
        return began_s + max(traits.settle_s, traits.late_s)
    times = [entry.settled_s(traits.settle_s, traits.late_s) for entry in unused]
    return max((at for at in times if at is not None), default=0.0)
