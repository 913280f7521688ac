"""Security groups of EC2: made with their rules, and opened to machines of the run elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_network
from typing import Any

from botocore.exceptions import ClientError

from nephoscope.measure.cloud.model import PEER_PORTS, CloudResource, Kind, SecurityGroupRequest
from nephoscope.measure.cloud.provider import Cause, CloudError
from nephoscope.measure.cloud.providers.ec2_calls import Ec2Calls
from nephoscope.measure.cloud.providers.ec2_errors import action_of, code_of, translating
from nephoscope.measure.cloud.providers.ec2_tags import tag_afterwards, tagging

_Rule = dict[str, Any]
"""One of `IpPermissions`, with one source."""


def open_group(calls: Ec2Calls, request: SecurityGroupRequest) -> CloudResource:
    """Makes a group that lets in logins and its own members."""
    region, tags = request.region, request.tags
    name = tags.as_name(tags.token)
    parameters = {"GroupName": name, "Description": "A rental of Nephoscope"}
    if request.network:
        parameters["VpcId"] = request.network
    marks = tagging(calls, region, tags, "security-group")
    with translating(f"CreateSecurityGroup in {region}"):
        client = calls.client("ec2", region)
        try:
            id = client.create_security_group(**parameters, **marks)["GroupId"]
        except ClientError as error:
            if code_of(error) != "InvalidGroup.Duplicate":
                raise
            id = _group_of_name(calls, region, name)
    tag_afterwards(calls, region, tags, [id])
    made = CloudResource(Kind.SECURITY_GROUP, id, region, tags, name=name)
    if not request.source:
        return made  # Closed: nobody logs in, and the members do not speak to each other.
    logins = {"IpProtocol": "tcp", "FromPort": request.port, "ToPort": request.port}
    _change(calls, made, {**logins, **_source(request.source)})
    _change(calls, made, {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": id}]})
    return made


def _group_of_name(calls: Ec2Calls, region: str, name: str) -> str:
    filters = [{"Name": "group-name", "Values": [name]}]
    listed = calls.pages("describe_security_groups", region, "SecurityGroups", Filters=filters)
    if not listed:
        # It was made, and is not listed yet.
        raise CloudError(Cause.UNANSWERED, f"EC2: the security group {name} is not listed yet.")
    return str(listed[0]["GroupId"])


def admit(calls: Ec2Calls, group: CloudResource, sources: Collection[str]) -> None:
    """See `Provider.admit`."""
    if unknown := [
        source for source in sources if ":" in source and not calls.is_modern(group.region)
    ]:
        raise CloudError(
            Cause.REFUSED,
            f"EC2: this cloud's security groups have no rules for IPv6 ({', '.join(unknown)}).",
            "Use machines with IPv4 addresses.",
        )
    wanted = [rule for source in sorted(sources) for rule in _peer_rules(source)]
    present = [rule for rule in _rules_of(calls, group) if _is_of_peers(rule)]
    for rule in present:
        if rule not in wanted:
            _change(calls, group, rule, "revoke_security_group_ingress")
    for rule in wanted:
        if rule not in present:
            _change(calls, group, rule)


def _peer_rules(source: str) -> Iterator[_Rule]:
    first, last = PEER_PORTS
    for protocol in ("tcp", "udp"):
        yield {"IpProtocol": protocol, "FromPort": first, "ToPort": last, **_source(source)}
    icmp = "icmpv6" if ":" in source else "icmp"
    yield {"IpProtocol": icmp, "FromPort": -1, "ToPort": -1, **_source(source)}


def _is_of_peers(rule: Mapping[str, Any]) -> bool:
    """Returns whether a rule is one of `_peer_rules`: no other of this program has its ports."""
    return (rule.get("FromPort"), rule.get("ToPort")) in (PEER_PORTS, (-1, -1))


def _source(source: str) -> _Rule:
    network = str(ip_network(source))
    if ":" in network:
        return {"Ipv6Ranges": [{"CidrIpv6": network}]}
    return {"IpRanges": [{"CidrIp": network}]}


def _rules_of(calls: Ec2Calls, group: CloudResource) -> Iterator[_Rule]:
    """Yields the rules of a group, each with one source, in the form of `_peer_rules`."""
    listed = calls.pages(
        "describe_security_groups", group.region, "SecurityGroups", GroupIds=[group.id]
    )
    for rule in (rule for entry in listed for rule in entry.get("IpPermissions", ())):
        ends = {key: rule[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in rule}
        for kind, key in (("IpRanges", "CidrIp"), ("Ipv6Ranges", "CidrIpv6")):
            for source in rule.get(kind, ()):
                yield {**ends, kind: [{key: source[key]}]}


def _change(
    calls: Ec2Calls,
    group: CloudResource,
    rule: _Rule,
    operation: str = "authorize_security_group_ingress",
) -> None:
    """Adds or removes a rule; one that is there, or gone, already is no error."""
    region = group.region
    marks: dict[str, Any] = {}
    if operation.startswith("authorize"):
        marks = tagging(calls, region, group.tags, "security-group-rule")
    with translating(f"{action_of(operation)} in {region}"):
        try:
            getattr(calls.client("ec2", region), operation)(
                GroupId=group.id, IpPermissions=[rule], **marks
            )
        except ClientError as error:
            if code_of(error) == "InvalidGroup.NotFound":
                text = f"EC2: the security group {group.id} is not visible yet."
                raise CloudError(Cause.UNANSWERED, text) from None
            if code_of(error) not in ("InvalidPermission.Duplicate", "InvalidPermission.NotFound"):
                raise
