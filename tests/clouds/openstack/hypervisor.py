"""QEMU without KVM behind libvirt, in a room: a pool with a guest's kernel, and a network."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.clouds.openstack.configuration import Site
from tests.clouds.openstack.network import joined
from tests.clouds.openstack.preparation import STAY, prepared
from tests.clouds.openstack.services import Services
from tests.clouds.rooms import Room, room

IMAGE = "/srv/guest/vmlinuz+/srv/guest/initrd"
_NETWORK = """<network><name>default</name><forward mode='open'/><bridge name='virbr0'/>
<ip address='{0}.1' netmask='255.255.255.0'><dhcp><range start='{0}.2' end='{0}.254'/></dhcp></ip>
</network>"""
_START = """
# Else the first machine waits until every emulator was asked what it can do.
virsh -q capabilities >/dev/null
virsh -q net-undefine default
virsh -q net-define /proc/self/fd/0
virsh -q net-start default
virsh -q pool-create-as default dir --target /var/lib/libvirt/images
virsh -q pool-create-as guest dir --target /srv/guest
"""


@dataclass(frozen=True)
class Hypervisor:
    """A host with libvirt. uri: by which this machine's libvirt clients reach it."""

    services: Services

    @property
    def room(self) -> Room:
        return self.services.room

    @property
    def uri(self) -> str:
        return libvirt_uri(self.room)


def libvirt_uri(running: Room) -> str:
    """URI of the libvirt of a room, for clients outside of it."""
    return f"qemu+unix:///system?socket={running.path('/run/libvirt/libvirt-sock')}"


@contextlib.contextmanager
def hypervisor() -> Iterator[Hypervisor]:
    """Starts a host; its machines end with the block, or with this process."""
    with (
        room(prepared(), STAY) as running,
        joined(running) as (address, guests),
        contextlib.closing(Services(running, Site(address))) as services,
    ):
        services.configure(())
        services.start("libvirtd")
        socket = running.path("/run/libvirt/libvirt-sock")
        services.until(socket.exists, "libvirt answers")
        running.path("/var/lib/libvirt/images").mkdir(parents=True, exist_ok=True)
        network = _NETWORK.format(str(guests).replace("10.231.", "10.232.").rpartition(".")[0])
        running.run("sh", "-ec", _START, stdin=network.encode())
        yield Hypervisor(services)
