"""Tags of what is made in EC2, from the first moment where the cloud can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nephoscope.measure.cloud.model import Tags
from nephoscope.measure.cloud.providers import ec2_listing
from nephoscope.measure.cloud.providers.ec2_calls import Ec2Calls


def tagging(calls: Ec2Calls, region: str, tags: Tags, *kinds: str) -> dict[str, Any]:
    """Returns the parameter that tags what a call makes; nothing for older clouds."""
    if not calls.is_modern(region):
        return {}
    made = ec2_listing.tag_list(tags)
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": made} for kind in kinds]}


def tag_afterwards(calls: Ec2Calls, region: str, tags: Tags, ids: Sequence[str]) -> None:
    """Tags what older clouds have made."""
    if not calls.is_modern(region):
        made = ec2_listing.tag_list(tags)
        calls.call("create_tags", region, Resources=list(ids), Tags=made)
