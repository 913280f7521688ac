"""QEMU: a virtual machine with virtio disk and network; KVM where guests boot on it, else TCG."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from nephoscope.lab import commands
from nephoscope.lab.handle import HostPlan
from nephoscope.lab.images import Image
from nephoscope.lab.platforms import accelerator
from nephoscope.lab.platforms.base import disks, sbin
from nephoscope.lab.platforms.guest import Guest, Tap
from nephoscope.provisioning import Say

_TRANSLATED_MIB = 64
"""TCG's store of translated code; by default it is a large part of the machine's memory."""
_DISK = "if=none,id=disk,format=qcow2,backing.file.locking=off"
_OFFLOADS = ("gso", *(f"{side}_{what}" for side in ("host", "guest") for what in ("tso4", "tso6")))
_OFFLOADS += ("host_ecn", "host_ufo", "guest_ecn", "guest_ufo")
_NO_OFFLOADS = ",".join(f"{name}=off" for name in _OFFLOADS)
"""Every packet on the lab's links is one packet (see namespaces.without_offloads)."""


class Qemu(Guest):
    """One process for each guest."""

    name = "qemu"
    disk_name = "disk.qcow2"
    programs: ClassVar[Mapping[str, str]] = {
        "qemu-system-x86_64": "qemu-system-x86",
        "qemu-img": "qemu-utils",
        "ip": "iproute2",
    }
    overhead_bytes = (_TRANSLATED_MIB + 64) << 20

    async def settle(self, image: Image, say: Say) -> Mapping[str, Any]:
        """See `Guest.settle`."""
        kind, why = await accelerator.find(image.kernel, say)
        return {"accelerator": kind, "accelerator_why": why, "kernel": image.facts["kernel"]}

    async def prepare(self, say: Say) -> None:
        """See `Platform.prepare`."""
        from nephoscope.lab import images

        await self.settle(await images.ensure(say), say)

    async def new_disk(self, disk: Path, image: Path) -> None:
        """See `Guest.new_disk`."""
        words = [str(sbin("qemu-img")), "create", "-q", "-f", "qcow2"]
        await commands.Runner(None).run([*words, "-b", str(image), "-F", "raw", str(disk)])

    def command(
        self,
        plan: HostPlan,
        image: Image,
        taps: tuple[Tap, ...],
        memory_bytes: int,
        extra: Mapping[str, Any],
    ) -> list[str]:
        """See `Guest.command`."""
        folder = plan.directory
        kvm = extra["accelerator"] == "kvm"
        processor = ["-accel", "kvm", "-cpu", "host"]
        if not kvm:
            translate = f"tcg,thread=multi,tb-size={_TRANSLATED_MIB}"
            processor = ["-accel", translate, "-cpu", "max"]
        networks: list[str] = []
        for number, tap in enumerate(taps):
            networks += [
                *("-netdev", f"tap,id=n{number},ifname={tap.device},script=no,downscript=no"),
                "-device",
                f"virtio-net-pci,netdev=n{number},mac={tap.mac},romfile=,{_NO_OFFLOADS}",
            ]
        return [
            str(sbin("qemu-system-x86_64")),
            *("-name", plan.name, "-machine", "q35", *processor),
            *("-smp", str(plan.spec.vcpus), "-m", str(memory_bytes >> 20)),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *(
                "-sandbox",
                "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
            ),
            *("-rtc", "base=utc,clock=host"),
            # The console is a socket (the power button) whose output is kept in the log too.
            "-chardev",
            f"socket,id=console,path={folder}/console.sock,server=on,wait=off,"
            f"logfile={folder}/console.log,logappend=on",
            *("-serial", "chardev:console"),
            *("-kernel", str(image.kernel), "-initrd", str(image.initrd)),
            # earlyprintk: its first line when it is printed, not when the console driver is up.
            *("-append", "console=ttyS0 earlyprintk=ttyS0,115200 loglevel=6 panic=-1"),
            # User-Mode Linux locks the image that both only read, and QEMU would not start.
            *("-drive", f"{_DISK},file={disks(plan) / self.disk_name}"),
            *("-device", "virtio-blk-pci,drive=disk"),
            *("-drive", f"if=none,id=given,file={folder}/given.tar,format=raw,readonly=on"),
            *("-device", "virtio-blk-pci,drive=given"),
            *("-device", "virtio-rng-pci"),
            *networks,
        ]

    @contextlib.asynccontextmanager
    async def power_button(self, plan: HostPlan) -> AsyncIterator[None]:
        """See `Guest.power_button`: a line on the console, which our init reads."""
        async with asyncio.timeout(1.0):
            _, writer = await asyncio.open_unix_connection(str(plan.directory / "console.sock"))
        try:
            writer.write(b"power off\n")
            # What the guest has not read yet is lost when the connection ends.
            yield
        finally:
            writer.transport.abort()
