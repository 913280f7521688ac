"""The first root of a virtual machine: busybox, the drivers of its disk and network, one script."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DRIVERS = ("virtio_pci", "virtio_blk", "virtio_net", "virtio-rng")
"""Modules of Debian's cloud kernel that a guest needs; what they depend on comes with them."""
NFS_CLIENT = ("nfsv3", "nfsv4", "nfs_layout_nfsv41_files", "nfs_layout_flexfiles")
"""Modules of a guest that mounts folders of others; the last two are the clients of pNFS."""

_DIRECTORY, _FILE, _DEVICE = 0o040755, 0o100755, 0o020600


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def depends(module: bytes) -> tuple[str, ...]:
    """Names of the modules that a kernel module names in its `.modinfo` section."""
    match = re.search(rb"\0depends=([^\0]*)\0", module)
    words = match[1].decode("ascii").split(",") if match else []
    return tuple(word.replace("-", "_") for word in words if word)


def in_order(modules: Mapping[str, bytes], wanted: Iterable[str]) -> tuple[str, ...]:
    """The wanted modules and what they depend on, each after those that it depends on.

    modules: name -> content. Raises KeyError with the name of one that is not there.
    """
    by_name = {name.replace("-", "_"): name for name in modules}
    order: list[str] = []

    def add(name: str) -> None:
        real = by_name[name.replace("-", "_")]
        if real in order:
            return
        for needed in depends(modules[real]):
            add(needed)
        order.append(real)

    for name in wanted:
        add(name)
    return tuple(order)


def archive(
    busybox: bytes, script: bytes, modules: Mapping[str, bytes], order: Iterable[str]
) -> bytes:
    """The initramfs, compressed: the same bytes for the same content."""
    order = tuple(order)
    entries = [
        *(_Entry(name, _DIRECTORY) for name in ("bin", "dev", "modules", "new")),
        # The kernel opens it for the script before anything is mounted.
        _Entry("dev/console", _DEVICE, device=(5, 1)),
        _Entry("bin/busybox", _FILE, busybox),
        _Entry("init", _FILE, script),
        *(_Entry(f"modules/{name}.ko", _FILE, modules[name]) for name in order),
        _Entry("modules/order", _FILE, "".join(f"{name}.ko\n" for name in order).encode()),
    ]
    return gzip.compress(cpio(entries), compresslevel=1, mtime=0)


def overlay(files: Mapping[str, bytes]) -> bytes:
    """Returns executable files as an archive that, behind another one, replaces and adds files.

    Source: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
    """
    return gzip.compress(
        cpio(_Entry(name, _FILE, data) for name, data in files.items()), compresslevel=1, mtime=0
    )


def cpio(entries: Iterable[_Entry]) -> bytes:
    """An archive in the `newc` format that the kernel unpacks (initramfs buffer format)."""
    out = bytearray()
    for number, entry in enumerate((*entries, _Entry("TRAILER!!!", 0)), 1):
        name = entry.name.encode() + b"\0"
        major, minor = entry.device
        fields = [number, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, major, minor, len(name), 0]
        out += b"070701" + b"".join(f"{field:08X}".encode() for field in fields) + name
        out += b"\0" * (-len(out) % 4)
        out += entry.data
        out += b"\0" * (-len(out) % 4)
    return bytes(out)
