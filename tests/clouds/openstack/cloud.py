"""A real OpenStack cloud of two hosts, with an EC2 API, in a room of this machine.

Its root and its databases are made once (14 minutes) and kept in the user's cache; a cloud of them
is up within a minute, with an address and passwords of its own, and what is done to it ends with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.clouds import roots
from tests.clouds.openstack import configuration
from tests.clouds.openstack.configuration import DATABASES, PORTS, REGION, Site
from tests.clouds.openstack.services import FILES, Services
from tests.clouds.rooms import Room, room

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
    *("/srv/guest", "/opt/ec2api"),
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
INSIDE = "127.0.0.1"
STAY = "while :; do sleep 1000; done"
"""A first process that waits for all others, whoever started them."""


@dataclass(frozen=True)
class Cloud:
    """A cloud that runs. ec2_keys: access key and secret of its renter, for the EC2 API."""

    services: Services
    ec2_keys: tuple[str, str]
    guests: ipaddress.IPv4Network

    @property
    def room(self) -> Room:
        return self.services.room

    @property
    def site(self) -> Site:
        return self.services.site

    @property
    def ec2_url(self) -> str:
        return f"{self.site.url('ec2')}/"

    @property
    def libvirt_uri(self) -> str:
        """URI by which this machine's libvirt clients reach the one of the room."""
        return f"qemu+unix:///system?socket={self.room.path('/run/libvirt/libvirt-sock')}"

    def clouds_yaml(self) -> str:
        """The file in which users of OpenStack keep their clouds: `renter` and `admin`."""
        entries = {
            name: {
                "auth": {
                    "auth_url": self.site.url("identity"),
                    "username": name,
                    "password": password,
                    "project_name": project,
                    "user_domain_name": "Default",
                    "project_domain_name": "Default",
                },
                "region_name": REGION,
            }
            for name, password, project in (
                ("renter", self.site.renter, "renters"),
                ("admin", self.site.admin, "admin"),
            )
        }
        return yaml.safe_dump({"clouds": entries})


@contextlib.contextmanager
def cloud() -> Iterator[Cloud]:
    """Starts a cloud; all of it ends with the block, or with this process."""
    base = roots.debian("openstack", PACKAGES)
    made = roots.made_once(
        roots.cache("openstack"), f"made-{_digest()}", lambda part: _make(base, part)
    )
    with (
        room(Path(f"{made}:{base}"), STAY) as running,
        _network(running) as site_net,
    ):
        address, guests = site_net
        services = Services(running, Site(address))
        services.configure(_new_passwords(services))
        services.start("database", "messages", "cache", "libvirtd")
        services.until(lambda: _database_answers(services), "the database answers")
        services.start("keystone", "placement", "glance-api", "nova-conductor", "nova-scheduler")
        services.start("nova-api", "neutron-server", "bridge-agent", "volumes")
        services.start("nova-compute-fake", "nova-compute-qemu", "ec2-api")
        for name in PORTS:
            services.answering(name)
        words = running.run("python3", "/srv/files/seed.py", "start", str(guests), limit_s=300)
        access, secret = json.loads(words.splitlines()[-1])
        yield Cloud(services, (access, secret), guests)


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
    with room(Path(f"{part}:{base}"), STAY) as running:
        services = Services(running, Site(INSIDE))
        services.configure(_first_users(services))
        running.path("/etc/machine-id").write_text(f"{random.getrandbits(128):032x}\n")
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
    services.until(lambda: _database_answers(services), "the database answers")
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


def _new_passwords(services: Services) -> Sequence[str]:
    """Statements that give a cloud from the cache its own address and passwords."""
    site = services.site
    hashes = services.room.run(
        *("python3", "-c"),
        "import bcrypt, sys\nfor word in sys.stdin.read().split():\n"
        "    print(bcrypt.hashpw(word.encode(), bcrypt.gensalt(4)).decode())",
        stdin=f"{site.admin} {site.service} {site.renter}".encode(),
    ).split()
    return [
        *(f"ALTER USER cloud@'{h}' IDENTIFIED BY '{site.database}';" for h in ("%", "localhost")),
        *(
            "UPDATE keystone.password p JOIN keystone.local_user u ON p.local_user_id = u.id "
            f"SET p.password_hash = '{made}' WHERE u.name = '{name}';"
            for name, made in zip(("admin", "svc", "renter"), hashes, strict=True)
        ),
        f"UPDATE keystone.endpoint SET url = REPLACE(url, '//{INSIDE}:', '//{site.address}:');",
        # Ports of the host of the fake driver bind like others, though no agent is needed there.
        "INSERT INTO neutron.agents (id, agent_type, `binary`, topic, host, admin_state_up, "
        "created_at, started_at, heartbeat_timestamp, configurations, resources_synced) "
        "SELECT UUID(), agent_type, `binary`, topic, 'fake', 1, created_at, started_at, "
        "'2999-01-01', configurations, resources_synced FROM neutron.agents "
        "WHERE agent_type = 'Linux bridge agent' AND host = 'qemu';",
    ]


def _database_answers(services: Services) -> bool:
    try:
        services.room.run("mariadb-admin", "--user=root", "ping")
    except AssertionError:
        return False
    return True


@contextlib.contextmanager
def _network(running: Room) -> Iterator[tuple[str, ipaddress.IPv4Network]]:
    """Joins this machine to a room; yields the room's address and the network of its guests.

    The guests are behind the room: a bridge of the cloud, and one of libvirt's own machines.
    """
    number = random.randrange(1, 255)
    guests = ipaddress.ip_network(f"10.231.{number}.0/24")
    assert isinstance(guests, ipaddress.IPv4Network)
    outside, inside = f"10.230.{number}.1", f"10.230.{number}.2"
    link = f"neph{number}o"
    here = ("ip", "link")
    subprocess.run(
        [*here, "add", link, "type", "veth", "peer", "cloud0", "netns", str(running.pid)],
        check=True,
    )
    try:
        for words in (
            f"address add {outside}/30 dev {link}",
            f"link set {link} up",
            f"route add {guests} via {inside}",
            f"route add 10.232.{number}.0/24 via {inside}",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        running.run(
            *("sh", "-ec"),
            f"ip address add {inside}/30 dev cloud0; ip link set cloud0 up; "
            "ip link add guests0 type veth peer guests1; ip link set guests0 up; "
            f"ip address add 10.231.{number}.1/24 dev guests1; ip link set guests1 up; "
            f"ip route add default via {outside}; "
            "echo 1 >/proc/sys/net/ipv4/ip_forward",
        )
        yield inside, guests
    finally:
        # It goes with the room; sooner when only the test has failed.
        subprocess.run([*here, "delete", link], check=False, capture_output=True)
