"""What is made in EC2: with tags from the first moment, and once for each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from nephoscope.measure.cloud.model import (
    CloudResource,
    KeyPairRequest,
    Kind,
    Machine,
    MachineRequest,
    Request,
    SecurityGroupRequest,
    SnapshotRequest,
    Tags,
    VolumeRequest,
)
from nephoscope.measure.cloud.provider import Cause, CloudError
from nephoscope.measure.cloud.providers import ec2_listing
from nephoscope.measure.cloud.providers.ec2_calls import Ec2Calls
from nephoscope.measure.cloud.providers.ec2_errors import action_of, code_of, translating

_TOKEN_LENGTH = 64


def create(calls: Ec2Calls, request: Request) -> Sequence[CloudResource]:
    """Makes what is asked for; see `Provider.create`."""
    if len(request.tags.token) > _TOKEN_LENGTH:
        raise ValueError("an idempotency token of EC2 has at most 64 characters")
    if isinstance(request, MachineRequest):
        return _run_machines(calls, request)
    if isinstance(request, KeyPairRequest):
        return [_import_key_pair(calls, request)]
    if isinstance(request, SecurityGroupRequest):
        return [_open_security_group(calls, request)]
    if isinstance(request, VolumeRequest):
        return [_create_volume(calls, request)]
    return [_create_snapshot(calls, request)]


def _tagging(calls: Ec2Calls, region: str, tags: Tags, *kinds: str) -> dict[str, Any]:
    """Returns the parameter that tags what a call makes; nothing for older clouds."""
    if not calls.is_modern(region):
        return {}
    made = ec2_listing.tag_list(tags)
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": made} for kind in kinds]}


def _tag_afterwards(calls: Ec2Calls, region: str, tags: Tags, ids: Sequence[str]) -> None:
    if not calls.is_modern(region):
        made = ec2_listing.tag_list(tags)
        calls.call("create_tags", region, Resources=list(ids), Tags=made)


def _run_machines(calls: Ec2Calls, request: MachineRequest) -> Sequence[Machine]:
    region, tags = request.region, request.tags
    parameters = _launch_parameters(calls, request)
    try:
        made = calls.call("run_instances", region, **parameters)["Instances"]
    except CloudError as error:
        made_before = (request.key_pair, request.security_group)
        raise when_not_yet_visible(error, *made_before) from None
    _tag_afterwards(calls, region, tags, [each["InstanceId"] for each in made])
    return [ec2_listing.machine(each, region, tags) for each in made]


def _launch_parameters(calls: Ec2Calls, request: MachineRequest) -> dict[str, Any]:
    modern = calls.is_modern(request.region)
    placement = {"AvailabilityZone": request.zone, "GroupName": request.placement_group}
    parameters: dict[str, Any] = {
        "ImageId": request.image,
        "InstanceType": request.type,
        "MinCount": request.at_least,
        "MaxCount": request.count,
        "ClientToken": request.tags.token,
        "UserData": request.user_data,
        "KeyName": request.key_pair,
        "SecurityGroupIds": [request.security_group] if request.security_group else [],
        "SubnetId": request.network,
        "Placement": {key: value for key, value in placement.items() if value},
        "InstanceInitiatedShutdownBehavior": "terminate",
    }
    kinds = ["instance", "volume", "network-interface"]
    if request.market == "spot":
        if not modern:
            raise CloudError(Cause.REFUSED, "EC2: this cloud has no spot market.")
        spot: dict[str, Any] = {
            "SpotInstanceType": "one-time",
            "InstanceInterruptionBehavior": "terminate",
        }
        if request.max_per_h is not None:
            spot["MaxPrice"] = f"{request.max_per_h:.6f}"
        parameters["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": spot}
        kinds.append("spot-instances-request")
    if modern:
        parameters["MetadataOptions"] = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    if modern or request.disk_bytes is not None:
        parameters["BlockDeviceMappings"] = _disks(calls, request)
    used = {key: value for key, value in parameters.items() if value}
    tagging = _tagging(calls, request.region, request.tags, *kinds)
    for each in tagging.get("TagSpecifications", ()):
        if each["ResourceType"] == "instance" and request.name:
            # What the cloud's own lists show.
            each["Tags"] = [*each["Tags"], {"Key": "Name", "Value": request.name}]
    return {**used, **tagging}


def _disks(calls: Ec2Calls, request: MachineRequest) -> list[dict[str, Any]]:
    """Every disk of an image goes with its machine, whatever the image says."""
    image = calls.image_details(request.region, request.image)
    disks = []
    for each in image.get("BlockDeviceMappings", ()):
        if "Ebs" in each:
            ebs: dict[str, Any] = {"DeleteOnTermination": True}
            if request.disk_bytes and each["DeviceName"] == image.get("RootDeviceName"):
                ebs["VolumeSize"] = -(-request.disk_bytes // 2**30)
            disks.append({"DeviceName": each["DeviceName"], "Ebs": ebs})
    return disks


def _import_key_pair(calls: Ec2Calls, request: KeyPairRequest) -> CloudResource:
    region, tags = request.region, request.tags
    # The name is the token: a second call finds the first one's key pair.
    name = tags.as_name(tags.token)
    if not calls.is_modern(region):
        # OpenStack, under its EC2 API, refuses dots in the name of a key pair.
        name = name.replace(".", " ")
    with translating(f"ImportKeyPair in {region}"):
        try:
            calls.client("ec2", region).import_key_pair(
                KeyName=name,
                PublicKeyMaterial=request.public_key.encode(),
                **_tagging(calls, region, tags, "key-pair"),
            )
        except ClientError as error:
            if code_of(error) != "InvalidKeyPair.Duplicate":
                raise
    return CloudResource(Kind.KEY_PAIR, name, region, tags, name=name)


def _open_security_group(calls: Ec2Calls, request: SecurityGroupRequest) -> CloudResource:
    region, tags = request.region, request.tags
    name = tags.as_name(tags.token)
    parameters = {"GroupName": name, "Description": "A rental of Nephoscope"}
    if request.network:
        parameters["VpcId"] = request.network
    tagging = _tagging(calls, region, tags, "security-group")
    with translating(f"CreateSecurityGroup in {region}"):
        client = calls.client("ec2", region)
        try:
            group = client.create_security_group(**parameters, **tagging)["GroupId"]
        except ClientError as error:
            if code_of(error) != "InvalidGroup.Duplicate":
                raise
            group = _group_of_name(calls, region, name)
    _tag_afterwards(calls, region, tags, [group])
    if request.source:
        _authorise(calls, region, group, request)
    return CloudResource(Kind.SECURITY_GROUP, group, region, tags, name=name)


def _group_of_name(calls: Ec2Calls, region: str, name: str) -> str:
    filters = [{"Name": "group-name", "Values": [name]}]
    listed = calls.pages("describe_security_groups", region, "SecurityGroups", Filters=filters)
    if not listed:
        # It was made, and is not listed yet.
        raise CloudError(Cause.UNANSWERED, f"EC2: the security group {name} is not listed yet.")
    return str(listed[0]["GroupId"])


def _authorise(calls: Ec2Calls, region: str, group: str, request: SecurityGroupRequest) -> None:
    rules = [
        {
            "IpProtocol": "tcp",
            "FromPort": request.port,
            "ToPort": request.port,
            "IpRanges": [{"CidrIp": request.source}],
        },
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]},
    ]
    operation = "authorize_security_group_ingress"
    for rule in rules:
        with translating(f"{action_of(operation)} in {region}"):
            try:
                getattr(calls.client("ec2", region), operation)(GroupId=group, IpPermissions=[rule])
            except ClientError as error:
                if code_of(error) == "InvalidGroup.NotFound":
                    text = f"EC2: the security group {group} is not visible yet."
                    raise CloudError(Cause.UNANSWERED, text) from None
                if code_of(error) != "InvalidPermission.Duplicate":
                    raise


def _create_volume(calls: Ec2Calls, request: VolumeRequest) -> CloudResource:
    region, tags = request.region, request.tags
    parameters: dict[str, Any] = {
        "AvailabilityZone": request.zone,
        "Size": -(-request.size_bytes // 2**30),
        "VolumeType": request.type,
        "SnapshotId": request.snapshot,
        "ClientToken": tags.token,
    }
    used = {key: value for key, value in parameters.items() if value}
    tagging = _tagging(calls, region, tags, "volume")
    try:
        made = calls.call("create_volume", region, **used, **tagging)
    except CloudError as error:
        raise when_not_yet_visible(error, request.snapshot) from None
    _tag_afterwards(calls, region, tags, [made["VolumeId"]])
    return ec2_listing.volume(made, region, tags)


def _create_snapshot(calls: Ec2Calls, request: SnapshotRequest) -> CloudResource:
    region, tags = request.region, request.tags
    # This call takes no token: what an earlier one made is found by the token in its tags.
    for each in ec2_listing.snapshots(calls, region):
        if tags.token and each.tags.token == tags.token:
            return each
    volume = request.source
    if volume.startswith("i-"):
        volume = _root_volume(calls, region, volume)
    parameters = _tagging(calls, region, tags, "snapshot")
    try:
        made = calls.call("create_snapshot", region, VolumeId=volume, **parameters)
    except CloudError as error:
        raise when_not_yet_visible(error, volume) from None
    _tag_afterwards(calls, region, tags, [made["SnapshotId"]])
    return ec2_listing.snapshot(made, region, tags)


def _root_volume(calls: Ec2Calls, region: str, machine: str) -> str:
    listed = calls.pages("describe_instances", region, "Reservations", InstanceIds=[machine])
    for each in (instance for reservation in listed for instance in reservation["Instances"]):
        for disk in each.get("BlockDeviceMappings", ()):
            if disk["DeviceName"] == each["RootDeviceName"]:
                return str(disk["Ebs"]["VolumeId"])
    raise CloudError(Cause.UNKNOWN, f"EC2: the machine {machine} has no root disk of its own.")


def when_not_yet_visible(error: CloudError, *made_before: str) -> CloudError:
    """Returns the error of a call that names what was made a moment ago, and which may not be known
    everywhere yet: then nothing was made, and the same call passes later."""
    text = str(error)
    if error.cause is Cause.UNKNOWN and any(name and name in text for name in made_before):
        return CloudError(Cause.THROTTLED, text)
    return error
