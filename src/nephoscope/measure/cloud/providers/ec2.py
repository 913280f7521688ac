"""Amazon EC2 and clouds with its interface (Eucalyptus, OpenStack's EC2 API), by boto3.

Clouds that know no launch templates are taken for older ones: they get no tags at creation and no
spot market. There, what was made is tagged by a second call; between the two calls it is found by
its name, or by the name of the key pair of a machine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from botocore.exceptions import ClientError

from nephoscope.measure.cloud.model import (
    Account,
    Action,
    CloudResource,
    Kind,
    Machine,
    MachinePrices,
    MachineRequest,
    MachineType,
    Request,
    Tags,
)
from nephoscope.measure.cloud.provider import (
    Cause,
    CloudError,
    CloudSettings,
    CloudTraits,
)
from nephoscope.measure.cloud.providers import ec2_creation, ec2_listing, ec2_prices
from nephoscope.measure.cloud.providers.ec2_calls import Ec2Calls
from nephoscope.measure.cloud.providers.ec2_errors import (
    action_of,
    code_of,
    incomplete,
    is_missing,
    translating,
)

TRUSTED_OWNERS = ("self", "amazon", "136693071363", "099720109477")
"""Whose images a name alone may mean: one's own, Amazon's, Debian's, Canonical's. Anyone may
publish an image under any name."""

_QUOTAS = {
    "L-1216C47A": "on-demand vCPUs (standard types)",
    "L-34B43A08": "spot vCPUs (standard types)",
    "L-0263D0A3": "addresses",
}


def open(settings: CloudSettings) -> Ec2:
    """Returns the provider for one endpoint and one set of credentials."""
    return Ec2(settings)


class Ec2(Ec2Calls):
    """One account of EC2, or of a cloud with its interface."""

    traits: CloudTraits = CloudTraits(
        kinds=frozenset(Kind),
        actions=frozenset(Action),
        markets=("on demand", "spot"),
        tokens=True,
        # Answers may be some seconds old: the API is eventually consistent.
        settle_s=30.0,
        per_second=5.0,
        shutdown="terminated",
    )

    def account(self) -> Account:
        """Returns the account's number, the caller's name, and quotas of the usual region."""
        try:
            caller = self.call("get_caller_identity", self.region, "sts")
        except CloudError as error:
            if error.cause is not Cause.REFUSED or self._endpoint is None:
                raise
            # A cloud without a token service still names the owner of its default group.
            groups = self.call("describe_security_groups", self.region)["SecurityGroups"]
            return Account(next((str(each["OwnerId"]) for each in groups), ""))
        quotas: dict[str, tuple[float | None, float | None]] = {}
        for code, name in _QUOTAS.items():
            limit = self._quota(code)
            if limit is not None:
                quotas[f"{name}, {self.region}"] = (None, limit)
        return Account(caller["Account"], caller["Arn"].rpartition(":")[2], quotas)

    def _quota(self, code: str) -> float | None:
        parameters = {"ServiceCode": "ec2", "QuotaCode": code}
        try:
            answer = self.call("get_service_quota", self.region, "service-quotas", **parameters)
        except CloudError as error:
            if error.passes:
                raise
            return None
        if "Quota" not in answer:
            raise incomplete("GetServiceQuota")
        return float(answer["Quota"]["Value"])

    def regions(self) -> Sequence[str]:
        """Returns the regions that are enabled for the account."""
        listed = self.call("describe_regions", self.region)["Regions"]
        return sorted(each["RegionName"] for each in listed)

    def zones(self, region: str) -> Sequence[str]:
        """Returns the zones of a region that are available; local zones are not among them."""
        listed = self.call("describe_availability_zones", region)["AvailabilityZones"]
        return sorted(
            each["ZoneName"]
            for each in listed
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
        parameters: dict[str, Any] = {"Filters": [{"Name": "name", "Values": [rest or name]}]}
        if slash:
            parameters["Owners"] = [owner]
        elif self.is_modern(region):
            parameters["Owners"] = list(TRUSTED_OWNERS)
        listed = self.call("describe_images", region, **parameters)["Images"]
        usable = [each for each in listed if each.get("State", "available") == "available"]
        if not usable:
            raise CloudError(
                Cause.UNKNOWN,
                f"EC2: there is no image '{name}' in {region}.",
                "Write its id, or OWNER/NAME for an image that another account publishes.",
            )
        newest = max(usable, key=lambda each: str(each.get("CreationDate", "")))
        return str(newest["ImageId"])

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """Returns Amazon's list or spot price of a Linux machine; None where it has none."""
        return ec2_prices.prices(self, request)

    def create(self, request: Request) -> Sequence[CloudResource]:
        """Makes what is asked for; see `Provider.create`."""
        return ec2_creation.create(self, request)

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """Returns everything of ours in a region; see `Provider.resources`."""
        listed = ec2_listing.resources(self, region, kinds)
        return [each for each in listed if run in (None, each.tags.run)]

    def delete(self, resource: CloudResource) -> None:
        """Asks for the removal of one resource, so that one wrong id spoils no batch."""
        operation, parameter, service = ec2_listing.DELETIONS[resource.kind]
        value: Any = [resource.id] if parameter.endswith("s") else resource.id
        with translating(f"{action_of(operation)} {resource.id} in {resource.region}"):
            try:
                getattr(self.client(service, resource.region), operation)(**{parameter: value})
            except ClientError as error:
                if not is_missing(code_of(error)):
                    raise

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """Stops, starts, reboots or resizes a machine; to resize it has to be stopped."""
        if action is Action.RESIZE:
            parameters: dict[str, Any] = {
                "InstanceId": machine.id,
                "InstanceType": {"Value": value},
            }
            self.call("modify_instance_attribute", machine.region, **parameters)
            return
        self.call(f"{action}_instances", machine.region, InstanceIds=[machine.id])

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        """Attaches a volume under the first free name; one that is attached there is no error."""
        filters = [{"Name": "attachment.instance-id", "Values": [machine.id]}]
        listed = self.pages("describe_volumes", machine.region, "Volumes", Filters=filters)
        if any(each["VolumeId"] == volume.id for each in listed):
            return
        used = {place["Device"] for each in listed for place in each["Attachments"]}
        device = next(name for letter in "fghijklmnop" if (name := f"/dev/sd{letter}") not in used)
        parameters = {"InstanceId": machine.id, "VolumeId": volume.id, "Device": device}
        self.call("attach_volume", machine.region, **parameters)

    def detach(self, volume: CloudResource) -> None:
        """Detaches a volume; one that is attached nowhere is no error."""
        with translating(f"DetachVolume {volume.id} in {volume.region}"):
            try:
                self.client("ec2", volume.region).detach_volume(VolumeId=volume.id)
            except ClientError as error:
                if code_of(error) != "IncorrectState":
                    raise

    def console(self, machine: Machine) -> str:
        """Returns the last 64 KiB of the console; the cloud renews it now and then only."""
        answer = self.call("get_console_output", machine.region, InstanceId=machine.id)
        return str(answer.get("Output", ""))

    def extend(self, resource: CloudResource, expires_s: int) -> None:
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
