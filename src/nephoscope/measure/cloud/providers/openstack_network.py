"""Networks, security groups and server groups of OpenStack, and the names that hold tags."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from ipaddress import ip_network
from typing import Any

from openstack import exceptions
from openstack.connection import Connection

from nephoscope.measure.cloud.model import (
    PEER_PORTS,
    CloudResource,
    Kind,
    Placement,
    PlacementGroupRequest,
    ResourceState,
    SecurityGroupRequest,
    Tags,
)
from nephoscope.measure.cloud.provider import Cause, CloudError


def name_of(tags: Tags) -> str:
    """Returns a name that holds tags and token, of the characters that every nova takes."""
    return tags.as_name(tags.token).replace(".", " ")


def tags_of(name: str) -> Tags | None:
    """Returns the tags in a name that `name_of` made; None for another's."""
    tags, dotted = Tags.from_name(str(name)), str(name).replace(" ", ".")
    return replace(tags, token=dotted.split(".", 4)[4]) if tags and dotted.count(".") > 3 else tags


def networks(connection: Connection, name: str) -> Any:
    """Returns the networks of a server, as nova wants them."""
    if name:
        result = connection.network.find_network(name, ignore_missing=True)
        if result is None:
            raise CloudError(
                Cause.UNKNOWN,
                f"OpenStack: no network '{name}'.",
                "List them with `openstack network list`.",
            )
        return [{"uuid": result.id}]
    usable = [
        entry
        for entry in connection.network.networks()
        if entry.is_shared or not entry.is_router_external
    ]
    if len(usable) == 1:
        return [{"uuid": usable[0].id}]
    if usable:
        names = ", ".join(sorted(str(entry.name) for entry in usable))
        raise CloudError(
            Cause.UNKNOWN,
            f"OpenStack: the project has {len(usable)} networks, and none is named.",
            f"Name one of: {names}.",
        )
    return "auto"


def security_group(
    connection: Connection, request: SecurityGroupRequest
) -> Sequence[CloudResource]:
    """Makes a group that lets in logins and its own members; without a source, nobody."""
    network, name = connection.network, name_of(request.tags)
    groups = list(network.security_groups(name=name))
    group = groups[0] if groups else network.create_security_group(name=name)
    family = "IPv6" if ":" in request.source else "IPv4"
    rules: list[dict[str, Any]] = [
        {"ethertype": ethertype, "remote_group_id": group.id} for ethertype in ("IPv4", "IPv6")
    ]
    # Last: a group that lacks it is listed as failed.
    rules.append(
        {
            "ethertype": family,
            "remote_ip_prefix": request.source,
            "protocol": "tcp",
            "port_range_min": request.port,
            "port_range_max": request.port,
        }
    )
    for rule in rules if request.source else ():
        _add_rule(connection, str(group.id), rule)
    return [CloudResource(Kind.SECURITY_GROUP, group.id, request.region, request.tags, name=name)]


def _add_rule(connection: Connection, group: str, rule: Mapping[str, Any]) -> None:
    with contextlib.suppress(exceptions.ConflictException):  # It is there.
        connection.network.create_security_group_rule(
            security_group_id=group, direction="ingress", **rule
        )


def admit(connection: Connection, group: CloudResource, sources: Collection[str]) -> None:
    """See `Provider.admit`."""
    wanted = [rule for source in sorted(sources) for rule in _peer_rules(source)]
    present = []
    for entry in connection.network.security_group_rules(security_group_id=group.id):
        values = {key: getattr(entry, name) for key, name in _RULE.items()}
        rule = {key: value for key, value in values.items() if value is not None}
        is_of_peers = rule.get("protocol") != "tcp" or rule.get("port_range_min") == PEER_PORTS[0]
        if entry.direction != "ingress" or not rule.get("remote_ip_prefix") or not is_of_peers:
            continue
        present.append(rule)
        if rule not in wanted:
            connection.network.delete_security_group_rule(entry.id)
    for rule in wanted:
        if rule not in present:
            _add_rule(connection, group.id, rule)


_RULE = {
    "ethertype": "ether_type",
    "remote_ip_prefix": "remote_ip_prefix",
    "protocol": "protocol",
    "port_range_min": "port_range_min",
    "port_range_max": "port_range_max",
}
"""Part of a rule, by the name that neutron takes -> attribute of openstacksdk's rule."""


def _peer_rules(source: str) -> Iterator[dict[str, Any]]:
    network = ip_network(source)
    common = {"ethertype": f"IPv{network.version}", "remote_ip_prefix": str(network)}
    first, last = PEER_PORTS
    for protocol in ("tcp", "udp"):
        yield {
            **common,
            "protocol": protocol,
            "port_range_min": first,
            "port_range_max": last,
        }
    yield {**common, "protocol": "icmp" if network.version == 4 else "ipv6-icmp"}


POLICIES: Mapping[Placement, str] = {"cluster": "affinity", "spread": "anti-affinity"}
"""Placement -> policy of a server group: on one host, or each on a host of its own."""


def server_group(connection: Connection, request: PlacementGroupRequest) -> Sequence[CloudResource]:
    """Makes a server group; its name holds the tags, for it takes none."""
    name, policy = name_of(request.tags), POLICIES[request.placement]
    # Names may be there twice: what an earlier call with this token made is looked for.
    made = [entry for entry in connection.compute.server_groups() if entry.name == name]
    group = made[0] if made else connection.compute.create_server_group(name=name, policy=policy)
    return [
        CloudResource(Kind.PLACEMENT_GROUP, str(group.id), request.region, request.tags, name=name)
    ]


def groups(connection: Connection, region: str) -> Iterator[CloudResource]:
    """Yields the server groups."""
    for group in connection.compute.server_groups():
        if tags := tags_of(group.name):
            name = str(group.name)
            yield CloudResource(Kind.PLACEMENT_GROUP, str(group.id), region, tags, name=name)


def listed(connection: Connection, region: str, servers: set[str]) -> Iterator[CloudResource]:
    """Yields security groups, and ports in them whose server has gone: nova's have no tags."""
    project, own_groups = connection.current_project_id, {}
    for group in connection.network.security_groups(project_id=project):
        if tags := tags_of(group.name):
            own_groups[group.id] = tags
            is_open = any(
                rule["direction"] == "ingress" and rule["remote_ip_prefix"]
                for rule in group.security_group_rules
            )
            state = ResourceState.READY if is_open else ResourceState.FAILED
            yield CloudResource(
                Kind.SECURITY_GROUP,
                str(group.id),
                region,
                tags,
                state,
                name=str(group.name),
                created_s=seconds_of(group.created_at),
            )
    for port in connection.network.ports(project_id=project) if own_groups else ():
        own = [own_groups[group] for group in port.security_group_ids or () if group in own_groups]
        if own and str(port.device_id) not in servers:
            yield CloudResource(Kind.PORT, str(port.id), region, own[0], name=str(port.name or ""))


def seconds_of(text: str | None) -> float | None:
    """Returns the seconds since the epoch of a time in UTC, with or without its mark."""
    if not text:
        return None
    return datetime.fromisoformat(str(text).rstrip("Z") + "+00:00").timestamp()
