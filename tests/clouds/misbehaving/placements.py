"""Placement groups.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-groups.html
"""

from __future__ import annotations

from typing import Any

from . import catalogue
from .calls import Call, action, described, named, tag_list, tags_for
from .cloud import Resource
from .errors import ApiError

STRATEGIES = ("cluster", "partition", "spread")
SPREAD_MOST = 7
"""Instances of a spread group in one zone."""


@action("CreatePlacementGroup")
def create_placement_group(call: Call) -> dict[str, Any]:
    name, strategy = call.p.get("GroupName", ""), call.p.get("Strategy", "cluster")
    if not name or len(name) > 255 or not name.isascii():
        raise ApiError("InvalidParameterValue", f"The name '{name}' is not valid")
    if strategy not in STRATEGIES:
        raise ApiError("InvalidParameterValue", f"Invalid value '{strategy}' for strategy.")
    if any(each.data["name"] == name for each in call.all("placement-group", call.now)):
        raise ApiError(
            "InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists."
        )
    made = call.cloud.add(
        "placement-group", call.region, tags=tags_for(call, "placement-group"), name=name,
        strategy=strategy,
    )  # fmt: skip
    return {"PlacementGroup": _shown(made, call.now)}


def _shown(each: Resource, at: float) -> dict[str, Any]:
    return {
        "GroupName": each.data["name"],
        "GroupId": each.id,
        "State": "available",
        "Strategy": each.data["strategy"],
        "Tags": tag_list(each, at),
    }


@action("DescribePlacementGroups")
def describe_placement_groups(call: Call) -> dict[str, Any]:
    fields = {
        "group-name": lambda r, at: r.data["name"],
        "strategy": lambda r, at: r.data["strategy"],
    }
    return described(
        call, "placement-group", call.p.get("GroupIds", ()), fields, _shown, "PlacementGroups",
        names=call.p.get("GroupNames", ()),
    )  # fmt: skip


@action("DeletePlacementGroup")
def delete_placement_group(call: Call) -> dict[str, Any]:
    group = named(call, "placement-group", call.p.get("GroupName", ""), call.at)
    # "You must terminate all instances in the placement group before you can delete" it:
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeletePlacementGroup.html
    if members(call, group):
        name = group.data["name"]
        raise ApiError("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use")
    group.gone = call.now
    return {}


def members(call: Call, group: Resource) -> list[Resource]:
    """The instances in a group that are not terminated."""
    return [
        each
        for each in call.cloud.resources.values()
        if each.kind == "instance"
        and each.region == group.region
        and each.data["placement"].get("GroupName") == group.data["name"]
        and each.state(call.now) != "terminated"
    ]


def check(call: Call, type_name: str, zone: str, count: int) -> None:
    """Raises ApiError where a launch does not fit the group that it names."""
    name = call.p.get("Placement", {}).get("GroupName")
    if not name:
        return
    group = named(call, "placement-group", name, call.at)
    strategy = group.data["strategy"]
    if strategy not in catalogue.strategies(type_name):
        # "Cluster placement groups are not supported by the 't3.micro' instance type."
        raise ApiError(
            "InvalidParameterCombination",
            f"{strategy.capitalize()} placement groups are not supported by the '{type_name}' "
            "instance type. Specify a supported instance type or change the placement group "
            "strategy, and try again.",
        )
    present = members(call, group)
    if strategy == "cluster" and any(each.zone != zone for each in present):
        # "A cluster placement group can't span multiple Availability Zones."
        raise ApiError(
            "InsufficientInstanceCapacity",
            f"The placement group '{name}' has no capacity in the Availability Zone {zone}.",
            500,
        )
    in_zone = [each for each in present if each.zone == zone]
    if strategy == "spread" and len(in_zone) + count > SPREAD_MOST:
        raise ApiError(
            "PlacementGroupSpreadLimitExceeded",
            f"A spread placement group has at most {SPREAD_MOST} running instances per "
            "Availability Zone.",
        )
