"""Amazon EC2 and clouds with its interface (Eucalyptus, OpenStack's EC2 API), by boto3.

Clouds that know no launch templates are taken for older ones: they get no tags at creation and no
spot market. There, what was made is tagged by a second call; between the two calls it is found by
its name, or by the name of the key pair of a machine.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from nephoscope.measure.cloud.model import (
    Account,
    Action,
    KeyPairRequest,
    Kind,
    Machine,
    MachineRequest,
    MachineType,
    Prices,
    Request,
    Resource,
    SecurityGroupRequest,
    SnapshotRequest,
    Tags,
    VolumeRequest,
)
from nephoscope.measure.cloud.provider import (
    CONNECT_S,
    READ_S,
    Cause,
    CloudError,
    CloudSettings,
    CloudTraits,
)
from nephoscope.measure.cloud.providers import ec2_listing, ec2_prices
from nephoscope.measure.cloud.providers.ec2_errors import (
    code_of,
    incomplete,
    is_missing,
    translating,
)

DEFAULT_REGION = "us-east-1"

TRUSTED_OWNERS = ("self", "amazon", "136693071363", "099720109477")
"""Whose images a name alone may mean: one's own, Amazon's, Debian's, Canonical's. Anyone may
publish an image under any name."""

_QUOTAS = {
    "L-1216C47A": "on-demand vCPUs (standard types)",
    "L-34B43A08": "spot vCPUs (standard types)",
    "L-0263D0A3": "addresses",
}

_TOKEN_LENGTH = 64


def open(settings: CloudSettings) -> Ec2:
    """Returns the provider for one endpoint and one set of credentials."""
    return Ec2(settings)


class Ec2:
    """One account of EC2, or of a cloud with its interface."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset(Kind),
        actions=frozenset(Action),
        markets=("on demand", "spot"),
        tokens=True,
        # Answers may be some seconds old: the API is eventually consistent.
        settle_s=30.0,
        per_second=5.0,
        shutdown="terminated",
    )

    def __init__(self, settings: CloudSettings) -> None:
        self._endpoint = settings.endpoint or None
        with translating("opening the account"):
            self._session = boto3.Session(profile_name=settings.profile or None)
        self._clients: dict[tuple[str, str], Any] = {}
        self._images: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._tags_at_creation: bool | None = None if self._endpoint else True
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Ec2({self._endpoint or 'Amazon'})"

    @property
    def _region(self) -> str:
        return self._session.region_name or DEFAULT_REGION

    def _client(self, service: str, region: str) -> Any:
        with self._lock:
            if (service, region) not in self._clients:
                config = Config(
                    connect_timeout=CONNECT_S,
                    read_timeout=READ_S,
                    retries={"total_max_attempts": 1},
                    max_pool_connections=32,
                )
                self._clients[service, region] = self._session.client(
                    service, region_name=region, endpoint_url=self._endpoint, config=config
                )
            return self._clients[service, region]

    def call(self, operation: str, region: str, service: str = "ec2", **given: Any) -> Any:
        """Returns the answer of one call, under boto3's name for it. Raises CloudError."""
        with translating(f"{operation} in {region}"):
            return getattr(self._client(service, region), operation)(**given)

    def pages(
        self, operation: str, region: str, member: str, service: str = "ec2", **given: Any
    ) -> list[Any]:
        """Returns a member of all pages of an answer. Raises CloudError."""
        with translating(f"{operation} in {region}"):
            client = self._client(service, region)
            if not client.can_paginate(operation):
                return list(getattr(client, operation)(**given).get(member, ()))
            found = client.get_paginator(operation).paginate(**given)
            return [each for page in found for each in page.get(member, ())]

    def is_modern(self, region: str) -> bool:
        """Returns whether the cloud takes tags at creation; asked once, of a cloud that is not
        Amazon's."""
        if self._tags_at_creation is None:
            try:
                self.call("describe_launch_templates", region)
            except CloudError as error:
                if error.cause not in (Cause.REFUSED, Cause.UNKNOWN):
                    raise
                self._tags_at_creation = False
            else:
                self._tags_at_creation = True
        return self._tags_at_creation

    def account(self) -> Account:
        """Returns the account's number, the caller's name, and quotas of the usual region."""
        try:
            caller = self.call("get_caller_identity", self._region, "sts")
        except CloudError as error:
            if error.cause is not Cause.REFUSED or self._endpoint is None:
                raise
            # A cloud without a token service still names the owner of its default group.
            groups = self.call("describe_security_groups", self._region)["SecurityGroups"]
            return Account(next((str(each["OwnerId"]) for each in groups), ""))
        quotas: dict[str, tuple[float | None, float | None]] = {}
        for code, name in _QUOTAS.items():
            limit = self._quota(code)
            if limit is not None:
                quotas[f"{name}, {self._region}"] = (None, limit)
        return Account(caller["Account"], caller["Arn"].rpartition(":")[2], quotas)

    def _quota(self, code: str) -> float | None:
        given = {"ServiceCode": "ec2", "QuotaCode": code}
        try:
            answer = self.call("get_service_quota", self._region, "service-quotas", **given)
        except CloudError as error:
            if error.passes:
                raise
            return None
        if "Quota" not in answer:
            raise incomplete("get_service_quota")
        return float(answer["Quota"]["Value"])

    def regions(self) -> Sequence[str]:
        """Returns the regions that are enabled for the account."""
        found = self.call("describe_regions", self._region)["Regions"]
        return sorted(each["RegionName"] for each in found)

    def zones(self, region: str) -> Sequence[str]:
        """Returns the zones of a region that are available; local zones are not among them."""
        found = self.call("describe_availability_zones", region)["AvailabilityZones"]
        return sorted(
            each["ZoneName"]
            for each in found
            if each.get("ZoneType", "availability-zone") == "availability-zone"
        )

    def types(self, region: str) -> Sequence[MachineType]:
        """Returns the types of a region; none from a cloud that does not list them."""
        if not self.is_modern(region):
            return ()
        zones: dict[str, list[str]] = {}
        for each in self.pages(
            "describe_instance_type_offerings", region, "InstanceTypeOfferings",
            LocationType="availability-zone",
        ):  # fmt: skip
            zones.setdefault(each["InstanceType"], []).append(each["Location"])
        return [
            MachineType(
                each["InstanceType"],
                each["VCpuInfo"]["DefaultVCpus"],
                each["MemoryInfo"]["SizeInMiB"] << 20,
                tuple(sorted(zones.get(each["InstanceType"], ()))),
            )
            for each in self.pages("describe_instance_types", region, "InstanceTypes")
        ]

    def image(self, region: str, name: str) -> str:
        """Returns an image's id. name: id, name (with *), or OWNER/NAME for an image of others."""
        owner, slash, rest = name.partition("/")
        if name.startswith(("ami-", "emi-")):
            return str(self.image_details(region, name)["ImageId"])
        given: dict[str, Any] = {"Filters": [{"Name": "name", "Values": [rest or name]}]}
        if slash:
            given["Owners"] = [owner]
        elif self.is_modern(region):
            given["Owners"] = list(TRUSTED_OWNERS)
        found = self.call("describe_images", region, **given)["Images"]
        usable = [each for each in found if each.get("State", "available") == "available"]
        if not usable:
            raise CloudError(
                Cause.UNKNOWN,
                f"EC2: there is no image '{name}' in {region}.",
                "Write its id, or OWNER/NAME for an image that another account publishes.",
            )
        newest = max(usable, key=lambda each: str(each.get("CreationDate", "")))
        return str(newest["ImageId"])

    def image_details(self, region: str, id: str) -> Mapping[str, Any]:
        """Returns the description of an image, read once."""
        if (region, id) not in self._images:
            found = self.call("describe_images", region, ImageIds=[id])["Images"]
            if not found:
                raise CloudError(Cause.UNKNOWN, f"EC2: there is no image '{id}' in {region}.")
            self._images[region, id] = found[0]
        return self._images[region, id]

    def prices(self, request: MachineRequest) -> Prices | None:
        """Returns Amazon's list or spot price of a Linux machine; None where it has none."""
        return ec2_prices.prices(self, request)

    def create(self, request: Request) -> Sequence[Resource]:
        """Makes what is asked for; see `Provider.create`."""
        if len(request.tags.token) > _TOKEN_LENGTH:
            raise ValueError("an idempotency token of EC2 has at most 64 characters")
        if isinstance(request, MachineRequest):
            return self._run_machines(request)
        if isinstance(request, KeyPairRequest):
            return [self._import_key_pair(request)]
        if isinstance(request, SecurityGroupRequest):
            return [self._open_security_group(request)]
        if isinstance(request, VolumeRequest):
            return [self._create_volume(request)]
        return [self._create_snapshot(request)]

    def _tagging(self, region: str, tags: Tags, *kinds: str) -> dict[str, Any]:
        """Returns the parameter that tags what a call makes; nothing for older clouds."""
        if not self.is_modern(region):
            return {}
        made = ec2_listing.tag_list(tags)
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": made} for kind in kinds]}

    def _tag_afterwards(self, region: str, tags: Tags, ids: Sequence[str]) -> None:
        if not self.is_modern(region):
            made = ec2_listing.tag_list(tags)
            self.call("create_tags", region, Resources=list(ids), Tags=made)

    def _run_machines(self, request: MachineRequest) -> Sequence[Machine]:
        region, tags = request.region, request.tags
        given = self._launch_parameters(request)
        try:
            made = self.call("run_instances", region, **given)["Instances"]
        except CloudError as error:
            raise _when_not_yet_visible(error, request) from None
        self._tag_afterwards(region, tags, [each["InstanceId"] for each in made])
        return [ec2_listing.machine(each, region, tags) for each in made]

    def _launch_parameters(self, request: MachineRequest) -> dict[str, Any]:
        modern = self.is_modern(request.region)
        placement = {"AvailabilityZone": request.zone, "GroupName": request.placement_group}
        given: dict[str, Any] = {
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
            given["InstanceMarketOptions"] = {
                "MarketType": "spot",
                "SpotOptions": {
                    "SpotInstanceType": "one-time",
                    "InstanceInterruptionBehavior": "terminate",
                },
            }
            kinds.append("spot-instances-request")
        if modern:
            given["MetadataOptions"] = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
        if modern or request.disk_bytes is not None:
            given["BlockDeviceMappings"] = self._disks(request)
        used = {key: value for key, value in given.items() if value}
        return {**used, **self._tagging(request.region, request.tags, *kinds)}

    def _disks(self, request: MachineRequest) -> list[dict[str, Any]]:
        """Every disk of an image goes with its machine, whatever the image says."""
        image = self.image_details(request.region, request.image)
        disks = []
        for each in image.get("BlockDeviceMappings", ()):
            if "Ebs" in each:
                ebs: dict[str, Any] = {"DeleteOnTermination": True}
                if request.disk_bytes and each["DeviceName"] == image.get("RootDeviceName"):
                    ebs["VolumeSize"] = -(-request.disk_bytes // 2**30)
                disks.append({"DeviceName": each["DeviceName"], "Ebs": ebs})
        return disks

    def _import_key_pair(self, request: KeyPairRequest) -> Resource:
        region, tags = request.region, request.tags
        # The name is the token: a second call finds the first one's key pair.
        name = tags.as_name(tags.token)
        with translating(f"import_key_pair in {region}"):
            try:
                self._client("ec2", region).import_key_pair(
                    KeyName=name,
                    PublicKeyMaterial=request.public_key.encode(),
                    **self._tagging(region, tags, "key-pair"),
                )
            except ClientError as error:
                if code_of(error) != "InvalidKeyPair.Duplicate":
                    raise
        return Resource(Kind.KEY_PAIR, name, region, tags, name=name)

    def _open_security_group(self, request: SecurityGroupRequest) -> Resource:
        region, tags = request.region, request.tags
        name = tags.as_name(tags.token)
        given = {"GroupName": name, "Description": "A rental of Nephoscope"}
        if request.network:
            given["VpcId"] = request.network
        tagging = self._tagging(region, tags, "security-group")
        with translating(f"create_security_group in {region}"):
            client = self._client("ec2", region)
            try:
                group = client.create_security_group(**given, **tagging)["GroupId"]
            except ClientError as error:
                if code_of(error) != "InvalidGroup.Duplicate":
                    raise
                group = self._group_of_name(region, name)
        self._tag_afterwards(region, tags, [group])
        self._authorise(region, group, request)
        return Resource(Kind.SECURITY_GROUP, group, region, tags, name=name)

    def _group_of_name(self, region: str, name: str) -> str:
        filters = [{"Name": "group-name", "Values": [name]}]
        found = self.pages("describe_security_groups", region, "SecurityGroups", Filters=filters)
        if not found:
            # It was made, and is not listed yet.
            raise CloudError(Cause.UNANSWERED, f"EC2: the security group {name} is not listed yet.")
        return str(found[0]["GroupId"])

    def _authorise(self, region: str, group: str, request: SecurityGroupRequest) -> None:
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
            with translating(f"{operation} in {region}"):
                try:
                    getattr(self._client("ec2", region), operation)(
                        GroupId=group, IpPermissions=[rule]
                    )
                except ClientError as error:
                    if code_of(error) == "InvalidGroup.NotFound":
                        text = f"EC2: the security group {group} is not visible yet."
                        raise CloudError(Cause.UNANSWERED, text) from None
                    if code_of(error) != "InvalidPermission.Duplicate":
                        raise

    def _create_volume(self, request: VolumeRequest) -> Resource:
        region, tags = request.region, request.tags
        given: dict[str, Any] = {
            "AvailabilityZone": request.zone,
            "Size": -(-request.size_bytes // 2**30),
            "VolumeType": request.type,
            "SnapshotId": request.snapshot,
            "ClientToken": tags.token,
        }
        used = {key: value for key, value in given.items() if value}
        made = self.call("create_volume", region, **used, **self._tagging(region, tags, "volume"))
        self._tag_afterwards(region, tags, [made["VolumeId"]])
        return ec2_listing.volume(made, region, tags)

    def _create_snapshot(self, request: SnapshotRequest) -> Resource:
        region, tags = request.region, request.tags
        # This call takes no token: what an earlier one made is found by the token in its tags.
        for each in ec2_listing.snapshots(self, region):
            if tags.token and each.tags.token == tags.token:
                return each
        volume = request.source
        if volume.startswith("i-"):
            volume = self._root_volume(region, volume)
        given = self._tagging(region, tags, "snapshot")
        made = self.call("create_snapshot", region, VolumeId=volume, **given)
        self._tag_afterwards(region, tags, [made["SnapshotId"]])
        return ec2_listing.snapshot(made, region, tags)

    def _root_volume(self, region: str, machine: str) -> str:
        found = self.pages("describe_instances", region, "Reservations", InstanceIds=[machine])
        for each in (instance for reservation in found for instance in reservation["Instances"]):
            for disk in each.get("BlockDeviceMappings", ()):
                if disk["DeviceName"] == each["RootDeviceName"]:
                    return str(disk["Ebs"]["VolumeId"])
        raise CloudError(Cause.UNKNOWN, f"EC2: the machine {machine} has no root disk of its own.")

    def resources(self, region: str, run: str | None = None) -> Sequence[Resource]:
        """Returns everything of ours in a region; see `Provider.resources`."""
        found = ec2_listing.resources(self, region)
        return [each for each in found if run in (None, each.tags.run)]

    def delete(self, resource: Resource) -> None:
        """Asks for the removal of one resource, so that one wrong id spoils no batch."""
        operation, parameter, service = ec2_listing.DELETIONS[resource.kind]
        value: Any = [resource.id] if parameter.endswith("s") else resource.id
        with translating(f"{operation} {resource.id} in {resource.region}"):
            try:
                getattr(self._client(service, resource.region), operation)(**{parameter: value})
            except ClientError as error:
                if not is_missing(code_of(error)):
                    raise

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """Stops, starts, reboots or resizes a machine; to resize it has to be stopped."""
        if action is Action.RESIZE:
            given: dict[str, Any] = {"InstanceId": machine.id, "InstanceType": {"Value": value}}
            self.call("modify_instance_attribute", machine.region, **given)
            return
        self.call(f"{action}_instances", machine.region, InstanceIds=[machine.id])

    def attach(self, machine: Machine, volume: Resource) -> None:
        """Attaches a volume under the first free name; one that is attached there is no error."""
        filters = [{"Name": "attachment.instance-id", "Values": [machine.id]}]
        found = self.pages("describe_volumes", machine.region, "Volumes", Filters=filters)
        if any(each["VolumeId"] == volume.id for each in found):
            return
        used = {place["Device"] for each in found for place in each["Attachments"]}
        device = next(name for letter in "fghijklmnop" if (name := f"/dev/sd{letter}") not in used)
        given = {"InstanceId": machine.id, "VolumeId": volume.id, "Device": device}
        self.call("attach_volume", machine.region, **given)

    def detach(self, volume: Resource) -> None:
        """Detaches a volume; one that is attached nowhere is no error."""
        with translating(f"detach_volume {volume.id} in {volume.region}"):
            try:
                self._client("ec2", volume.region).detach_volume(VolumeId=volume.id)
            except ClientError as error:
                if code_of(error) != "IncorrectState":
                    raise

    def console(self, machine: Machine) -> str:
        """Returns the last 64 KiB of the console; the cloud renews it now and then only."""
        answer = self.call("get_console_output", machine.region, InstanceId=machine.id)
        return str(answer.get("Output", ""))

    def extend(self, resource: Resource, expires_s: int) -> None:
        """Writes a later expiry into the tags of a resource."""
        tags = Tags(resource.tags.run, resource.tags.owner, expires_s, resource.tags.token)
        region, made = resource.region, ec2_listing.tag_list(tags)
        if resource.kind is Kind.BALANCER:
            self.call("add_tags", region, "elbv2", ResourceArns=[resource.id], Tags=made)
            return
        id = resource.id
        if resource.kind is Kind.KEY_PAIR:
            if not self.is_modern(region):
                return
            id = self.call("describe_key_pairs", region, KeyNames=[id])["KeyPairs"][0]["KeyPairId"]
        self.call("create_tags", region, Resources=[id], Tags=made)


def _when_not_yet_visible(error: CloudError, request: MachineRequest) -> CloudError:
    """A key pair or group that was made a moment ago may not be known everywhere: nothing was
    made, and the same call passes later."""
    text = str(error)
    made_before = (request.key_pair, request.security_group)
    if error.cause is Cause.UNKNOWN and any(name and name in text for name in made_before):
        return CloudError(Cause.THROTTLED, text)
    return error
