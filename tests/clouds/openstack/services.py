"""The services of an OpenStack cloud in a room: started, killed and started again by name."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.clouds.openstack.configuration import PORTS, REGION, Site, files
from tests.clouds.rooms import Room

FILES = Path(__file__).with_name("files")
LOGS = "/var/log/cloud"
FOLDERS = (
    LOGS,
    "/srv/files",
    "/etc/ec2api",
    "/run/mysqld",
    "/run/sshd",
    "/run/libvirt",
    "/run/lock",
    "/var/lib/ec2api",
    "/var/lib/neutron/locks",
    *(f"/var/lib/glance/{name}" for name in ("images", "staging", "tasks")),
    *(
        f"/var/lib/nova-{host}/{name}"
        for host in ("fake", "qemu")
        for name in ("instances", "locks")
    ),
)
WEB = (
    *("uwsgi", "--plugin", "python3", "--listen", "100", "--thunder-lock"),
    *("--processes", "1", "--threads", "8", "--enable-threads", "--lazy-apps", "--master"),
    # Bodies are read whole and connections closed: else the next request on one finds the rest.
    *("--die-on-term", "--buffer-size", "65535", "--post-buffering", "65536"),
    *("--add-header", "Connection: close", "--need-app"),
)
NEUTRON = ("--config-file", "/etc/neutron/neutron.conf", "--config-file")
PYTHON = "/usr/bin/python3"


def commands(address: str) -> dict[str, Sequence[str]]:
    """Returns the command line of every service, in the order of their start."""

    def web(port: int, program: str) -> Sequence[str]:
        return (*WEB, "--http-socket", f"{address}:{port}", "--wsgi-file", f"/usr/bin/{program}")

    nova = ("--config-file", "/etc/nova/nova.conf")
    return {
        "database": (
            *("mariadbd", "--user=mysql", "--bind-address=127.0.0.1", "--skip-log-bin"),
            *("--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"),
            *("--max-connections=400", "--init-file=/etc/mysql/first.sql"),
        ),
        "messages": ("rabbitmq-server",),
        "cache": ("memcached", "-u", "nobody", "-l", "127.0.0.1", "-m", "64"),
        "keystone": web(PORTS["identity"], "keystone-wsgi-public"),
        "placement": web(PORTS["placement"], "placement-api"),
        "glance-api": ("glance-api", "--config-file", "/etc/glance/glance-api.conf"),
        "nova-conductor": ("nova-conductor", *nova),
        "nova-scheduler": ("nova-scheduler", *nova),
        "nova-api": ("nova-api", *nova),
        "neutron-server": (
            PYTHON,
            "/srv/files/neutron_server.py",
            *NEUTRON,
            "/etc/neutron/ml2.ini",
        ),
        "bridge-agent": ("neutron-linuxbridge-agent", *NEUTRON, "/etc/neutron/bridge.ini"),
        "libvirtd": ("libvirtd", "--config", "/etc/libvirt/libvirtd.conf"),
        "nova-compute-fake": ("nova-compute", *nova),
        "nova-compute-qemu": ("nova-compute", "--config-file", "/etc/nova/nova-qemu.conf"),
        "volumes": (PYTHON, "/srv/files/volumes.py", address),
        "ec2-api": (
            *(PYTHON, "/srv/files/ec2_api.py"),
            *("--config-file", "/etc/ec2api/ec2api.conf"),
        ),
    }


VARIABLES = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "HOSTNAME": "localhost",
    "RABBITMQ_NODENAME": "rabbit@localhost",
    "RABBITMQ_LOGS": "-",
    "ERL_EPMD_ADDRESS": "127.0.0.1",
}


@dataclass
class Services:
    """The services of one room. They end with the room."""

    room: Room
    site: Site
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def configure(self, statements: Sequence[str]) -> None:
        """Writes their configuration. statements: of SQL, which the database runs first."""
        for folder in FOLDERS:
            self.room.path(folder).mkdir(parents=True, exist_ok=True)
        for source in FILES.iterdir():
            self.room.path(f"/srv/files/{source.name}").write_bytes(source.read_bytes())
        texts = {
            **files(self.site),
            "/etc/ec2api/api-paste.ini": (FILES / "api-paste.ini").read_text(),
            "/etc/mysql/first.sql": "\n".join(statements) + "\n",
            "/etc/hosts": "127.0.0.1 localhost room\n",
            "/etc/cloud.json": json.dumps(
                {
                    "identity": self.site.url("identity"),
                    "region": REGION,
                    "admin": self.site.admin,
                    "service": self.site.service,
                    "renter": self.site.renter,
                    "services": {
                        name: self.site.url(name)
                        for name in PORTS
                        if name not in ("identity", "ec2")
                    },
                }
            ),
        }
        for path, text in texts.items():
            file = self.room.path(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.room.run("chown", "mysql:", "/run/mysqld")

    def start(self, *names: str) -> None:
        """Starts services that do not run."""
        lines = commands(self.site.address)
        for name in names:
            assert name not in self.running, f"{name} runs already"
            self.running[name] = subprocess.Popen(
                [
                    *("nsenter", f"--target={self.room.pid}", "--all", "--", "setsid", "sh", "-c"),
                    f'cd /; exec "$@" >>{LOGS}/{name}.log 2>&1',
                    *("sh", *lines[name]),
                ],
                env=VARIABLES,
                stdin=subprocess.DEVNULL,
            )

    def kill(self, *names: str) -> None:
        """Ends services at once, with the processes that they had started."""
        for name in tuple(names):
            entering = self.running.pop(name)
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{entering.pid}/task/{entering.pid}/children").read_text()
                for child in children.split():
                    os.killpg(int(child), signal.SIGKILL)
            entering.wait(30)

    def close(self) -> None:
        """Ends all of them."""
        self.kill(*self.running)

    def restart(self, *names: str) -> None:
        """Kills services and starts them again."""
        self.kill(*names)
        self.start(*names)

    def answering(self, service: str, limit_s: float = 180.0) -> None:
        """Waits until a service's API answers."""
        port = PORTS[service]
        self.until(
            lambda: _answers(f"http://{self.site.address}:{port}/"), f"{service} answers", limit_s
        )

    def until(self, condition: Callable[[], object], what: str, limit_s: float = 180.0) -> None:
        """Waits for something; fails with the services' last words."""
        deadline = time.monotonic() + limit_s
        while not condition():
            ended = [name for name, process in self.running.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise AssertionError(
                    f"not so after {limit_s:.0f} s: {what}; ended: {', '.join(ended) or 'none'}\n"
                    + "\n".join(self.log(name)[-1500:] for name in ended)
                )
            time.sleep(0.2)

    def log(self, name: str) -> str:
        """What a service wrote."""
        try:
            return self.room.path(f"{LOGS}/{name}.log").read_text(errors="replace")
        except OSError:
            return ""


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False
    return True
