"""Decides whether an IAM policy allows a call, as far as the policy of this project uses IAM.

Which resources and condition keys belong to an action:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import catalogue, wire
from .calls import Call, tags_for
from .cloud import Resource
from .errors import ApiError

Target = tuple[str, dict[str, str]]
"""An ARN, and the values of condition keys for it."""

CREATED = {
    "RunInstances": ("instance", "volume", "network-interface"),
    "CreateVolume": ("volume",),
    "CreateSnapshot": ("snapshot",),
    "CreateImage": ("image", "snapshot"),
    "ImportKeyPair": ("key-pair",),
    "CreateSecurityGroup": ("security-group",),
    "AuthorizeSecurityGroupIngress": ("security-group-rule",),
    "CreatePlacementGroup": ("placement-group",),
    "AllocateAddress": ("elastic-ip",),
    "CreateLaunchTemplate": ("launch-template",),
}
"""Action -> kinds of what it makes."""

NAMED = ("InstanceId", "VolumeId", "SnapshotId", "GroupId", "KeyPairId", "AllocationId",
         "NetworkInterfaceId", "LaunchTemplateId", "ImageId")  # fmt: skip
"""Parameters that name a resource on which the action needs a permission."""


def authorise(policy: Mapping[str, Any], service: str, call: Call) -> None:
    """Raises ApiError where no statement allows the call."""
    name = f"{service}:{call.action}"
    for arn, context in _targets(service, call):
        if not _allowed(policy, name, arn, context):
            raise _refused(name, arn)
    for kind in CREATED.get(call.action, ()):
        # Tags at creation need a permission of their own: "ec2:CreateTags", with ec2:CreateAction.
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/supported-iam-actions-tagging.html
        if tags := tags_for(call, kind):
            context = _request_tags(tags) | {"ec2:CreateAction": call.action}
            arn = _arn(call, kind, "*")
            if not _allowed(policy, "ec2:CreateTags", arn, context):
                raise _refused("ec2:CreateTags", arn)


def _refused(name: str, arn: str) -> ApiError:
    return ApiError(
        "UnauthorizedOperation",
        f"You are not authorized to perform this operation. User is not authorized to perform: "
        f"{name} on resource: {arn} because no identity-based policy allows the {name} action.",
        403,
    )


def _arn(call: Call, kind: str, id: str) -> str:
    account = "" if kind == "image" and id != "*" else catalogue.ACCOUNT
    return f"arn:aws:ec2:{call.region}:{account}:{kind}/{id}"


def _request_tags(tags: Mapping[str, str]) -> dict[str, str]:
    return {f"aws:RequestTag/{key}": value for key, value in tags.items()}


def _existing(call: Call, each: Resource | None, kind: str, id: str) -> Target:
    tags = each.tags_at(call.now) if each is not None else {}
    return _arn(call, kind, id), {f"ec2:ResourceTag/{key}": value for key, value in tags.items()}


def _targets(service: str, call: Call) -> Iterator[Target]:
    """Every resource on which the call needs a permission; "*" where the action has none."""
    if call.action.startswith(("Describe", "Get")) and call.action != "GetConsoleOutput":
        yield "*", {}
    elif service == "elasticloadbalancing":
        yield from _balancers(call)
    elif call.action == "DeletePlacementGroup":
        for each in call.all("placement-group", call.now):
            if each.data["name"] == call.p.get("GroupName"):
                yield _existing(call, each, each.kind, each.data["name"])
    elif call.action == "DeleteKeyPair":
        yield from _key_pairs(call, call.p.get("KeyName", ""))
    else:
        yield from _made(call)
        yield from _named(call)
        if call.action == "RunInstances":
            yield from _launched_from(call)
        if call.action == "CreateSecurityGroup":
            yield _arn(call, "vpc", "vpc-0default"), {}


def _balancers(call: Call) -> Iterator[Target]:
    for arn in call.p.get("ResourceArns") or [call.p["LoadBalancerArn"]]:
        each = call.cloud.resources.get(arn.rpartition("/")[2])
        tags = each.tags_at(call.now) if each else {}
        yield arn, {f"aws:ResourceTag/{key}": value for key, value in tags.items()}


def _key_pairs(call: Call, name: str) -> Iterator[Target]:
    for each in call.all("key-pair", call.now):
        if each.data["name"] == name:
            yield _existing(call, each, "key-pair", name)


def _made(call: Call) -> Iterator[Target]:
    for kind in CREATED.get(call.action, ()):
        context = _request_tags(tags_for(call, kind))
        if kind == "instance":
            tokens = call.p.get("MetadataOptions", {}).get("HttpTokens", "optional")
            context["ec2:MetadataHttpTokens"] = tokens
        yield _arn(call, kind, "*"), context


def _named(call: Call) -> Iterator[Target]:
    p = call.p
    ids = [*p.get("InstanceIds", ()), *p.get("SecurityGroupIds", ()), *p.get("Resources", ())]
    for id in ids + [p[name] for name in NAMED if name in p]:
        each = call.cloud.resources.get(id)
        if each is not None:
            arn, context = _existing(call, each, each.kind, id)
            if call.action == "CreateTags":
                context |= _request_tags({t["Key"]: t["Value"] for t in p.get("Tags", ())})
            yield arn, context


def _launched_from(call: Call) -> Iterator[Target]:
    yield _arn(call, "subnet", "subnet-0default"), {}
    if group := call.p.get("Placement", {}).get("GroupName"):
        yield _arn(call, "placement-group", group), {}
    if name := call.p.get("KeyName"):
        yield from _key_pairs(call, name)
    if call.p.get("InstanceMarketOptions", {}).get("MarketType") == "spot":
        tags = tags_for(call, "spot-instances-request")
        yield _arn(call, "spot-instances-request", "*"), _request_tags(tags)


def _allowed(policy: Mapping[str, Any], action: str, arn: str, context: Mapping[str, str]) -> bool:
    return any(
        statement["Effect"] == "Allow"
        and action in _list(statement["Action"])
        and any(
            pattern == "*" or wire.matches(pattern, arn) for pattern in _list(statement["Resource"])
        )
        and _holds(statement.get("Condition", {}), context)
        for statement in policy["Statement"]
    )


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _holds(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str]) -> bool:
    for operator, wanted in conditions.items():
        for key, values in wanted.items():
            has = context.get(key)
            if operator == "Null":
                if (has is None) != (str(values).lower() == "true"):
                    return False
            elif operator == "StringEquals":
                if has not in _list(values):
                    return False
            elif operator == "StringLike":
                if has is None or not any(wire.matches(value, has) for value in _list(values)):
                    return False
            else:
                raise ValueError(f"the double knows no condition {operator}")
    return True
