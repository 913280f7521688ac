"""Fills a cloud, in its room: `identity` and `cloud` once, `start CIDR` whenever it is started."""

import json
import sys
import time
from pathlib import Path

import openstack

SITE = json.loads(Path("/etc/cloud.json").read_text(encoding="utf-8"))
cloud = openstack.connect(
    auth_url=SITE["identity"],
    username="admin",
    password=SITE["admin"],
    project_name="admin",
    user_domain_name="Default",
    project_domain_name="Default",
    region_name=SITE["region"],
)


def identity():
    service = cloud.identity.create_project(name="service", domain_id="default")
    renters = cloud.identity.create_project(name="renters", domain_id="default")
    roles = {role.name: role for role in cloud.identity.roles()}
    roles.setdefault("service", None)
    if roles["service"] is None:
        roles["service"] = cloud.identity.create_role(name="service")
    for name, project, of in (
        ("svc", service, ("admin", "service")),
        ("renter", renters, ("member", "reader")),
    ):
        user = cloud.identity.create_user(
            name=name,
            password=SITE["service" if name == "svc" else "renter"],
            domain_id="default",
            default_project_id=project.id,
        )
        for role in of:
            cloud.identity.assign_project_role_to_user(project, user, roles[role])
    for kind, url in SITE["services"].items():
        entry = cloud.identity.create_service(name=kind, type=kind)
        for interface in ("public", "internal", "admin"):
            cloud.identity.create_endpoint(
                service_id=entry.id, interface=interface, url=url, region_id=SITE["region"]
            )


def fill():
    deadline = time.monotonic() + 240
    while len(list(cloud.compute.hypervisors())) < 2:
        if time.monotonic() > deadline:
            raise SystemExit("the hosts of the cloud did not come up")
        time.sleep(1)
    for host in ("fake", "qemu"):
        aggregate = cloud.compute.create_aggregate(name=host, availability_zone=host)
        cloud.compute.add_host_to_aggregate(aggregate, host)
    for name, vcpus, ram in (("m1.tiny", 1, 256), ("m1.small", 1, 512), ("m1.large", 4, 4096)):
        cloud.compute.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=1)
    cloud.compute.create_flavor(name="m1.impossible", vcpus=1, ram=1 << 22, disk=1)
    parts = {}
    for name, kind, path in (
        ("guest-kernel", "aki", "/srv/guest/vmlinuz"),
        ("guest-initrd", "ari", "/srv/guest/initrd"),
    ):
        parts[name] = cloud.create_image(
            name,
            filename=path,
            disk_format=kind,
            container_format=kind,
            visibility="public",
            wait=True,
        )
    Path("/srv/blank").write_bytes(bytes(1 << 20))
    cloud.create_image(
        "guest",
        filename="/srv/blank",
        disk_format="raw",
        container_format="bare",
        visibility="public",
        wait=True,
        kernel_id=parts["guest-kernel"].id,
        ramdisk_id=parts["guest-initrd"].id,
    )
    renters = cloud.identity.find_project("renters")
    cloud.set_compute_quotas(renters.id, instances=33, cores=48, ram=1 << 16, key_pairs=100)


def start(cidr):
    """Makes the guests' network, and keys of the EC2 API, which it prints."""
    network = cloud.network.create_network(
        name="guests",
        provider_network_type="flat",
        provider_physical_network="guests",
        is_shared=True,
    )
    cloud.network.create_subnet(
        name="guests",
        network_id=network.id,
        ip_version=4,
        cidr=cidr,
        gateway_ip=cidr.replace(".0/24", ".1"),
        is_dhcp_enabled=False,
    )
    # What the gateway of a default VPC is attached to: without it EC2's interface makes none.
    outside = cloud.network.create_network(
        name="outside", provider_network_type="local", is_router_external=True
    )
    cloud.network.create_subnet(
        name="outside",
        network_id=outside.id,
        ip_version=4,
        cidr="192.0.2.0/24",
        is_dhcp_enabled=False,
    )
    renters = cloud.identity.find_project("renters")
    user = cloud.identity.find_user("renter")
    answer = cloud.identity.post(
        f"/users/{user.id}/credentials/OS-EC2", json={"tenant_id": renters.id}
    )
    made = answer.json()["credential"]
    deadline = time.monotonic() + 120
    while [service.state for service in cloud.compute.services()].count("up") < 4:
        if time.monotonic() > deadline:
            raise SystemExit("the services of nova did not come up")
        time.sleep(0.5)
    sys.stdout.write(json.dumps([made["access"], made["secret"]]) + "\n")


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    {"identity": identity, "cloud": fill, "start": start}[what](*words)
