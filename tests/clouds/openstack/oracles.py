"""What is left on a cloud, by its operator's view: no part of the program is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator

import openstack
from openstack.connection import Connection
from tests.clouds.openstack.cloud import Cloud
from tests.clouds.openstack.configuration import REGION


def operator(cloud: Cloud) -> Connection:
    """A connection of the cloud's operator."""
    return openstack.connect(
        auth_url=cloud.site.url("identity"),
        username="admin",
        password=cloud.site.admin,
        project_name="admin",
        user_domain_name="Default",
        project_domain_name="Default",
        region_name=REGION,
        load_yaml_config=False,
        load_envvars=False,
    )


def left(cloud: Cloud) -> list[str]:
    """Returns everything that renters have, over all projects, and what the hosts still hold."""
    with operator(cloud) as admin:
        return [*_services(admin), *_hosts(cloud, admin)]


def until_nothing(cloud: Cloud, limit_s: float = 60.0) -> float:
    """Waits until nothing is left, as nova settles a little later; returns the seconds."""
    began = time.monotonic()
    while found := left(cloud):
        assert time.monotonic() - began < limit_s, found
        time.sleep(0.5)
    return time.monotonic() - began


def machines(cloud: Cloud, run: str = "") -> dict[str, dict[str, str]]:
    """Metadata of all machines by id; of one rental only, where it is named."""
    with operator(cloud) as admin:
        found = {one.id: dict(one.metadata) for one in admin.compute.servers(all_projects=True)}
    return {
        id_: values
        for id_, values in found.items()
        if run in ("", values.get("nephoscope-run", ""))
    }


def _services(admin: Connection) -> Iterator[str]:
    for server in admin.compute.servers(all_projects=True):
        yield f"server {server.name} {server.status} {server.task_state}"
    for port in admin.network.ports():
        # One without an owner is of a machine that was never made.
        if not port.device_owner or str(port.device_owner).startswith("compute:"):
            yield f"port {port.id} of {port.device_id}"
    for group in admin.network.security_groups():
        # EC2's interface makes a network for each account with its first call, with a group.
        if group.name != "default" and not str(group.name).startswith("vpc-"):
            yield f"security group {group.name}"
    for image in admin.image.images():
        if image.visibility != "public":
            yield f"image {image.name}"
    renter = admin.identity.find_user("renter")
    for pair in admin.compute.keypairs(user_id=renter.id):
        yield f"key pair {pair.name}"


def _hosts(cloud: Cloud, admin: Connection) -> Iterator[str]:
    for host in admin.placement.resource_providers():
        usages = admin.placement.get(f"/resource_providers/{host.id}/usages").json()["usages"]
        if any(usages.values()):
            yield f"placement of {host.name}: {usages}"
    for name in cloud.room.run("virsh", "-q", "list", "--all", "--name").split():
        yield f"domain {name}"
