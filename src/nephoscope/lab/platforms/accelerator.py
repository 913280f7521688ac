"""Whether virtual machines boot with the processor's help here: tried once, with a real kernel."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path

from nephoscope.lab import commands, images
from nephoscope.lab.boot import KERNEL_MARK
from nephoscope.lab.launcher import entering
from nephoscope.lab.platforms.base import sbin
from nephoscope.provisioning import Say

_KVM = Path("/dev/kvm")
_TRIAL_S = 5.0
"""A kernel under KVM prints its first line within half a second, on a busy machine too."""


async def find(kernel: Path, say: Say) -> tuple[str, str]:
    """`kvm` or `tcg`, and why. kernel: the file that is booted to find out.

    The answer is kept for this machine's kernel and this QEMU: a machine that is moved to another
    kernel is tried anew.
    """
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return "tcg", "there is no /dev/kvm that we may use"
    key = f"{platform.release()} {await asyncio.to_thread(_version)}"
    memory = images.cache().parent / "accelerators.json"
    known = _read(memory)
    if key not in known:
        say("qemu: trying whether guests boot on /dev/kvm (once, 5 s at most)")
        known[key] = "kvm" if await _boots(kernel) else "tcg"
        _write(memory, known)
    if known[key] == "kvm":
        return "kvm", "a kernel boots on /dev/kvm"
    return "tcg", f"no kernel boots on /dev/kvm within {_TRIAL_S:.0f} s"


async def _boots(kernel: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="nephoscope-kvm-") as folder:
        console = Path(folder, "console")
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
    done = subprocess.run(
        [str(sbin("qemu-system-x86_64")), "--version"],
        capture_output=True,
        text=True,
        env=commands.environment(),
        check=False,
    )
    return (done.stdout.splitlines() or ["unknown"])[0]


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, known: dict[str, str]) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    aside.rename(path)
