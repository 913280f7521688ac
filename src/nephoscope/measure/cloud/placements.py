"""Placement groups of a rental: made before the machines that are to lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.model import PlacementGroupRequest, Tags
from nephoscope.measure.cloud.spec import MachineGroup


async def in_placements(
    calls: CloudCalls, groups: Sequence[MachineGroup], tags: Tags, folder: RentalFolder
) -> list[MachineGroup]:
    """Returns groups of machines with the placement groups that were made for them: one for each
    region, zone and kind."""
    made: dict[tuple[str, str, str], str] = {}
    placed = []
    for group in groups:
        if group.placement is None:
            placed.append(group)
            continue
        key = (group.region, group.zone, group.placement)
        if key not in made:
            request = PlacementGroupRequest(group.region, tags, group.placement)
            made[key] = (await calls.make(request, folder))[0].id
        placed.append(replace(group, placement_group=made[key]))
    return placed
