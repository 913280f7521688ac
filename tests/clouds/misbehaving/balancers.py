"""Load balancers, as far as finding and removing them goes.

https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/Welcome.html
"""

from __future__ import annotations

from typing import Any

from . import catalogue
from .calls import Call, action, checked_tags, paged, tag_list
from .cloud import Resource
from .errors import ApiError

SERVICE = "elasticloadbalancing"


def _arn(each: Resource) -> str:
    return (
        f"arn:aws:elasticloadbalancing:{each.region}:{catalogue.ACCOUNT}:loadbalancer/net/"
        f"{each.data['name']}/{each.id}"
    )


@action("CreateLoadBalancer", SERVICE)
def create_load_balancer(call: Call) -> dict[str, Any]:
    # "This operation is idempotent, which means that it completes at most one time. If you attempt
    # to create multiple load balancers with the same settings, each call succeeds."
    name, tags = call.p["Name"], checked_tags(call.p.get("Tags", ()))
    for each in call.all("load-balancer", call.now):
        if each.data["name"] == name:
            return {"LoadBalancers": [_show(each)]}
    made = call.cloud.add("load-balancer", call.region, tags=tags, name=name)
    made.states = [(call.now, "provisioning"), (call.now + 5, "active")]
    return {"LoadBalancers": [_show(made)]}


def _show(each: Resource) -> dict[str, Any]:
    return {
        "LoadBalancerArn": _arn(each),
        "LoadBalancerName": each.data["name"],
        "CreatedTime": each.created,
        "Type": "network",
        "State": {"Code": "active"},
    }


@action("DescribeLoadBalancers", SERVICE)
def describe_load_balancers(call: Call) -> dict[str, Any]:
    found = sorted(call.all("load-balancer"), key=lambda each: each.id)
    pages = Call(
        call.cloud,
        call.region,
        call.action,
        {"MaxResults": call.p.get("PageSize", 400), "NextToken": call.p.get("Marker", "")},
        call.now,
        call.at,
    )
    page, token = paged(pages, found)
    return {
        "LoadBalancers": [_show(each) for each in page],
        **({"NextMarker": token} if token else {}),
    }


def _by_arn(call: Call, arn: str) -> Resource:
    for each in call.all("load-balancer"):
        if _arn(each) == arn:
            return each
    raise ApiError("LoadBalancerNotFound", f"Load balancer '{arn}' not found")


@action("DescribeTags", SERVICE)
def describe_tags(call: Call) -> dict[str, Any]:
    arns = call.p["ResourceArns"]
    if len(arns) > 20:
        raise ApiError("ValidationError", "You can specify up to 20 resources in a single call")
    return {
        "TagDescriptions": [
            {"ResourceArn": arn, "Tags": tag_list(_by_arn(call, arn), call.at)} for arn in arns
        ]
    }


@action("AddTags", SERVICE)
def add_tags(call: Call) -> dict[str, Any]:
    tags = checked_tags(call.p["Tags"])
    for arn in call.p["ResourceArns"]:
        each = _by_arn(call, arn)
        for key, value in tags.items():
            each.tag(call.now, key, value)
    return {}


@action("DeleteLoadBalancer", SERVICE)
def delete_load_balancer(call: Call) -> dict[str, Any]:
    # "If the load balancer does not exist or has already been deleted, the call succeeds."
    for each in call.all("load-balancer", call.now):
        if _arn(each) == call.p["LoadBalancerArn"]:
            each.gone = call.now
    return {}
