"""A rental held against what the cloud offers, before anything is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.model import Kind, MachineType
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

_NAMES_LISTED = 8

PATIENCE_S = 20.0
"""For how long a question is repeated while nothing is rented yet: somebody waits for it."""


async def checked(calls: CloudCalls, spec: RentalSpec, cloud: str) -> RentalSpec:
    """Returns the rental with the ids of its images; `cloud` is the provider's word.

    Raises UsageError for what the cloud does not have, with the nearest name that it has;
    CloudError where it does not answer.
    """
    if spec.is_checked:
        return spec
    _check_names(spec)
    regions = await calls.repeat(calls.provider.regions, PATIENCE_S)
    offers: dict[str, _Offer] = {}
    for region in sorted({group.region for group in spec.groups}):
        _known("region", region, regions, cloud)
        offers[region] = await _Offer.of(calls, region)
    groups = [await _checked(calls, cloud, group, offers[group.region]) for group in spec.groups]
    return replace(spec, groups=tuple(groups), is_checked=True)


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a region has."""

    zones: Sequence[str]
    types: Mapping[str, MachineType]

    @classmethod
    async def of(cls, calls: CloudCalls, region: str) -> _Offer:
        zones = await calls.repeat(lambda: calls.provider.zones(region), PATIENCE_S)
        types = await calls.repeat(lambda: calls.provider.types(region), PATIENCE_S)
        return cls(zones, {entry.name: entry for entry in types})


def _check_names(spec: RentalSpec) -> None:
    hosts = [name for group in spec.groups for name in group.hosts()]
    for name in hosts:
        if hosts.count(name) > 1:
            raise UsageError(
                f"Two machines of {spec.name} are named {name}.", "Name their groups apart."
            )
    if not spec.groups:
        raise UsageError(f"Nothing is to be rented for {spec.name}.", "Name at least one group.")


async def _checked(
    calls: CloudCalls, cloud: str, group: MachineGroup, offer: _Offer
) -> MachineGroup:
    provider = calls.provider
    if group.market not in provider.traits.markets:
        raise UsageError(
            f"{cloud} rents no machines on the market '{group.market}'.",
            f"Write {' or '.join(provider.traits.markets)}.",
        )
    if group.volumes and Kind.VOLUME not in provider.traits.kinds:
        raise UsageError(
            f"{cloud} makes no volumes that could be attached to a machine.",
            "Measure the machine's own disk with `disk.io`, or take another cloud.",
        )
    if not {Kind.VOLUME, Kind.SNAPSHOT} <= provider.traits.kinds and any(
        volume.is_copied for volume in group.volumes
    ):
        raise UsageError(f"{cloud} makes no snapshots of volumes.", "Leave out volume.restore.")
    where = f"{cloud} in {group.region}"
    _check_placement(calls, cloud, group, offer)
    if group.zone:
        _known("zone", group.zone, offer.zones, where)
    if offer.types:  # Some clouds do not list them; they refuse an unknown one themselves.
        _known("type", group.type, offer.types, where)
    offered = offer.types[group.type].zones if offer.types else ()
    if group.zone and offered and group.zone not in offered:
        raise UsageError(
            f"{group.type} is not offered in {group.zone}.", f"It is in {', '.join(offered)}."
        )
    image = await calls.repeat(lambda: provider.image(group.region, group.image), PATIENCE_S)
    return replace(group, image=image)


def _check_placement(calls: CloudCalls, cloud: str, group: MachineGroup, offer: _Offer) -> None:
    """Raises UsageError where a group is to be in a placement group in which it cannot be."""
    if group.placement is None:
        return
    made = calls.provider.traits.placements
    if group.placement not in made:
        raise UsageError(
            f"{cloud} has no placement group of kind {group.placement}.",
            f"It has: {', '.join(made)}." if made else "It has none of any kind.",
        )
    allowed = offer.types[group.type].placements if group.type in offer.types else None
    if allowed is not None and group.placement not in allowed:
        raise UsageError(
            f"{group.type} cannot be in a {group.placement} placement group.",
            "Take another type, "
            + (f"or a group of kind {' or '.join(allowed)}." if allowed else "or no group."),
        )


def _known(what: str, name: str, known: Iterable[str], where: str) -> None:
    names = list(known)
    if name in names:
        return
    near = did_you_mean(name, names)
    more = f" and {len(names) - _NAMES_LISTED} more" if len(names) > _NAMES_LISTED else ""
    listed = ", ".join(names[:_NAMES_LISTED]) + more if names else f"it has no {what} at all"
    raise UsageError(f"{where} has no {what} '{name}'{near}.", f"It has: {listed}.")
