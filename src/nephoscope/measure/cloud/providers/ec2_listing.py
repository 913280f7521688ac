"""Resources of ours in EC2: listed to the end, kind by kind, and the calls that remove them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nephoscope.measure.cloud.model import (
    CloudResource,
    Kind,
    Machine,
    Placement,
    ResourceState,
    Tags,
)
from nephoscope.measure.cloud.provider import Cause, CloudError
from nephoscope.measure.cloud.providers.ec2_calls import Ec2Calls

DELETIONS: dict[Kind, tuple[str, str, str]] = {
    Kind.BALANCER: ("delete_load_balancer", "LoadBalancerArn", "elbv2"),
    Kind.MACHINE: ("terminate_instances", "InstanceIds", "ec2"),
    Kind.PLACEMENT_GROUP: ("delete_placement_group", "GroupName", "ec2"),
    Kind.LAUNCH_TEMPLATE: ("delete_launch_template", "LaunchTemplateId", "ec2"),
    Kind.ADDRESS: ("release_address", "AllocationId", "ec2"),
    Kind.PORT: ("delete_network_interface", "NetworkInterfaceId", "ec2"),
    Kind.VOLUME: ("delete_volume", "VolumeId", "ec2"),
    Kind.IMAGE: ("deregister_image", "ImageId", "ec2"),
    Kind.SNAPSHOT: ("delete_snapshot", "SnapshotId", "ec2"),
    Kind.SECURITY_GROUP: ("delete_security_group", "GroupId", "ec2"),
    Kind.KEY_PAIR: ("delete_key_pair", "KeyName", "ec2"),
}
"""Kind -> boto3's operation that removes one, its parameter, the service."""


def placements(entry: Mapping[str, Any]) -> tuple[Placement, ...] | None:
    """Returns the strategies of placement groups that a type allows; None where it is not said."""
    info = entry.get("PlacementGroupInfo")
    return None if info is None else tuple(info.get("SupportedStrategies", ()))


_MACHINE_STATES = {
    "pending": ResourceState.PENDING,
    "running": ResourceState.READY,
    "stopping": ResourceState.STOPPING,
    "stopped": ResourceState.STOPPED,
    "shutting-down": ResourceState.LEAVING,
    "terminated": ResourceState.GONE,
    # Of clouds that speak EC2's language for another one.
    "error": ResourceState.FAILED,
}
_OTHER_STATES = {
    "creating": ResourceState.PENDING,
    "pending": ResourceState.PENDING,
    "provisioning": ResourceState.PENDING,
    "deleting": ResourceState.LEAVING,
    "deregistered": ResourceState.GONE,
    "deleted": ResourceState.GONE,
    "error": ResourceState.FAILED,
    "failed": ResourceState.FAILED,
}


def tag_list(tags: Tags) -> list[dict[str, str]]:
    """Returns tags in the form of the API."""
    return [{"Key": key, "Value": value} for key, value in tags.as_mapping().items()]


def _tags(entry: Mapping[str, Any], *names: str) -> Tags | None:
    """Returns our tags of an entry, else those in one of its names."""
    pairs = entry.get("Tags") or entry.get("TagSet") or ()
    listed = Tags.from_mapping({each["Key"]: each["Value"] for each in pairs})
    for name in names:
        listed = listed or Tags.from_name(entry.get(name) or "")
    return listed


def _seconds(value: object) -> float | None:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.timestamp() if isinstance(value, datetime) else None


def machine(entry: Mapping[str, Any], region: str, tags: Tags) -> Machine:
    """Returns a machine from an answer. Its address is shown when it runs: before, it may change
    from the private to the public one."""
    # What a word means that is not known becomes clear later; the machine is there.
    state = _MACHINE_STATES.get(entry["State"]["Name"], ResourceState.PENDING)
    private = entry.get("PrivateIpAddress") or ""
    placement = entry.get("Placement", {})
    reason = _reason(entry)
    return Machine(
        Kind.MACHINE,
        entry["InstanceId"],
        region,
        tags,
        state,
        placement.get("AvailabilityZone", ""),
        created_s=_seconds(entry.get("LaunchTime")),
        type=entry["InstanceType"],
        image=entry["ImageId"],
        market="spot" if entry.get("InstanceLifecycle") == "spot" else "on demand",
        address=(entry.get("PublicIpAddress") or private) if state is ResourceState.READY else "",
        private_address=private,
        host=placement.get("HostId", ""),
        problem="" if state in (ResourceState.PENDING, ResourceState.READY) else reason,
    )


def _reason(entry: Mapping[str, Any]) -> str:
    """Returns why a machine stopped or ended, in the cloud's words with its code before them."""
    stated = entry.get("StateReason", {})
    code, message = stated.get("Code", ""), stated.get("Message", "")
    if code and message and not message.startswith(code):
        return f"{code}: {message}"
    return str(message or entry.get("StateTransitionReason") or "")


def _machines(calls: Ec2Calls, region: str) -> Iterable[CloudResource]:
    for reservation in calls.pages(
        "describe_instances", region, "Reservations", **_filter(calls, region)
    ):
        for entry in reservation["Instances"]:
            tags = _tags(entry, "KeyName")
            if tags is not None:
                yield machine(entry, region, tags)


def _filter(calls: Ec2Calls, region: str) -> dict[str, Any]:
    """Returns the parameter that leaves out what has no tag of ours.

    Older clouds may hold something whose tags were not written any more: all is listed there.
    """
    if not calls.is_modern(region):
        return {}
    return {"Filters": [{"Name": "tag-key", "Values": ["nephoscope-run"]}]}


Maker = Callable[[Mapping[str, Any], str, Tags], CloudResource]


def _maker(kind: Kind, id_key: str, *, created: str = "", name: str = "") -> Maker:
    def made(entry: Mapping[str, Any], region: str, tags: Tags) -> CloudResource:
        state = entry.get("State") or entry.get("Status") or ""
        state = state.get("Code", "") if isinstance(state, Mapping) else state
        return CloudResource(
            kind,
            entry[id_key],
            region,
            tags,
            _OTHER_STATES.get(state, ResourceState.READY),
            entry.get("AvailabilityZone", ""),
            entry.get(name, "") if name else "",
            _seconds(entry.get(created)) if created else None,
        )

    return made


volume = _maker(Kind.VOLUME, "VolumeId", created="CreateTime")
snapshot = _maker(Kind.SNAPSHOT, "SnapshotId", created="StartTime")

_OWN = {"Owners": ["self"]}
_KINDS: tuple[tuple[Kind, Maker, str, str, dict[str, Any], tuple[str, ...], bool], ...] = (
    (
        Kind.PLACEMENT_GROUP,
        _maker(Kind.PLACEMENT_GROUP, "GroupName", name="GroupName"),
        "describe_placement_groups", "PlacementGroups", {}, ("GroupName",), True,
    ),
    (
        Kind.LAUNCH_TEMPLATE,
        _maker(Kind.LAUNCH_TEMPLATE, "LaunchTemplateId", name="LaunchTemplateName"),
        "describe_launch_templates", "LaunchTemplates", {}, (), True,
    ),
    (
        Kind.ADDRESS,
        _maker(Kind.ADDRESS, "AllocationId", name="PublicIp"),
        "describe_addresses", "Addresses", {}, (), False,
    ),
    (Kind.VOLUME, volume, "describe_volumes", "Volumes", {}, (), False),
    (
        Kind.IMAGE,
        _maker(Kind.IMAGE, "ImageId", created="CreationDate", name="Name"),
        "describe_images", "Images", _OWN, ("Name",), False,
    ),
    (
        Kind.SNAPSHOT, snapshot,
        "describe_snapshots", "Snapshots", {"OwnerIds": ["self"]}, (), False,
    ),
    (
        Kind.SECURITY_GROUP,
        _maker(Kind.SECURITY_GROUP, "GroupId", name="GroupName"),
        "describe_security_groups", "SecurityGroups", {}, ("GroupName",), False,
    ),
    (
        Kind.KEY_PAIR,
        _maker(Kind.KEY_PAIR, "KeyName", created="CreateTime", name="KeyName"),
        "describe_key_pairs", "KeyPairs", {}, ("KeyName",), False,
    ),
)  # fmt: skip
"""A kind, how it is made from an entry, its operation and member, further parameters, the names
that may hold tags, and whether older clouds lack it."""

_port = _maker(Kind.PORT, "NetworkInterfaceId")


def _listed(calls: Ec2Calls, region: str, row: Any) -> Iterable[CloudResource]:
    _, maker, operation, member, more, names, modern_only = row
    if modern_only and not calls.is_modern(region):
        return
    for entry in calls.pages(operation, region, member, **more, **_filter(calls, region)):
        tags = _tags(entry, *names)
        if tags is not None:
            yield maker(entry, region, tags)


def snapshots(calls: Ec2Calls, region: str) -> list[CloudResource]:
    """Returns our snapshots."""
    row = next(each for each in _KINDS if each[0] is Kind.SNAPSHOT)
    return list(_listed(calls, region, row))


def _ports(calls: Ec2Calls, region: str) -> Iterable[CloudResource]:
    """Network interfaces that are attached go with their machine; those that are left do not."""
    entries = calls.pages(
        "describe_network_interfaces", region, "NetworkInterfaces", **_filter(calls, region)
    )
    for entry in entries:
        tags = _tags(entry)
        if tags is not None and entry.get("Status") == "available":
            yield _port({**entry, "State": ""}, region, tags)


_ARNS = 20
"""Resources whose tags the balancers' interface shows in one call."""


def _balancers(calls: Ec2Calls, region: str) -> Iterable[CloudResource]:
    if not calls.is_modern(region):
        return
    listed = calls.pages("describe_load_balancers", region, "LoadBalancers", "elbv2")
    by_arn = {each["LoadBalancerArn"]: each for each in listed}
    arns = list(by_arn)
    make = _maker(Kind.BALANCER, "LoadBalancerArn", created="CreatedTime", name="LoadBalancerName")
    for first in range(0, len(arns), _ARNS):
        chosen = arns[first : first + _ARNS]
        try:
            answer = calls.call("describe_tags", region, "elbv2", ResourceArns=chosen)
        except CloudError as error:
            if error.cause is Cause.UNKNOWN:
                # One of them went since it was listed: the whole answer is refused.
                raise CloudError(Cause.UNANSWERED, str(error)) from None
            raise
        for entry in answer["TagDescriptions"]:
            tags = _tags(entry)
            if tags is not None:
                yield make(by_arn[entry["ResourceArn"]], region, tags)


def resources(
    calls: Ec2Calls, region: str, kinds: Collection[Kind] | None = None
) -> Sequence[CloudResource]:
    """Returns everything of ours in a region, of some kinds only where those are named: one call
    instead of thirteen. Raises CloudError where any listing fails: a part would look like the
    whole."""
    wanted = frozenset(Kind if kinds is None else kinds)
    listed: list[CloudResource] = []
    if Kind.BALANCER in wanted:
        listed += _balancers(calls, region)
    if Kind.MACHINE in wanted:
        listed += _machines(calls, region)
    for row in _KINDS:
        if row[0] in wanted:
            listed += _listed(calls, region, row)
    if Kind.PORT in wanted:
        listed += _ports(calls, region)
    return listed
