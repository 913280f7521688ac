"""LXD 5.0 of Debian in a room, with an image of busybox."""

from __future__ import annotations

import contextlib
import io
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.clouds import busybox, roots
from tests.clouds.rooms import Room, room

from nephoscope.measure.targets.exec.rest import RestServer

PROGRAMS = ("mmdebstrap", "ip", "setpriv", *busybox.PROGRAMS)
PACKAGES = ("lxd", "dnsmasq-base", "iproute2", "kmod", "nftables")
IMAGE = "busybox"
PROJECT, INSTANCES = "bounded", 4
"""A project, and how many instances it may have."""
SOCKET = "/var/lib/lxd/unix.socket"
START = Path(__file__).with_name("start.sh")

INITTAB = """\
::sysinit:/bin/ip link set eth0 up
::once:/bin/udhcpc -q -n -i eth0 -s /etc/address
::respawn:/bin/sleep 100000
::shutdown:/bin/true
"""
ADDRESS = """\
#!/bin/sh
[ "$1" = bound ] && ip addr add "$ip/$mask" dev "$interface"
exit 0
"""


@dataclass(frozen=True)
class LxdServer:
    """A server that runs. socket: its path, as this machine sees it."""

    room: Room

    @property
    def socket(self) -> str:
        return str(self.room.path(SOCKET))

    def instances(self) -> list[str]:
        """The oracle: what LXC itself runs or keeps, without LXD's database."""
        kept = self.room.path("/var/lib/lxd/storage-pools/default/containers")
        return sorted(path.name for path in kept.iterdir())


@contextlib.contextmanager
def running() -> Iterator[LxdServer]:
    """Starts the server, with the image `busybox` in it."""
    root = roots.debian("lxd", PACKAGES)
    with room(root, START.read_text()) as made:
        server = LxdServer(made)
        made.until(lambda: made.path("/run/ready").exists())
        _add_image(server)
        yield server


def _add_image(server: LxdServer) -> None:
    api = RestServer("localhost", path=server.socket)
    answer = api.request("POST", "/1.0/images", image(), content_type="application/octet-stream")
    assert answer.good, answer.text
    done = api.request("GET", f"{answer.document['operation']}/wait").document["metadata"]
    fingerprint = done["metadata"]["fingerprint"]
    alias = {"name": IMAGE, "target": fingerprint}
    assert api.request("POST", "/1.0/images/aliases", alias).good


def image() -> bytes:
    """A unified image: metadata.yaml, and a root whose init takes an address by DHCP."""
    metadata = {
        "architecture": "x86_64",
        "creation_date": int(time.time()),
        "properties": {"description": "busybox", "os": "busybox"},
    }
    files = busybox.tree(
        etc__inittab=INITTAB,
        etc__address=ADDRESS,
        sbin__init="#!/bin/sh\nexec /bin/busybox init\n",
    )
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as tar:
        text = yaml.safe_dump(metadata).encode()
        member = tarfile.TarInfo("metadata.yaml")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
        with tarfile.open(fileobj=io.BytesIO(files)) as source:
            for one in source:
                content = source.extractfile(one) if one.isfile() else None
                one.name = f"rootfs/{one.name}"
                tar.addfile(one, content)
    return made.getvalue()
