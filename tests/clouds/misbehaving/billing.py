"""What everything has cost so far.

Instances by the second, "with a minimum of 60 seconds", from `pending`'s end to `shutting-down` or
`stopping`: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
#lifecycle-billing. Volumes, snapshots and addresses from their creation to their deletion:
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/elastic-ip-addresses-eip.html
"""

from __future__ import annotations

from . import catalogue
from .cloud import Cloud, Resource

MINIMUM_S = 60.0


def bill(cloud: Cloud, at: float) -> dict[str, float]:
    """Id -> dollars up to a time."""
    return {each.id: cost(each, at) for each in cloud.owned()}


def cost(each: Resource, at: float) -> float:
    """Dollars that a resource has cost up to a time."""
    if each.kind == "instance":
        return _instance(each, at)
    hours = max(0.0, min(at, each.gone) - each.created) / 3600
    if each.kind == "volume":
        return (
            hours
            * each.data["size"]
            * catalogue.VOLUME_TYPES[each.data["type"]][2]
            / catalogue.MONTH_H
        )
    if each.kind == "snapshot":
        return hours * each.data["size"] * catalogue.SNAPSHOT_GIB_MONTH / catalogue.MONTH_H
    if each.kind == "elastic-ip":
        return hours * catalogue.ADDRESS_H
    if each.kind == "load-balancer":
        return hours * catalogue.BALANCER_H
    return 0.0


def running(each: Resource, at: float) -> list[tuple[float, float]]:
    """When an instance ran: (from, to) up to a time."""
    spans = []
    ends = [since for since, _ in each.states[1:]] + [at]
    for (since, state), until in zip(each.states, ends, strict=True):
        if state == "running" and since < at:
            spans.append((since, min(until, at)))
    return spans


def _instance(each: Resource, at: float) -> float:
    total = 0.0
    spans = running(each, at)
    # "If your Spot Instance is ... interrupted by Amazon EC2 in the first hour after it was
    # launched, you're not charged": https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/
    # billing-for-interrupted-spot-instances.html
    ended = each.since("shutting-down")
    if each.data.get("interrupted") and ended <= at and spans and ended - spans[0][0] < 3600:
        return 0.0
    for since, until in spans:
        type_name = [name for from_, name in each.data["types"] if from_ <= since][-1]
        seconds = max(until - since, MINIMUM_S)
        if each.data["spot"]:
            hourly = catalogue.spot_hourly(each.zone, type_name, since)
        else:
            hourly = catalogue.hourly(each.region, type_name)
        # A public IPv4 address in use is billed like one that is not.
        total += seconds / 3600 * (hourly + catalogue.ADDRESS_H)
    return total
