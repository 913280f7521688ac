"""A rental held against what the cloud offers, before anything is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nephoscope.core.errors import UsageError
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

_SHOWN = 8


async def checked(calls: CloudCalls, spec: RentalSpec, cloud: str) -> RentalSpec:
    """Returns the rental with the ids of its images; `cloud` is the provider's word.

    Raises UsageError for what the cloud does not have, with the nearest name that it has;
    CloudError where it does not answer.
    """
    _check_names(spec)
    regions = await calls.repeat(calls.provider.regions)
    groups = [await _checked(calls, cloud, group, regions) for group in spec.groups]
    return replace(spec, groups=tuple(groups))


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
    calls: CloudCalls, cloud: str, group: MachineGroup, regions: Sequence[str]
) -> MachineGroup:
    provider = calls.provider
    _known("region", group.region, regions, cloud)
    if group.market not in provider.traits.markets:
        raise UsageError(
            f"{cloud} rents no machines on the market '{group.market}'.",
            f"Write {' or '.join(provider.traits.markets)}.",
        )
    where = f"{cloud} in {group.region}"
    zones = await calls.repeat(lambda: provider.zones(group.region))
    if group.zone:
        _known("zone", group.zone, zones, where)
    types = {one.name: one for one in await calls.repeat(lambda: provider.types(group.region))}
    _known("type", group.type, types, where)
    offered = types[group.type].zones
    if group.zone and offered and group.zone not in offered:
        raise UsageError(
            f"{group.type} is not offered in {group.zone}.", f"It is in {', '.join(offered)}."
        )
    image = await calls.repeat(lambda: provider.image(group.region, group.image))
    return replace(group, image=image)


def _known(what: str, name: str, known: Iterable[str], where: str) -> None:
    names = list(known)
    if name in names:
        return
    near = did_you_mean(name, names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    shown = ", ".join(names[:_SHOWN]) + more if names else f"it has no {what} at all"
    raise UsageError(f"{where} has no {what} '{name}'{near}.", f"It has: {shown}.")
