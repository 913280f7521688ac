"""Addresses, key pairs, security groups, network interfaces, launch templates."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from typing import Any

from . import catalogue
from .calls import Call, action, described, named, need_quota, once, tag_list, tags_for
from .cloud import Resource
from .errors import ApiError

VPC = "vpc-0default0default0"


@action("AllocateAddress")
def allocate_address(call: Call) -> dict[str, Any]:
    # It takes no client token: a call that is repeated makes a second address.
    used = len(call.all("elastic-ip", call.now))
    need_quota(call, "L-0263D0A3", used, 1, "AddressLimitExceeded", "addresses")
    made = call.cloud.add(
        "elastic-ip", call.region, tags=tags_for(call, "elastic-ip"), associated="",
        address=call.cloud.new_address(127),
    )  # fmt: skip
    return {"AllocationId": made.id, "PublicIp": made.data["address"], "Domain": "vpc"}


def _show_address(each: Resource, at: float) -> dict[str, Any]:
    bound = each.data["associated"]
    return {
        "AllocationId": each.id,
        "PublicIp": each.data["address"],
        "InstanceId": bound or None,
        "AssociationId": f"eipassoc-{each.id[9:]}" if bound else None,
        "Domain": "vpc",
        "Tags": tag_list(each, at),
    }


@action("DescribeAddresses")
def describe_addresses(call: Call) -> dict[str, Any]:
    fields = {
        "allocation-id": lambda r, at: r.id,
        "public-ip": lambda r, at: r.data["address"],
        "instance-id": lambda r, at: r.data["associated"],
    }
    ids = call.p.get("AllocationIds", ())
    return described(call, "elastic-ip", ids, fields, _show_address, "Addresses")


@action("AssociateAddress")
def associate_address(call: Call) -> dict[str, Any]:
    each, machine = (
        call.find("elastic-ip", call.p["AllocationId"]),
        call.find("instance", call.p["InstanceId"]),
    )
    if machine.state(call.now) != "running":
        raise ApiError("IncorrectInstanceState", f"The instance '{machine.id}' is not running")
    each.data["associated"] = machine.id
    machine.data["elastic"] = each.data["address"]
    return {"AssociationId": f"eipassoc-{each.id[9:]}"}


@action("DisassociateAddress")
def disassociate_address(call: Call) -> dict[str, Any]:
    each = call.find("elastic-ip", "eipalloc-" + call.p["AssociationId"].removeprefix("eipassoc-"))
    _unbind(call, each)
    return {}


def _unbind(call: Call, each: Resource) -> None:
    if machine := call.cloud.resources.get(each.data["associated"]):
        machine.data["elastic"] = ""
    each.data["associated"] = ""


@action("ReleaseAddress")
def release_address(call: Call) -> dict[str, Any]:
    each = call.find("elastic-ip", call.p["AllocationId"])
    if each.data["associated"]:
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ReleaseAddress.html
        raise ApiError("InvalidIPAddress.InUse", f"Address {each.data['address']} is in use.")
    each.gone = call.now
    return {}


@action("ImportKeyPair")
def import_key_pair(call: Call) -> dict[str, Any]:
    name, text = call.p["KeyName"], base64.b64decode(call.p["PublicKeyMaterial"]).decode()
    words = text.split()
    if len(words) < 2 or words[0] not in ("ssh-ed25519", "ssh-rsa"):
        raise ApiError("InvalidKey.Format", "Key is not in valid OpenSSH public key format")
    return _add_key(call, name, text)


def _add_key(call: Call, name: str, text: str) -> dict[str, Any]:
    if any(each.data["name"] == name for each in call.all("key-pair", call.now)):
        raise ApiError("InvalidKeyPair.Duplicate", f"The keypair already exists: {name}")
    made = call.cloud.add(
        "key-pair", call.region, tags=tags_for(call, "key-pair"), name=name, text=text
    )
    return _key_text(made)


def _key_text(each: Resource) -> dict[str, Any]:
    digest = hashlib.sha256(each.data["text"].encode()).digest()
    return {
        "KeyName": each.data["name"],
        "KeyPairId": each.id,
        "KeyFingerprint": base64.b64encode(digest).decode(),
    }


@action("DescribeKeyPairs")
def describe_key_pairs(call: Call) -> dict[str, Any]:
    return described(
        call, "key-pair", call.p.get("KeyPairIds", ()), {"key-name": lambda r, at: r.data["name"]},
        lambda r, at: _key_text(r) | {"Tags": tag_list(r, at), "CreateTime": r.created}, "KeyPairs",
        names=call.p.get("KeyNames", ()),
    )  # fmt: skip


@action("DeleteKeyPair")
def delete_key_pair(call: Call) -> dict[str, Any]:
    # "The call succeeds even if the key pair is not there":
    # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteKeyPair.html
    for each in call.all("key-pair", call.now):
        if each.id == call.p.get("KeyPairId") or each.data["name"] == call.p.get("KeyName"):
            each.gone = call.now
    return {"Return": True}


@action("CreateSecurityGroup")
def create_security_group(call: Call) -> dict[str, Any]:
    name = call.p["GroupName"]
    if any(each.data["name"] == name for each in call.all("security-group", call.now)):
        raise ApiError(
            "InvalidGroup.Duplicate", f"The security group '{name}' already exists for VPC '{VPC}'"
        )
    used = len(call.all("security-group", call.now))
    need_quota(call, "security-groups", used, 1, "SecurityGroupLimitExceeded", "security groups")
    made = call.cloud.add(
        "security-group", call.region, tags=tags_for(call, "security-group"), name=name, rules=[],
        description=call.p["Description"], vpc=call.p.get("VpcId", VPC),
    )  # fmt: skip
    return {"GroupId": made.id, "Tags": tag_list(made, call.now)}


@action("AuthorizeSecurityGroupIngress")
def authorize_security_group_ingress(call: Call) -> dict[str, Any]:
    group = call.find("security-group", call.p["GroupId"])
    rules = _rules(call)
    for rule in rules:
        if rule in group.data["rules"]:
            raise ApiError("InvalidPermission.Duplicate", "the specified rule already exists")
    group.data["rules"] += rules
    group.data.setdefault("rule_tags", []).append(tags_for(call, "security-group-rule"))
    _enforce(call)
    return {"Return": True}


@action("RevokeSecurityGroupIngress")
def revoke_security_group_ingress(call: Call) -> dict[str, Any]:
    group = call.find("security-group", call.p["GroupId"])
    for rule in _rules(call):
        if rule not in group.data["rules"]:
            raise ApiError("InvalidPermission.NotFound", "The specified rule does not exist")
        group.data["rules"].remove(rule)
    _enforce(call)
    return {"Return": True}


def _rules(call: Call) -> list[list[Any]]:
    rules = []
    for each in call.p.get("IpPermissions", ()):
        ends = [each["IpProtocol"], each.get("FromPort"), each.get("ToPort")]
        for kind, key in _SOURCES.items():
            for source in each.get(kind, ()):
                if key != "GroupId":
                    _need_network(source[key])
                rules.append([*ends, source[key]])
    return rules


_SOURCES = {"IpRanges": "CidrIp", "Ipv6Ranges": "CidrIpv6", "UserIdGroupPairs": "GroupId"}


def _need_network(text: str) -> None:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise ApiError("InvalidParameterValue", f"CIDR block {text} is malformed") from None


def _enforce(call: Call) -> None:
    if call.cloud.machines is not None:
        call.cloud.machines.enforce()


def _source(source: str) -> dict[str, Any]:
    kind = "Ipv6Ranges" if ":" in source else "IpRanges"
    if source.startswith("sg-"):
        kind = "UserIdGroupPairs"
    return {kind: [{_SOURCES[kind]: source}]}


@action("DescribeSecurityGroups")
def describe_security_groups(call: Call) -> dict[str, Any]:
    def show(each: Resource, at: float) -> dict[str, Any]:
        return {
            "GroupId": each.id,
            "GroupName": each.data["name"],
            "Description": each.data["description"],
            "VpcId": each.data["vpc"],
            "OwnerId": catalogue.ACCOUNT,
            "Tags": tag_list(each, at),
            "IpPermissions": [
                {"IpProtocol": protocol, "FromPort": low, "ToPort": high, **_source(source)}
                for protocol, low, high, source in each.data["rules"]
            ],
        }

    fields = {
        "group-name": lambda r, at: r.data["name"],
        "group-id": lambda r, at: r.id,
        "vpc-id": lambda r, at: r.data["vpc"],
    }
    ids = call.p.get("GroupIds", ())
    names = call.p.get("GroupNames", ())
    return described(call, "security-group", ids, fields, show, "SecurityGroups", names=names)


@action("DeleteSecurityGroup")
def delete_security_group(call: Call) -> dict[str, Any]:
    group = call.find("security-group", call.p["GroupId"])
    for each in call.cloud.resources.values():
        # "If you attempt to delete a security group that is associated with an instance or network
        # interface ..., the operation fails with DependencyViolation":
        # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteSecurityGroup.html
        uses = group.id in each.data.get("groups", ()) and each.exists(call.now)
        if uses and (each.kind != "instance" or each.state(call.now) != "terminated"):
            raise ApiError("DependencyViolation", f"resource {group.id} has a dependent object")
    group.gone = call.now
    return {"Return": True, "GroupId": group.id}


@action("CreateNetworkInterface")
def create_network_interface(call: Call) -> dict[str, Any]:
    def make() -> Resource:
        return call.cloud.add(
            "network-interface", call.region, zone=catalogue.REGIONS[call.region][0],
            tags=tags_for(call, "network-interface"), groups=call.p.get("Groups", ()), instance="",
            token=call.p.get("ClientToken", ""),
        )  # fmt: skip

    return {"NetworkInterface": _show_interface(once(call, make), call.now)}


def _show_interface(each: Resource, at: float) -> dict[str, Any]:
    return {
        "NetworkInterfaceId": each.id,
        "AvailabilityZone": each.zone,
        "Status": "in-use" if each.data["instance"] else "available",
        "TagSet": tag_list(each, at),
    }


@action("DescribeNetworkInterfaces")
def describe_network_interfaces(call: Call) -> dict[str, Any]:
    fields = {"status": lambda r, at: "in-use" if r.data["instance"] else "available"}
    ids = call.p.get("NetworkInterfaceIds", ())
    return described(call, "network-interface", ids, fields, _show_interface, "NetworkInterfaces")


@action("DeleteNetworkInterface")
def delete_network_interface(call: Call) -> dict[str, Any]:
    each = call.find("network-interface", call.p["NetworkInterfaceId"])
    if each.data["instance"]:
        raise ApiError(
            "InvalidNetworkInterface.InUse", f"Network interface '{each.id}' is currently in use."
        )
    each.gone = call.now
    return {}


@action("CreateLaunchTemplate")
def create_launch_template(call: Call) -> dict[str, Any]:
    name = call.p["LaunchTemplateName"]

    def make() -> Resource:
        if any(each.data["name"] == name for each in call.all("launch-template", call.now)):
            raise ApiError(
                "InvalidLaunchTemplateName.AlreadyExistsException",
                "Launch template name already in use.",
            )
        return call.cloud.add(
            "launch-template", call.region, tags=tags_for(call, "launch-template"), name=name,
            token=call.p.get("ClientToken", ""), data=dict(call.p.get("LaunchTemplateData", {})),
        )  # fmt: skip

    return {"LaunchTemplate": _show_template(once(call, make), call.now)}


def _show_template(each: Resource, at: float) -> dict[str, Any]:
    return {
        "LaunchTemplateId": each.id,
        "LaunchTemplateName": each.data["name"],
        "CreateTime": each.created,
        "DefaultVersionNumber": 1,
        "LatestVersionNumber": 1,
        "Tags": tag_list(each, at),
    }


@action("DescribeLaunchTemplates")
def describe_launch_templates(call: Call) -> dict[str, Any]:
    fields = {"launch-template-name": lambda r, at: r.data["name"]}
    return described(
        call, "launch-template", call.p.get("LaunchTemplateIds", ()), fields, _show_template,
        "LaunchTemplates", names=call.p.get("LaunchTemplateNames", ()),
    )  # fmt: skip


@action("DeleteLaunchTemplate")
def delete_launch_template(call: Call) -> dict[str, Any]:
    each = (
        call.find("launch-template", call.p["LaunchTemplateId"])
        if "LaunchTemplateId" in call.p
        else named(call, "launch-template", call.p["LaunchTemplateName"], call.at)
    )
    each.gone = call.now
    return {"LaunchTemplate": _show_template(each, call.now)}
