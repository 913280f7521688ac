"""Images of guests: one minimal Debian, built from this machine's own package sources and kept.

An image is a folder in $XDG_CACHE_HOME/nephoscope/images, named by a digest of everything it
follows from (`recipe`). It is built aside and renamed, so a folder of that name is whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nephoscope.core.errors import Lacking
from nephoscope.measure.lab import needs
from nephoscope.measure.lab.commands import read_json, try_lock
from nephoscope.measure.lab.images import build
from nephoscope.measure.lab.images.recipe import recipe

MODULES = "usr/lib/nephoscope/modules"
"""Folder of kernel modules in the root of a virtual machine that mounts something."""
_KEPT_S = 30 * 86400
"""An image that no host was made of for so long goes when the next is built."""
_ASIDE = ".building-"


@dataclass(frozen=True, slots=True)
class Image:
    """A built image."""

    key: str
    folder: Path
    facts: Mapping[str, Any]

    @property
    def content(self) -> str:
        """Hexadecimal digest of the recipe and of the versions that were installed."""
        facts = [self.key, self.facts.get("kernel"), self.facts.get("packages")]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def disk(self) -> Path:
        """Its files as an ext4 disk, for guests. Never to be written to."""
        return self.folder / "disk.ext4"

    @property
    def kernel(self) -> Path:
        """The kernel of virtual machines."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """The first root of virtual machines."""
        return self.folder / "initrd"

    def modules(self) -> dict[str, tuple[int, bytes]]:
        """The kernel's NFS client for a virtual machine: path in its root -> mode and content.

        `MODULES/order` has their names in the order in which they are loaded.
        """
        files = sorted((self.folder / "modules").iterdir())
        return {f"{MODULES}/{file.name}": (0o644, file.read_bytes()) for file in files}


def cache() -> Path:
    """The folder of images, made when it is not there."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(home) / "nephoscope" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def ensure(say: Callable[[str], None]) -> Image:
    """The image for this machine, built first when it is not there yet.

    say: takes lines of progress. Raises RunFailed when it cannot be built. A second process waits
    for the first one's build.
    """
    folder = cache()
    wanted = recipe()
    if (built_image := _find(wanted.key)) is not None:
        return built_image
    async with _locked(folder / "lock", say):
        if (built_image := _find(wanted.key)) is not None:
            return built_image
        for left in folder.glob(f"{_ASIDE}*"):  # of a build that was killed: we hold the lock
            build.remove(left)
        aside = folder / f"{_ASIDE}{os.getpid()}"
        aside.mkdir(mode=0o755)
        say("guest image: building a minimal Debian, once (half a minute or so)")
        try:
            await build.build(aside, wanted, say)
            aside.rename(folder / wanted.key)
        except BaseException:
            build.remove(aside)
            raise
        _forget_old(folder, wanted.key)
    built = _find(wanted.key)
    assert built is not None
    say(f"guest image: built in {built.facts['built_s']:.0f} s, {_mib(built)} MiB")
    return built


def lacking() -> Lacking | None:
    """Returns what this machine lacks for building and using an image."""
    if platform.machine() != "x86_64":
        return Lacking(
            f"Guest images are made for x86_64 only; this machine is {platform.machine()}.",
            "Use `platform: bare` here.",
        )
    programs = {
        "mmdebstrap": "mmdebstrap",
        "mkfs.ext4": "e2fsprogs",
        "dpkg-deb": "dpkg",
        "apt-get": "apt",
        "unshare": "util-linux",
        "setsid": "util-linux",
    }
    return needs.missing(programs, "A guest image")


def _find(key: str) -> Image | None:
    folder = cache() / key
    if (facts := read_json(folder / "image.json")) is None:
        return None
    with contextlib.suppress(OSError):
        os.utime(folder)
    return Image(key, folder, facts)


@contextlib.asynccontextmanager
async def _locked(path: Path, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Holds a lock file; the kernel lets go of it when this process ends, however it does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not try_lock(descriptor):
            say("guest image: another process is building it; waiting")
            while not try_lock(descriptor):
                await asyncio.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def _forget_old(folder: Path, current_key: str) -> None:
    for image in folder.iterdir():
        if not image.is_dir() or image.name == current_key or image.name.startswith(_ASIDE):
            continue
        if time.time() - image.stat().st_mtime > _KEPT_S:
            build.remove(image)


def _mib(image: Image) -> int:
    size = sum(
        path.lstat().st_blocks * 512 for path in image.folder.rglob("*") if not path.is_symlink()
    )
    return round(size / (1 << 20))
