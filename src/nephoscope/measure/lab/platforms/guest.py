"""What guests have in common: their interfaces, what they are told, their boot, their end."""

from __future__ import annotations

import contextlib
import io
import shutil
import socket
import tarfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from nephoscope.core.errors import Lacking, UsageError
from nephoscope.measure.lab import boot, commands, images
from nephoscope.measure.lab.boot import Console
from nephoscope.measure.lab.handle import GuestAccess, HostPlan, Nic, StartedHost
from nephoscope.measure.lab.images import Image
from nephoscope.measure.lab.needs import missing
from nephoscope.measure.lab.network import namespaces
from nephoscope.measure.lab.network.layout import mac_of
from nephoscope.measure.lab.platforms import confinement, control
from nephoscope.measure.lab.platforms.base import (
    Platform,
    Process,
    disks,
    end_group,
    launch,
    not_root,
)
from nephoscope.measure.lab.platforms.control import Keys
from nephoscope.measure.provisioning import Say

CONTROL = "control"
MEMORY_BYTES = 1 << 30
"""Memory of a guest whose topology states none; the guest takes only what it uses."""
_LEAST_BYTES = 96 << 20
"""Debian's kernel and an ssh server start in that."""
_POWER_OFF_S = 5.0
_OUTSIDE_BIT = 0x04


@dataclass(frozen=True, slots=True)
class Tap:
    """An interface of a guest: the device outside and its hardware address inside."""

    device: str
    mac: str


class Guest(Platform, ABC):
    """A platform whose hosts have a kernel of their own."""

    name: str
    programs: ClassVar[Mapping[str, str]]
    """What it starts -> the Debian package."""
    disk_name: str
    overhead_bytes: int
    """Memory that the program needs besides the guest's own."""

    def lacking(self) -> Lacking | None:
        """See `Platform.lacking`."""
        what = f"A host of platform {self.name}"
        absent = not_root(what) or missing(self.programs, what) or images.lacking()
        if absent is None and not Path("/dev/net/tun").exists():
            return Lacking(f"{what} needs /dev/net/tun, which is not here.", "Run `modprobe tun`.")
        return absent

    async def prepare(self, say: Say) -> None:
        """See `Platform.prepare`."""
        await images.ensure(say)

    async def start(
        self, plan: HostPlan, *, say: Say, lock: int | None = None, keep: bool = False
    ) -> StartedHost:
        """See `Platform.start`."""
        memory_bytes = self.memory(plan)
        image = await images.ensure(say)
        extra = await self.settle(image, say)
        began = time.monotonic_ns()
        taps = await connect(plan, lock)
        keys = control.make_keys(plan.directory)
        archive = plan.directory / "given.tar"
        modules = image.modules() if plan.spec.mounts else {}
        write_given(archive, identity_files(plan, taps, keys) | modules)
        backing = plan.directory / "image.ext4"
        backing.unlink(missing_ok=True)
        backing.symlink_to(image.disk)
        disk = disks(plan) / self.disk_name
        if not keep or not disk.exists():
            disk.unlink(missing_ok=True)
            await self.new_disk(disk, backing)
        log = plan.directory / "console.log"
        console = Console(log)
        console.skip()
        words = self.command(plan, image, taps, memory_bytes, extra)
        process = await launch(plan, _confined(plan, image, words), log=log, lock=lock)
        address, port, user = control.GUEST_ADDRESS, control.PORT, control.USER
        access = GuestAccess(address, port, user, plan.netns, keys.identity, keys.known_hosts)
        what = f"host {plan.name} ({self.name})"
        bound_s = boot.timeout_s(_share(plan))
        times = await boot.watch(
            what, began, console, process.alive, lambda: control.answers_ssh(access), bound_s
        )
        # User-Mode Linux turns segmentation on again when it opens a TAP, and then drops most of
        # the large packets: an upload over the control interface would crawl at 20 kB/s.
        namespaces.prepare(plan.netns, {}, [tap.device for tap in taps])
        clock = await control.set_clock(access, bound_s)
        details = {
            "image": image.content,
            "memory_bytes": memory_bytes,
            "vcpus": plan.spec.vcpus,
            "clock": asdict(clock),
            **extra,
        }
        return StartedHost(times, (), access, details)

    async def stop(self, plan: HostPlan) -> None:
        """See `Platform.stop`."""
        process = Process.read(plan.directory / "pid")
        if process is not None:
            with contextlib.suppress(OSError):
                async with self.power_button(plan):
                    await process.ended(_POWER_OFF_S)
        await end_group(plan)
        await disconnect(plan)

    def memory(self, plan: HostPlan) -> int:
        """Bytes of memory of the guest: what the host's limit leaves beside the program itself.

        Raises UsageError when that is too little.
        """
        limit = plan.spec.memory_bytes
        if limit is None:
            return MEMORY_BYTES
        left = (limit - self.overhead_bytes) >> 20 << 20
        if left < _LEAST_BYTES:
            least = (self.overhead_bytes + _LEAST_BYTES) >> 20
            raise UsageError(
                f"hosts.{plan.name}.memory: {limit >> 20} MiB are too few for a guest of platform "
                f"{self.name}.",
                f"Write at least {least}MiB.",
            )
        return left

    async def settle(self, image: Image, say: Say) -> Mapping[str, Any]:
        """Finds out, before the clock starts, what has to be known; goes into the details."""
        return {}

    @abstractmethod
    async def new_disk(self, disk: Path, image: Path) -> None:
        """Makes `disk`, which is not there, an empty overlay of `image`."""

    @abstractmethod
    def command(
        self,
        plan: HostPlan,
        image: Image,
        taps: tuple[Tap, ...],
        memory_bytes: int,
        extra: Mapping[str, Any],
    ) -> list[str]:
        """The program with its arguments; its files are in the host's folder."""

    @abstractmethod
    def power_button(self, plan: HostPlan) -> AbstractAsyncContextManager[None]:
        """Asks the guest to end, and goes on asking while it is entered. Raises OSError when
        nobody listens."""


def _confined(plan: HostPlan, image: Image, words: Sequence[str]) -> list[str]:
    """Returns the command that runs the guest's program with its own files only."""
    folder, run, own = plan.directory, confinement.run_folder(plan), disks(plan)
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(mode=0o700)
    identity_disk, log = folder / "given.tar", folder / "console.log"
    log.touch(mode=0o600)
    confinement.give(plan, run, own, *own.iterdir(), identity_disk, log)
    reads = [folder / "image.ext4", image.kernel, image.initrd, identity_disk]
    return confinement.confined(plan, words, reads=reads, writes=[run, own, log])


def _share(plan: HostPlan) -> float:
    """The part of one CPU that the host has at most."""
    cpu = plan.spec.cpu
    reserved = 1.0 if cpu.reservation is None else cpu.reservation.cpus
    return min(reserved, 1.0 if cpu.cap is None else cpu.cap)


def outside(mac: str) -> str:
    """Another locally administered address for the end outside: a bridge keeps to itself what is
    sent to the address of one of its own ports."""
    first, *rest = mac.split(":")
    return ":".join([f"{int(first, 16) ^ _OUTSIDE_BIT:02x}", *rest])


def taps_of(plan: HostPlan) -> tuple[Tap, ...]:
    """The guest's interfaces: one for each of the host's, and the control interface last."""
    data = tuple(Tap(f"tap-{nic.device}", nic.mac) for nic in plan.nics)
    return (*data, Tap(CONTROL, mac_of(plan.lab, plan.name, CONTROL)))


async def connect(plan: HostPlan, lock: int | None) -> tuple[Tap, ...]:
    """Makes the guest's interfaces in the host's namespace: each data interface is bridged to the
    host's, so that the guest has the host's place on the link; the control one ends here."""
    await disconnect(plan)
    taps, owner = taps_of(plan), confinement.user(plan)
    lines = []
    for nic, tap in zip(plan.nics, taps, strict=False):
        bridge = _bridge(nic)
        lines += [
            f"link add {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"link set {bridge} addrgenmode none",
            f"tuntap add dev {tap.device} mode tap user {owner}",
            f"link set {tap.device} addrgenmode none",
            f"link set {tap.device} mtu {nic.mtu_bytes}",
            # A port takes frames at once only when it is up before it joins.
            f"link set {tap.device} up",
            f"link set {nic.device} down",
            f"link set {nic.device} address {outside(nic.mac)}",
            f"link set {nic.device} up",
            f"link set {nic.device} master {bridge}",
            f"link set {tap.device} master {bridge}",
            f"link set {bridge} mtu {nic.mtu_bytes}",
            f"link set {bridge} up",
        ]
    own = taps[-1]
    lines += [
        f"tuntap add dev {own.device} mode tap user {owner}",
        f"link set {own.device} addrgenmode none",
        f"addr add {control.HOST_ADDRESS}/{control.PREFIX_BITS} dev {own.device}",
        f"link set {own.device} up",
        # Without asking who has the address: that question would be repeated once a second only.
        f"neigh replace {control.GUEST_ADDRESS} lladdr {own.mac} dev {own.device} nud permanent",
    ]
    await commands.Runner(lock).ip(lines, plan.netns)
    namespaces.prepare(plan.netns, {}, [tap.device for tap in taps])
    return taps


async def disconnect(plan: HostPlan) -> None:
    """Takes the guest's interfaces away and gives the host's their own address back."""
    have = [name for _, name in namespaces.within(plan.netns, socket.if_nameindex)]
    lines = [f"link delete {tap.device}" for tap in taps_of(plan) if tap.device in have]
    for nic in plan.nics:
        if _bridge(nic) in have:
            lines.append(f"link delete {_bridge(nic)}")
            lines.append(f"link set {nic.device} address {nic.mac}")
    await commands.Runner(None).ip(lines, plan.netns)


def _bridge(nic: Nic) -> str:
    return f"br-{nic.device}"


def identity_files(
    plan: HostPlan, taps: tuple[Tap, ...], keys: Keys
) -> dict[str, tuple[int, bytes]]:
    """Returns the files that give a guest its identity: path in its root -> mode and content."""
    own = taps[-1]
    nics = [f"{own.mac} {CONTROL} {control.GUEST_ADDRESS}/{control.PREFIX_BITS} 1500"]
    nics += [
        f"{nic.mac} {nic.device} {nic.address}/{nic.prefix_bits} {nic.mtu_bytes}"
        for nic in plan.nics
    ]
    routes = [f"{route.network} {route.via}" for route in plan.routes]
    sysctls = []
    if not plan.spec.ipv6:
        sysctls += [f"net/ipv6/conf/{where}/disable_ipv6 1" for where in ("all", "default")]
    if len(plan.nics) > 1:
        sysctls.append("net/ipv4/ip_forward 1")

    def text(lines: list[str]) -> tuple[int, bytes]:
        return 0o644, "".join(f"{line}\n" for line in lines).encode()

    return {
        "etc/hostname": text([plan.name]),
        "etc/hosts": (0o644, plan.hosts_text.encode()),
        "etc/nephoscope/nics": text(nics),
        "etc/nephoscope/routes": text(routes),
        "etc/nephoscope/sysctls": text(sysctls),
        "etc/nephoscope/control": text([control.GUEST_ADDRESS]),
        "etc/dropbear/host_key": (0o600, keys.host_key),
        "root/.ssh/authorized_keys": (0o600, keys.authorized),
    }


def write_given(path: Path, files: Mapping[str, tuple[int, bytes]]) -> None:
    """Writes the archive that is the guest's second disk. Only we may read it: it holds keys."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for folder, mode in (("root/.ssh", 0o700), ("etc/dropbear", 0o700)):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        for name, (mode, content) in files.items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = mode, len(content)
            tar.addfile(entry, io.BytesIO(content))
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(buffer.getvalue())
