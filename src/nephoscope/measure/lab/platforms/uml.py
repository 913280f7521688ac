"""User-Mode Linux: a guest kernel that is a program of this machine, with no help from hardware.

Options: `linux.uml --help`, and "User Mode Linux HOWTO" in the kernel's documentation
(`virt/uml/user_mode_linux_howto_v2`).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import struct
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from nephoscope.core import leases
from nephoscope.core.errors import Lacking
from nephoscope.measure.lab.handle import HostPlan
from nephoscope.measure.lab.images import Image
from nephoscope.measure.lab.needs import sbin
from nephoscope.measure.lab.platforms.base import disks
from nephoscope.measure.lab.platforms.confinement import run_folder
from nephoscope.measure.lab.platforms.guest import Guest, Tap

_MCONSOLE_MAGIC, _MCONSOLE_VERSION, _MCONSOLE_BYTES = 0xCAFEBABE, 2, 512
_QUEUE = 256
"""Packets that the guest takes from its interface at once, at most."""


class Uml(Guest):
    """One process, and those it traces, for each guest; one CPU, whatever the topology says."""

    name = "uml"
    disk_name = "disk.cow"
    programs: ClassVar[Mapping[str, str]] = {"linux.uml": "user-mode-linux", "ip": "iproute2"}
    overhead_bytes = 32 << 20

    def lacking(self) -> Lacking | None:
        """See `Platform.lacking`."""
        return super().lacking() or _too_large_state()

    async def new_disk(self, disk: Path, image: Path) -> None:
        """See `Guest.new_disk`: the guest kernel makes its copy-on-write file itself."""

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
        networks = [
            f"vec{number}:transport=tap,ifname={tap.device},mac={tap.mac},depth={_QUEUE},gro=1"
            for number, tap in enumerate(taps)
        ]
        return [
            str(sbin("linux.uml")),
            "umid=guest",
            f"uml_dir={run_folder(plan)}",
            # Should the guest mount a folder of this machine, then one in which there is nothing.
            f"hostfs={run_folder(plan)}",
            f"mem={memory_bytes >> 20}M",
            f"ubd0={disks(plan) / self.disk_name},{folder}/image.ext4",
            f"ubd1r={folder}/given.tar",
            *("root=/dev/ubda", "rootfstype=ext4", "rw", "init=/usr/lib/nephoscope/init"),
            # The first console to standard output, which is the log; the others to nowhere.
            *("con=null", "con0=null,fd:1", "ssl=null"),
            # stderr: its first lines when they are printed, not when the console is up.
            *("stderr=1", "panic=1", "loglevel=6"),
            *networks,
        ]

    @contextlib.asynccontextmanager
    async def power_button(self, plan: HostPlan) -> AsyncIterator[None]:
        """See `Guest.power_button`: Ctrl-Alt-Del through the management console."""
        path = run_folder(plan) / "guest" / "mconsole"
        await asyncio.to_thread(_mconsole, path, b"cad")
        yield


PLATFORM = Uml()


def _mconsole(path: Path, command: bytes) -> None:
    """One command to a guest's management console (arch/um/drivers/mconsole.h). Raises OSError."""
    head = struct.pack("=III", _MCONSOLE_MAGIC, _MCONSOLE_VERSION, len(command))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as console:
        console.settimeout(1.0)
        console.bind("")  # an address of its own, for the answer
        console.sendto(head + command.ljust(_MCONSOLE_BYTES, b"\0"), str(path))
        console.recv(4096)


@functools.cache
def _too_large_state() -> Lacking | None:
    """Lacking where a guest kernel dies with its first process: on CPUs with tile registers (AMX),
    whose state is larger than older kernels have room for (`put_fp_registers`)."""
    if "amx_tile" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        return None
    with leases.ScratchFolder() as folder:
        words = [
            sbin("linux.uml") or "linux.uml",
            "mem=64M",
            f"uml_dir={folder}",
            "rootfstype=hostfs",
        ]
        words += ["rootflags=/", "init=/bin/true", "con=null", "con0=fd:0,fd:1"]
        try:
            ended = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=20)
        except (OSError, subprocess.SubprocessError):
            return None
    if b"put_fp_registers" not in ended.stdout + ended.stderr:
        return None
    return Lacking(
        "User-Mode Linux of this version cannot run on a CPU with AMX: its kernel has no room for "
        "the registers.",
        "Choose the platform container or qemu, or install a newer user-mode-linux.",
    )
