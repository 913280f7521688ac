"""A real OpenStack cloud of two hosts, with an EC2 API, in a room of this machine.

Its root and its databases are made once, in a quarter of an hour, and kept in the user's cache. A
cloud of them is up in a minute or two, has an address and passwords of its own, and what is done to
it ends with it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml
from tests.clouds.openstack.configuration import PORTS, REGION, Site
from tests.clouds.openstack.network import joined
from tests.clouds.openstack.preparation import STAY, database_answers, prepared
from tests.clouds.openstack.services import Services
from tests.clouds.rooms import Room, room


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
    with (
        room(prepared(), STAY) as running,
        joined(running) as (address, guests),
        contextlib.closing(Services(running, Site(address))) as services,
    ):
        services.configure(_new_passwords(services))
        services.start("database", "messages", "cache", "libvirtd")
        services.until(lambda: database_answers(services), "the database answers")
        services.start("keystone", "placement", "glance-api", "nova-conductor", "nova-scheduler")
        services.start("nova-api", "neutron-server", "bridge-agent", "volumes")
        services.start("nova-compute-fake", "nova-compute-qemu", "ec2-api")
        for name in PORTS:
            services.answering(name)
        words = running.run("python3", "/srv/files/seed.py", "start", str(guests), limit_s=300)
        access, secret = json.loads(words.splitlines()[-1])
        yield Cloud(services, (access, secret), guests)


def _new_passwords(services: Services) -> Sequence[str]:
    """Statements that give a cloud from the cache its own address and passwords."""
    site, made_at = services.site, services.room.path("/srv/address").read_text()
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
        f"UPDATE keystone.endpoint SET url = REPLACE(url, '//{made_at}:', '//{site.address}:');",
        # Ports of the host of the fake driver bind like others, though no agent is needed there.
        "INSERT INTO neutron.agents (id, agent_type, `binary`, topic, host, admin_state_up, "
        "created_at, started_at, heartbeat_timestamp, configurations, resources_synced) "
        "SELECT UUID(), agent_type, `binary`, topic, 'fake', 1, created_at, started_at, "
        "'2999-01-01', configurations, resources_synced FROM neutron.agents "
        "WHERE agent_type = 'Linux bridge agent' AND host = 'qemu';",
    ]
