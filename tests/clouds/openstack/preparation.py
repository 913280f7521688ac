"""What a cloud starts from: Debian's packages, and what their services have made once."""

from __future__ import annotations

import contextlib
import hashlib
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.clouds import roots
from tests.clouds.openstack import configuration
from tests.clouds.openstack.configuration import DATABASES, REGION, Site
from tests.clouds.openstack.network import joined
from tests.clouds.openstack.services import FILES, Services
from tests.clouds.rooms import room

PACKAGES = (
    *("ca-certificates", "cpio", "curl", "dnsmasq-base", "genisoimage", "iproute2", "iptables"),
    *("kmod", "openssh-server", "procps", "sudo", "zstd", "busybox-static"),
    *("keystone", "glance-api", "placement-api", "nova-api", "nova-conductor", "nova-scheduler"),
    *("nova-compute", "nova-compute-qemu", "neutron-server", "neutron-plugin-ml2"),
    *("neutron-linuxbridge-agent", "python3-openstackclient", "python3-pymysql"),
    *("python3-memcache", "rabbitmq-server", "mariadb-server", "memcached", "uwsgi-core"),
    *("uwsgi-plugin-python3", "libvirt-daemon-system", "libvirt-daemon-driver-qemu"),
    *("libvirt-clients", "python3-libvirt", "qemu-system-x86", "qemu-utils"),
    "linux-image-cloud-amd64",
)
EC2_API = "ec2-api==17.0.0"
"""Of PyPI; the libraries that it stands on are in the root, OpenStack's own."""
MADE = (
    *("/var/lib/mysql", "/var/lib/glance", "/var/lib/nova-fake", "/var/lib/nova-qemu"),
    *("/etc/keystone/fernet-keys", "/etc/keystone/credential-keys", "/etc/machine-id"),
    *("/srv/guest", "/srv/address"),
)
NOVA = ("--config-file", "/etc/nova/nova.conf")
SYNCHRONISED = (
    ("keystone-manage", "db_sync"),
    *(
        ("keystone-manage", what, "--keystone-user", "root", "--keystone-group", "root")
        for what in ("fernet_setup", "credential_setup")
    ),
    ("glance-manage", "db_sync"),
    ("placement-manage", "db", "sync"),
    ("nova-manage", "api_db", "sync"),
    # Filled in from the configuration by whoever reads them: passwords change with each cloud.
    (
        *("nova-manage", "cell_v2", "map_cell0", "--database_connection"),
        "{scheme}://{username}:{password}@{hostname}/nova_cell0?{query}",
    ),
    ("nova-manage", "db", "sync"),
    (
        *("nova-manage", "cell_v2", "create_cell", "--name", "cell1", "--database_connection"),
        "{scheme}://{username}:{password}@{hostname}/{path}?{query}",
        *("--transport-url", "{scheme}://{username}:{password}@{hostname}:{port}/"),
    ),
    (
        *("neutron-db-manage", "--config-file", "/etc/neutron/neutron.conf"),
        *("--config-file", "/etc/neutron/ml2.ini", "upgrade", "head"),
    ),
    (
        *("env", "PYTHONPATH=/opt/ec2api", "python3", "/opt/ec2api/bin/ec2-api-manage"),
        *("--config-file", "/etc/ec2api/ec2api.conf", "db_sync"),
    ),
)
STAY = "while :; do sleep 1000; done"
"""A first process that waits for all others, whoever started them."""


def prepared() -> Path:
    """Returns the root of a cloud, as layers; made by the first that asks, which takes minutes."""
    base = roots.debian("openstack", PACKAGES)
    made = roots.made_once(
        roots.cache("openstack"), f"made-{_digest()}", lambda part: _make(base, part)
    )
    return Path(f"{made}:{base}")


def _digest() -> str:
    sources = [Path(__file__), Path(configuration.__file__), *sorted(FILES.iterdir())]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]


def _make(base: Path, part: Path) -> None:
    """Makes what a cloud needs beside its packages: databases, images, the EC2 API, a guest."""
    part.mkdir(parents=True)
    target = part / "opt" / "ec2api"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, EC2_API],
        check=True,
        timeout=300,
    )
    with (
        room(Path(f"{part}:{base}"), STAY) as running,
        joined(running) as (address, _),
        contextlib.closing(Services(running, Site(address))) as services,
    ):
        services.configure(_first_users(services))
        running.path("/etc/machine-id").write_text(f"{random.getrandbits(128):032x}\n")
        running.path("/srv/address").write_text(address)
        running.run("sh", "/srv/files/make_guest.sh")
        _fill(services)
        services.kill(*(name for name in services.running if name != "database"))
        running.run("mariadb-admin", "shutdown")
        for path in MADE:
            to = part / path.lstrip("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-aT", running.path(path), to], check=True)


def _fill(services: Services) -> None:
    """Makes the tables of every service, then starts them all and fills them."""
    services.start("database", "messages", "cache", "libvirtd")
    services.until(lambda: database_answers(services), "the database answers")
    for command in SYNCHRONISED:
        services.room.run(*command, limit_s=600)
    urls = [
        word
        for interface in ("public", "internal", "admin")
        for word in (f"--bootstrap-{interface}-url", services.site.url("identity"))
    ]
    services.room.run(
        *("keystone-manage", "bootstrap", "--bootstrap-region-id", REGION, *urls),
        *("--bootstrap-password", services.site.admin),
    )
    services.start("keystone", "placement")
    services.answering("identity")
    services.room.run("python3", "/srv/files/seed.py", "identity", limit_s=300)
    services.start("glance-api", "nova-conductor", "nova-scheduler", "nova-api", "neutron-server")
    services.start("bridge-agent", "nova-compute-fake", "nova-compute-qemu")
    for name in ("placement", "image", "compute", "network"):
        services.answering(name, 300)
    services.room.run("python3", "/srv/files/seed.py", "cloud", limit_s=600)


def _first_users(services: Services) -> Sequence[str]:
    """Statements that make the services' databases, and their user on both of its addresses."""
    password = services.site.database
    return [
        *(f"CREATE DATABASE {name} CHARACTER SET utf8;" for name in DATABASES),
        *(
            f"GRANT ALL ON *.* TO cloud@'{host}' IDENTIFIED BY '{password}';"
            for host in ("%", "localhost")
        ),
    ]


def database_answers(services: Services) -> bool:
    try:
        services.room.run("mariadb-admin", "--user=root", "ping")
    except AssertionError:
        return False
    return True
