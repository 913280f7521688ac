"""The least permissions with which machines can be rented from EC2.

Which resources and conditions an action takes:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
"""

from __future__ import annotations

from typing import Any

_RUN, _OWNER, _EXPIRES = "nephoscope-run", "nephoscope-owner", "nephoscope-expires"

_READ = (
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeKeyPairs",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeRegions",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSnapshots",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeVolumes",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeTags",
    "pricing:GetProducts",
    "servicequotas:GetServiceQuota",
    "sts:GetCallerIdentity",
)
"""Actions that read and that IAM cannot limit to single resources."""

_CREATE = {
    ("ec2:AuthorizeSecurityGroupIngress",): ("security-group-rule",),
    ("ec2:CreatePlacementGroup", "ec2:CreateSecurityGroup", "ec2:ImportKeyPair"): (
        "placement-group",
        "security-group",
        "key-pair",
    ),
    ("ec2:CreateSnapshot",): ("snapshot",),
    ("ec2:CreateVolume",): ("volume",),
}
"""Actions that make something -> its types. Those of one statement touch nothing else that exists:
IAM takes 6144 characters, and each statement repeats its condition."""

_CHANGE = (
    "ec2:AttachVolume",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateSnapshot",
    "ec2:CreateTags",
    "ec2:CreateVolume",
    "ec2:DeleteKeyPair",
    "ec2:DeleteLaunchTemplate",
    "ec2:DeleteNetworkInterface",
    "ec2:DeletePlacementGroup",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteSnapshot",
    "ec2:DeleteVolume",
    "ec2:DeregisterImage",
    "ec2:DetachVolume",
    "ec2:GetConsoleOutput",
    "ec2:ModifyInstanceAttribute",
    "ec2:RebootInstances",
    "ec2:ReleaseAddress",
    "ec2:RevokeSecurityGroupIngress",
    "ec2:StartInstances",
    "ec2:StopInstances",
    "ec2:TerminateInstances",
)
"""What may be done to resources that carry our tags. CreateSnapshot and CreateVolume are here for
what they read; CreateTags for a later expiry."""

_TAGGED = (
    "elastic-ip",
    "image",
    "instance",
    "key-pair",
    "launch-template",
    "network-interface",
    "placement-group",
    "security-group",
    "snapshot",
    "volume",
)
"""Types of resources that carry our tags."""


def policy(owner: str = "", bucket: str = "", prefix: str = "") -> dict[str, Any]:
    """Returns an IAM policy without wildcards in its actions.

    Everything that is made has to carry this program's tags, and only what carries them can be
    changed or removed; with an owner, only what is tagged as this owner's. bucket, prefix: of the
    results of fleets, whose objects are those in folders of this program's.
    """
    own = _of_bucket(bucket, prefix) if bucket else []
    return {"Version": "2012-10-17", "Statement": [*_statements(owner), *own]}


def _of_bucket(bucket: str, prefix: str) -> list[dict[str, Any]]:
    whole = f"arn:aws:s3:::{bucket}"
    objects = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
    return [
        # HeadBucket has no prefix, so that a condition on one would refuse it.
        _allow("FindResults", ["s3:GetBucketVersioning", "s3:ListBucket"], [whole]),
        _allow("KeepResults", objects, [f"{whole}/{prefix}nephoscope.*"]),
    ]


def _statements(owner: str) -> list[dict[str, Any]]:
    made = ["instance", "network-interface", "spot-instances-request", "volume"]
    existing = _with_tags("ec2:ResourceTag", owner, _RUN)
    statements = [
        _allow("Read", _READ, "*"),
        _allow("LaunchTagged", ["ec2:RunInstances"], _arns(*made[1:]), _requested(owner)),
        _allow(
            "LaunchWithMetadataTokensOnly",
            ["ec2:RunInstances"],
            _arns("instance"),
            _merged(_requested(owner), {"StringEquals": {"ec2:MetadataHttpTokens": "required"}}),
        ),
        _allow(
            "LaunchFrom",
            ["ec2:RunInstances"],
            [
                "arn:aws:ec2:*::image/*",
                "arn:aws:ec2:*::snapshot/*",
                *_arns("image", "placement-group", "snapshot", "subnet"),
            ],
        ),
        _allow(
            "LaunchWithOurs", ["ec2:RunInstances"], _arns("key-pair", "security-group"), existing
        ),
        _allow("GroupsInNetworks", ["ec2:CreateSecurityGroup"], _arns("vpc")),
    ]
    for actions, kinds in _CREATE.items():
        statements.append(_allow(_title(actions[0]), actions, _arns(*kinds), _requested(owner)))
    every = [action for actions in _CREATE for action in actions]
    creating = [action.partition(":")[2] for action in ("ec2:RunInstances", *every)]
    tagged = dict.fromkeys([*made, *(kind for kinds in _CREATE.values() for kind in kinds)])
    condition = {"StringEquals": {"ec2:CreateAction": creating}}
    statements.append(_allow("TagAtCreation", ["ec2:CreateTags"], _arns(*tagged), condition))
    statements.append(_allow("ChangeOurs", _CHANGE, _arns(*_TAGGED), existing))
    statements.append(
        _allow(
            "ChangeOurBalancers",
            ["elasticloadbalancing:AddTags", "elasticloadbalancing:DeleteLoadBalancer"],
            ["arn:aws:elasticloadbalancing:*:*:loadbalancer/*"],
            _with_tags("aws:ResourceTag", owner, _RUN),
        )
    )
    return statements


def _allow(
    title: str, actions: Any, resources: Any, condition: dict[str, Any] | None = None
) -> dict[str, Any]:
    made = {"Sid": title, "Effect": "Allow", "Action": list(actions), "Resource": resources}
    return {**made, "Condition": condition} if condition else made


def _arns(*kinds: str) -> list[str]:
    return [f"arn:aws:ec2:*:*:{kind}/*" for kind in kinds]


def _with_tags(prefix: str, owner: str, *keys: str) -> dict[str, Any]:
    """Returns the condition that tags are there, and are the owner's."""
    condition: dict[str, Any] = {"Null": {f"{prefix}/{key}": "false" for key in keys}}
    if owner:
        condition["StringEquals"] = {f"{prefix}/{_OWNER}": owner}
    return condition


def _requested(owner: str) -> dict[str, Any]:
    return _with_tags("aws:RequestTag", owner, _RUN, _OWNER, _EXPIRES)


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {key: first.get(key, {}) | second.get(key, {}) for key in {**first, **second}}


def _title(action: str) -> str:
    return action.partition(":")[2] + "Tagged"
