"""QEMU: a virtual machine with virtio disk and network; KVM where guests boot on it, else TCG."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from nephoscope.core import leases
from nephoscope.core.format_versions import ACCELERATORS
from nephoscope.measure.lab import commands, images
from nephoscope.measure.lab.boot import KERNEL_MARK
from nephoscope.measure.lab.commands import entering
from nephoscope.measure.lab.handle import HostPlan
from nephoscope.measure.lab.images import Image
from nephoscope.measure.lab.needs import sbin
from nephoscope.measure.lab.platforms.base import disks
from nephoscope.measure.lab.platforms.confinement import run_folder
from nephoscope.measure.lab.platforms.guest import Guest, Tap
from nephoscope.measure.provisioning import Say

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
        kind, why = await find_accelerator(image.kernel, say)
        return {"accelerator": kind, "accelerator_why": why, "kernel": image.facts["kernel"]}

    async def prepare(self, say: Say) -> None:
        """See `Platform.prepare`."""
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
        return [
            *machine_words(plan, memory_bytes, extra["accelerator"]),
            # The console is a socket (the power button) whose output is kept in the log too.
            "-chardev",
            f"socket,id=console,path={run_folder(plan)}/console.sock,server=on,wait=off,"
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
            *network_words(taps),
        ]

    @contextlib.asynccontextmanager
    async def power_button(self, plan: HostPlan) -> AsyncIterator[None]:
        """See `Guest.power_button`: a line on the console, which our init reads."""
        async with asyncio.timeout(1.0):
            _, writer = await asyncio.open_unix_connection(str(run_folder(plan) / "console.sock"))
        try:
            writer.write(b"power off\n")
            # What the guest has not read yet is lost when the connection ends.
            yield
        finally:
            writer.transport.abort()


PLATFORM = Qemu()


def machine_words(plan: HostPlan, memory_bytes: int, accelerator: str) -> list[str]:
    """Returns the program and the options of a virtual machine without devices."""
    processor = ["-accel", "kvm", "-cpu", "host"]
    if accelerator != "kvm":
        translate = f"tcg,thread=multi,tb-size={_TRANSLATED_MIB}"
        processor = ["-accel", translate, "-cpu", "max"]
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
    ]


def network_words(taps: tuple[Tap, ...]) -> list[str]:
    """Returns the options of a virtual machine's network cards."""
    networks: list[str] = []
    for number, tap in enumerate(taps):
        networks += [
            *("-netdev", f"tap,id=n{number},ifname={tap.device},script=no,downscript=no"),
            "-device",
            f"virtio-net-pci,netdev=n{number},mac={tap.mac},romfile=,{_NO_OFFLOADS}",
        ]
    return networks


_KVM = Path("/dev/kvm")
_TRIAL_S = 5.0
"""A kernel under KVM prints its first line within half a second, on a busy machine too."""


async def find_accelerator(kernel: Path, say: Say) -> tuple[str, str]:
    """`kvm` or `tcg`, and why. kernel: the file that is booted to find out.

    The answer is kept for this machine's kernel and this QEMU: a machine that is moved to another
    kernel is tried anew.
    """
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return "tcg", "there is no /dev/kvm that we may use"
    key = f"{platform.release()} {await asyncio.to_thread(_version)}"
    memory = images.cache().parent / "accelerators.json"
    stored = commands.read_json(memory) or {}
    is_known = ACCELERATORS.is_readable(stored.get("version"))
    known = stored.get("accelerators", {}) if is_known else {}
    if key not in known:
        say("qemu: trying whether guests boot on /dev/kvm (once, 5 s at most)")
        known[key] = "kvm" if await _boots(kernel) else "tcg"
        document = {"version": ACCELERATORS.version, "accelerators": known}
        commands.write_json(memory, document)
    if known[key] == "kvm":
        return "kvm", "a kernel boots on /dev/kvm"
    return "tcg", f"no kernel boots on /dev/kvm within {_TRIAL_S:.0f} s"


async def _boots(kernel: Path) -> bool:
    with leases.ScratchFolder() as folder:
        console = folder / "console"
        console.touch()
        child = await asyncio.create_subprocess_exec(
            *entering(with_parent=True),
            *(str(sbin("qemu-system-x86_64")), "-accel", "kvm", "-machine", "q35", "-cpu", "host"),
            *("-m", "128", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-serial", f"file:{console}", "-kernel", str(kernel)),
            *("-append", "console=ttyS0 earlyprintk=ttyS0,115200 panic=-1"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=commands.environment(),
        )
        try:
            until = time.monotonic() + _TRIAL_S
            while time.monotonic() < until and child.returncode is None:
                if KERNEL_MARK.encode() in console.read_bytes():
                    return True
                await asyncio.sleep(0.02)
            return KERNEL_MARK.encode() in console.read_bytes()
        finally:
            if child.returncode is None:
                child.kill()
                await asyncio.shield(child.wait())


def _version() -> str:
    text = commands.output_of([str(sbin("qemu-system-x86_64")), "--version"])
    return (text.splitlines() or ["unknown"])[0]
