"""A host's disk bandwidth: the limit lies on the whole disk behind a path."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nephoscope.core.errors import Lacking, UsageError
from nephoscope.core.records import dataclass
from nephoscope.measure.lab.limits.cgroups import HostCgroup, put
from nephoscope.measure.lab.limits.hierarchies import unescaped
from nephoscope.measure.lab.topology import DiskSpec

_BLOCK = Path("/sys/dev/block")
_NO_DISK = "Name a path on a disk, or leave the limit out."


@dataclass(frozen=True, slots=True)
class Device:
    """A whole disk. number: `major:minor`."""

    number: str
    name: str


def apply(group: HostCgroup, path: Path, spec: DiskSpec) -> None:
    """Limits what the group reads from and writes to the disk behind `path`, and reads it back.

    Version 1 limits what a process itself hands to the disk (reads, direct and synced writes), not
    what the kernel writes back later; version 2 limits that too where the filesystem says whose
    pages they are. Raises Lacking without the controller, or when `path` is on no disk.
    """
    device = device_of(path)
    limits = {"read": spec.read_bytes_per_s, "write": spec.write_bytes_per_s}
    whole = {what: None if rate is None else round(rate) for what, rate in limits.items()}
    if group.version("io") == 2:
        _apply_v2(group, device, whole)
    else:
        for what, rate in whole.items():
            _apply_v1(group, device, what, rate)


def supported(group: HostCgroup) -> bool:
    """Returns whether this kernel can limit disk bandwidth (the group has to be there)."""
    try:
        return group.file("io", "blkio.throttle.write_bps_device", "io.max").exists()
    except Lacking:
        return False


def _apply_v2(group: HostCgroup, device: Device, rates: dict[str, int | None]) -> None:
    keys = {"read": "rbps", "write": "wbps"}
    words = [f"{keys[w]}={'max' if r is None else r}" for w, r in rates.items()]

    def accepts(text: str) -> bool:
        lines = [line.split()[1:] for line in text.splitlines() if line.split()[0] == device.number]
        # A device without any limit has no line.
        have = lines[0] if lines else ["rbps=max", "wbps=max"]
        return set(words) <= set(have)

    put(group.file("io", "", "io.max"), f"{device.number} {' '.join(words)}", accepts)


def _apply_v1(group: HostCgroup, device: Device, what: str, rate: int | None) -> None:
    def accepts(text: str) -> bool:
        have = [line.split()[1] for line in text.splitlines() if line.split()[0] == device.number]
        return have == ([] if rate is None else [str(rate)])

    file = group.file("io", f"blkio.throttle.{what}_bps_device", "")
    put(file, f"{device.number} {rate or 0}", accepts)


def device_of(path: Path, mounts: str | None = None) -> Device:
    """The whole disk on which the data of `path` lies: of a partition its disk, of an overlay that
    of its upper layer. Raises Lacking for a filesystem without a disk (tmpfs, network)."""
    try:
        number = os.stat(path).st_dev
    except OSError as error:
        raise UsageError(f"{path} cannot be looked at: {error.strerror}.", _NO_DISK) from error
    if os.major(number) != 0:
        return _whole(f"{os.major(number)}:{os.minor(number)}", path)
    kind, source, options = _mount_of(path, mounts)
    upper = re.search(r"(?:^|,)upperdir=([^,]+)", options)
    if kind == "overlay" and upper:
        layer = Path(unescaped(upper[1]))
        if not layer.exists():
            # Inside a container the path is one of the machine around it.
            raise Lacking(
                f"{path} is on an overlay whose upper layer {layer} cannot be seen from here.",
                _NO_DISK,
            )
        return device_of(layer, mounts)
    if source.startswith("/dev/") and Path(source).is_block_device():
        # Filesystems over several devices (btrfs) number their files apart from the disk.
        disk = os.stat(source).st_rdev
        return _whole(f"{os.major(disk)}:{os.minor(disk)}", path)
    raise Lacking(f"{path} is on a {kind} filesystem, which has no disk to limit.", _NO_DISK)


def _whole(number: str, path: Path) -> Device:
    entry = _BLOCK / number
    if not entry.exists():
        raise Lacking(f"The disk {number} behind {path} is not in /sys/dev/block.", _NO_DISK)
    folder = entry.resolve()
    if (folder / "partition").exists():
        folder = folder.parent
    return Device((folder / "dev").read_text(encoding="ascii").strip(), folder.name)


def _mount_of(path: Path, mounts: str | None) -> tuple[str, str, str]:
    """Kind, source and options of the filesystem a path is on: its longest mount point."""
    if mounts is None:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    real = str(path.resolve())
    best = ("", "unknown", "", "")
    for line in mounts.splitlines():
        source, where, kind, options = line.split(" ")[:4]
        where = unescaped(where)
        inside = real == where or real.startswith(where.rstrip("/") + "/")
        if inside and len(where) >= len(best[0]):
            best = (where, kind, source, options)
    return best[1], best[2], best[3]
