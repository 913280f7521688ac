"""Volumes as their guest shows them: told from its own disks, formatted, written and read.

Nothing is written to a device that was there before, that has another size, that is in use, or
that holds anything. Programs are those of coreutils or busybox.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence

from nephoscope.core.errors import BenchmarkFailed, RunFailed
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.model import CloudResource
from nephoscope.measure.targets.probe.target import Target

BLOCK_BYTES = 4096
_MIB = 1 << 20
_FILE = "nephoscope-volume-data"
_SPARE_BYTES = 1 << 30
"""By how much a volume may be larger than asked for: clouds round up to whole GiB."""

_PATH = "PATH=$PATH:/usr/sbin:/sbin; export PATH LC_ALL=C; "

_LIST = """
for path in /dev/*; do
  [ -b "$path" ] && [ ! -L "$path" ] || continue
  number=$(stat -c %t:%T "$path")
  number=$((0x${number%:*})):$((0x${number#*:}))
  about=/sys/dev/block/$number
  [ -e "$about/size" ] && [ ! -e "$about/partition" ] || continue
  serial=$(cat "$about/serial" "$about/device/serial" 2>/dev/null | head -n 1)
  mounted=$(grep -c " $number " /proc/self/mountinfo)
  held=$(ls "$about/holders" 2>/dev/null | head -n 1)
  parts=$(ls -d "$about"/*/partition 2>/dev/null | head -n 1)
  printf 'disk\\t%s\\t%s\\t%s\\t%s\\t%s\\n' "$path" "$(cat "$about/size")" "$serial" "$mounted" \\
    "$held$parts"
done
while read -r _ _ _ _ place _; do printf 'mount\\t%s\\n' "$place"; done < /proc/self/mountinfo
"""

_FORMAT = """
set -e
mkdir -p {place}
[ -z "$(ls -A {place})" ] || {{ echo "{place} is not empty" >&2; exit 3; }}
if command -v mkfs.ext4 >/dev/null; then
  mkfs.ext4 -q -F {device} >&2
  mount -t ext4 -o noinit_itable {device} {place}
elif command -v mke2fs >/dev/null; then
  mke2fs -F {device} >&2
  mount -t ext4 {device} {place} 2>/dev/null || mount -t ext2 {device} {place}
else
  echo "the guest has no mkfs.ext4" >&2; exit 3
fi
"""

_WRITE = """
exec 4>&1
failed=$(
  {{ {{ head -c {bytes} /dev/urandom | tee {data} || echo yes >&3; }} | sha256sum >&4; }} 3>&1
)
[ -z "$failed" ] && sync || exit 3
blockdev --flushbufs {data} 2>/dev/null || true
"""
"""What is read later shall come from the device, not from the guest's cache."""

_PLAIN = re.compile(r"[A-Za-z0-9/_.:+-]+")
"""Paths that stand in scripts as they are."""

_COPIED = re.compile(r"copied, ([0-9.e-]+) s")


@dataclass(frozen=True, slots=True)
class GuestVolume:
    """A volume in its guest: a block device, or a folder where the cloud mounts it itself."""

    path: str
    is_folder: bool = False

    @property
    def data(self) -> str:
        """Returns where data are written and read."""
        return f"{self.path}/{_FILE}" if self.is_folder else self.path

    def is_among(self, listed: Mapping[str, GuestDisk | None]) -> bool:
        """Returns whether a listing shows it."""
        return self.path in listed


@dataclass(frozen=True, slots=True)
class GuestDisk:
    """A whole disk of a guest. is_mounted: it, or a part of it. is_held: by a partition table, RAID
    or volume manager."""

    path: str
    size_bytes: int
    serial: str
    is_mounted: bool
    is_held: bool


async def block_devices(target: Target) -> dict[str, GuestDisk | None]:
    """Returns the disks of a guest by path, and its mounted folders, each with None."""
    devices: dict[str, GuestDisk | None] = {}
    for line in (await _output(target, _LIST)).splitlines():
        kind, _, rest = line.partition("\t")
        if kind == "mount":
            if _PLAIN.fullmatch(rest):
                devices.setdefault(rest, None)
            continue
        path, sectors, serial, mounted, held = rest.split("\t")
        if int(sectors) and _PLAIN.fullmatch(path):
            devices[path] = GuestDisk(
                path, int(sectors) * 512, serial.strip(), mounted != "0", bool(held)
            )
    return devices


def volume_among(
    before: Mapping[str, GuestDisk | None],
    after: Mapping[str, GuestDisk | None],
    volume: CloudResource,
    size_bytes: int,
) -> GuestVolume | None:
    """Returns what appeared in a guest when a volume was attached; None for nothing yet.

    Raises RunFailed where it cannot be told for sure, or is in use already.
    """
    new = {path: entry for path, entry in after.items() if path not in before}
    own = volume.id.rpartition("/")[2]
    for path, entry in new.items():
        if entry is None and path.rpartition("/")[2] == own:
            return GuestVolume(path, is_folder=True)
    fits = [
        entry
        for entry in new.values()
        if entry is not None and size_bytes <= entry.size_bytes < size_bytes + _SPARE_BYTES
    ]
    # Serials of virtio are cut after 20 characters, those of NVMe have no hyphen.
    plain = own.replace("-", "")
    named = [
        entry
        for entry in fits
        if entry.serial and plain.startswith(entry.serial.replace("-", "")[:20])
    ]
    if len(candidates := named or fits) > 1:
        raise RunFailed(
            f"The guest shows {' and '.join(entry.path for entry in candidates)} at the same time, "
            f"and none of them has the serial of {volume}; nothing was written to any.",
            "Attach nothing else to the machine while it is measured.",
        )
    if not candidates:
        return None
    (device,) = candidates
    if device.is_mounted or device.is_held:
        how = "mounted" if device.is_mounted else "divided or used by another device"
        raise RunFailed(
            f"The guest shows {volume} as {device.path}, which is {how} already; nothing was "
            "written to it.",
            "Take an image that does not mount or format new disks by itself.",
        )
    return GuestVolume(device.path)


async def mount(target: Target, device: GuestVolume, size_bytes: int, directory: str) -> None:
    """Makes a file system on a volume that holds nothing, and mounts it; a folder is linked."""
    place = shlex.quote(directory)
    if device.is_folder:
        await _output(target, f"mkdir -p $(dirname {place}) && ln -sn {device.path} {place}")
        return
    await require_blank(target, device, size_bytes)
    script = _FORMAT.format(device=device.path, place=place)
    await _output(target, script, limit_s=600.0)


async def require_blank(target: Target, device: GuestVolume, size_bytes: int) -> None:
    """Raises RunFailed for a new device whose first or last MiB is not zero."""
    if device.is_folder:
        return
    for skip in (0, max(0, size_bytes // _MIB - 1)):
        read = (
            f"dd if={device.path} bs={_MIB} count=1 skip={skip} 2>/dev/null | tr -d '\\0' | wc -c"
        )
        if (count := (await _output(target, read)).strip()) != "0":
            raise RunFailed(
                f"{device.path} is the device of a new volume and holds data ({count} bytes that "
                f"are not zero in MiB {skip}); nothing was written to it."
            )


async def write(target: Target, device: GuestVolume, data_bytes: int, limit_s: float) -> str:
    """Writes random data to the beginning of a volume until they are durable; returns the SHA-256
    of what was to be written."""
    return (
        await _output(target, _WRITE.format(data=device.data, bytes=data_bytes), limit_s)
    ).split()[0]


async def read(
    target: Target, device: GuestVolume, data_bytes: int, limit_s: float, block_bytes: int = _MIB
) -> float:
    """Reads the beginning of a volume, past the guest's cache; returns the seconds.

    They are those that `dd` states; of a busybox that states none, those of the whole command.
    """
    count = max(1, data_bytes // block_bytes)
    words = f"dd if={device.data} of=/dev/null bs={block_bytes} count={count} iflag=direct"
    began = time.monotonic()
    text = await _output(target, f"{words} 2>&1", limit_s)
    elapsed_s = time.monotonic() - began
    if f"{count}+0 records out" not in text:
        raise BenchmarkFailed("short_read", f"`dd` in the guest ended early: {text[-200:]!r}.")
    copied = _COPIED.search(text)
    return float(copied[1]) if copied is not None else elapsed_s


async def digest(target: Target, device: GuestVolume, data_bytes: int, limit_s: float) -> str:
    """Returns the SHA-256 of the beginning of a volume, read past the guest's cache."""
    words = f"dd if={device.data} bs={_MIB} count={data_bytes // _MIB} iflag=direct 2>/dev/null"
    return (await _output(target, f"{words} | sha256sum", limit_s)).split()[0]


async def _output(target: Target, script: str, limit_s: float = 60.0) -> str:
    """Returns what a script prints there. Raises RunFailed where it fails."""
    ended = await target.command(["sh", "-c", _PATH + script], limit_s)
    if ended.returncode != 0 or ended.why:
        words: Sequence[str] = ended.stderr_tail.strip().splitlines()
        why = words[-1] if words else ended.why or f"exit code {ended.returncode}"
        raise RunFailed(f"{target.name}: {why.rstrip('.')}.")
    return ended.stdout.decode(errors="replace")
