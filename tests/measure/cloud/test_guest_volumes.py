"""Volumes in their guest: which device is theirs, and what is never written to."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from nephoscope.core.errors import BenchmarkFailed, RunFailed
from nephoscope.measure.cloud import guest_volumes
from nephoscope.measure.cloud.guest_volumes import (
    GuestDisk,
    GuestVolume,
    block_devices,
    require_blank,
    volume_among,
)
from nephoscope.measure.cloud.model import CloudResource, Kind, Tags
from nephoscope.measure.targets.channels.child import Ended
from nephoscope.measure.targets.local import LocalChannel
from nephoscope.measure.targets.probe.target import Target

GIB, MIB = 1 << 30, 1 << 20
VOLUME = CloudResource(Kind.VOLUME, "vol-0123456789abcdef0", "east", Tags("r", "o", 0))
BEFORE: Mapping[str, GuestDisk | None] = {
    "/dev/sda": GuestDisk("/dev/sda", 8 * GIB, "", True, True),
    "/": None,
}


def device(path: str, size: int = GIB, serial: str = "", **more: bool) -> GuestDisk:
    state = {"is_mounted": False, "is_held": False, **more}
    return GuestDisk(path, size, serial, **state)


def among(*new: GuestDisk, volume: CloudResource = VOLUME, mounts: Sequence[str] = ()) -> object:
    after = {**BEFORE, **{entry.path: entry for entry in new}, **dict.fromkeys(mounts)}
    return volume_among(BEFORE, after, volume, GIB)


def local() -> Target:
    return Target("here", LocalChannel("here"))


def test_the_new_disk_of_the_right_size_is_the_volume() -> None:
    assert among() is None
    assert among(device("/dev/xvdf")) == GuestVolume("/dev/xvdf")
    # Others that appear at the same time have another size: a program's loop device, say.
    assert among(device("/dev/loop7", 64 * MIB), device("/dev/vdb")) == GuestVolume("/dev/vdb")
    assert among(device("/dev/loop7", 64 * MIB)) is None
    # Clouds round up to whole GiB.
    assert among(device("/dev/vdb", GIB + 512)) == GuestVolume("/dev/vdb")
    assert among(device("/dev/vdb", 2 * GIB)) is None


@pytest.mark.parametrize("serial", ["vol0123456789abcdef0", "vol-0123456789abcde"])
def test_a_serial_tells_two_disks_of_one_size_apart(serial: str) -> None:
    own = device("/dev/nvme1n1", serial=serial)
    assert among(own, device("/dev/nvme2n1", serial="volother")) == GuestVolume("/dev/nvme1n1")
    with pytest.raises(RunFailed, match="nothing was written to any"):
        among(device("/dev/vdb"), device("/dev/vdc"))


def test_a_folder_that_the_cloud_mounted_is_the_volume() -> None:
    volume = CloudResource(Kind.VOLUME, "default/nephoscope-7", "east", VOLUME.tags)
    device = among(volume=volume, mounts=["/mnt/other", "/mnt/nephoscope-7"])
    assert device == GuestVolume("/mnt/nephoscope-7", is_folder=True)
    assert isinstance(device, GuestVolume)
    assert device.data.startswith("/mnt/nephoscope-7/")


@pytest.mark.parametrize(
    ("state", "words"),
    [({"is_mounted": True}, "mounted already"), ({"is_held": True}, "divided or used")],
)
def test_a_disk_in_use_is_not_written_to(state: dict[str, bool], words: str) -> None:
    with pytest.raises(RunFailed, match=words):
        among(device("/dev/xvdf", **state))


def test_the_disks_of_this_machine_are_listed() -> None:
    listed = asyncio.run(block_devices(local()))
    assert listed["/"] is None
    for path, entry in listed.items():
        if entry is not None:
            sectors = Path(f"/sys/class/block/{Path(path).name}/size").read_text()
            assert entry.size_bytes == 512 * int(sectors) > 0


def test_a_disk_with_anything_at_its_ends_is_not_formatted(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.touch()
    os.truncate(disk, 4 * MIB)
    device = GuestVolume(str(disk))
    asyncio.run(require_blank(local(), device, 4 * MIB))
    for place in (1024, 4 * MIB - 512):
        with disk.open("r+b") as file:
            file.seek(place)
            file.write(b"data")
        with pytest.raises(RunFailed, match="4 bytes that are not zero"):
            asyncio.run(require_blank(local(), device, 4 * MIB))
        os.truncate(disk, 0)
        os.truncate(disk, 4 * MIB)


def test_data_are_written_read_and_recognised(tmp_path: Path) -> None:
    async def work() -> None:
        device, target = GuestVolume(str(tmp_path), is_folder=True), local()
        sha = await guest_volumes.write(target, device, 2 * MIB, 30)
        written = Path(device.data).read_bytes()
        assert (len(written), hashlib.sha256(written).hexdigest()) == (2 * MIB, sha)
        assert await guest_volumes.read(target, device, 2 * MIB, 30) > 0
        assert await guest_volumes.digest(target, device, 2 * MIB, 30) == sha
        with pytest.raises(RunFailed, match="No such file or directory"):
            await guest_volumes.write(target, GuestVolume(f"{tmp_path}/no", True), MIB, 30)

    asyncio.run(work())


class Saying(Target):
    """A guest in which every program prints the same."""

    def __init__(self, text: str) -> None:
        super().__init__("guest", LocalChannel("guest"))
        self._text = text

    async def command(self, words: Sequence[str], timeout_s: float = 30.0) -> Ended:
        """See `Target.command`."""
        return Ended(0, self._text.encode(), "")


@pytest.mark.parametrize(
    "text",
    [
        "4+0 records in\n4+0 records out\n4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.25 s, 17 MB/s",
        "4+0 records in\n4+0 records out\n4194304 bytes (4.0MB) copied, 0.250000 seconds, 16.0MB/s",
    ],
)
def test_the_time_of_both_kinds_of_dd_is_read(text: str) -> None:
    device = GuestVolume("/dev/vdb")
    assert asyncio.run(guest_volumes.read(Saying(text), device, 4 * MIB, 30)) == 0.25
    with pytest.raises(BenchmarkFailed, match="states no time"):
        asyncio.run(guest_volumes.read(Saying("4+0 records in"), device, 4 * MIB, 30))
