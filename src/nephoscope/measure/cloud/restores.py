"""A volume that is written, copied as a snapshot and restored: one repetition, by segment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator

from nephoscope.core.errors import BenchmarkFailed, NephoscopeError
from nephoscope.core.records import dataclass
from nephoscope.core.tasks import uncancelled
from nephoscope.measure.cloud import guest_volumes
from nephoscope.measure.cloud.guest_volumes import BLOCK_BYTES, GuestVolume
from nephoscope.measure.cloud.model import CloudResource
from nephoscope.measure.cloud.spec import VolumeSpec
from nephoscope.measure.cloud.volumes import Volumes, timed
from nephoscope.measure.targets.probe.target import Target


@dataclass(frozen=True, slots=True)
class RestoreTimes:
    """Seconds of each segment; see the benchmark `volume.restore`."""

    created_s: float
    attached_s: float
    written_s: float
    detached_s: float
    snapshot_s: float
    restored_s: float
    restored_attached_s: float
    first_block_s: float
    usable_s: float
    first_read_s: float
    second_read_s: float
    volume_removed_s: float
    snapshot_removed_s: float


class _Leftovers:
    """What a repetition made and has not removed yet; removed in the end, whatever ended it."""

    def __init__(self, volumes: Volumes, target: Target) -> None:
        self._volumes, self._target = volumes, target
        self._made: list[CloudResource] = []
        self._devices: dict[str, GuestVolume] = {}

    def add(self, resource: CloudResource) -> CloudResource:
        self._made.append(resource)
        return resource

    async def attach(self, volume: CloudResource, size_bytes: int) -> tuple[GuestVolume, float]:
        device, seconds = await self._volumes.attach(volume, size_bytes, self._target)
        self._devices[volume.id] = device
        return device, seconds

    async def detach(self, volume: CloudResource) -> None:
        if (device := self._devices.pop(volume.id, None)) is not None:
            await self._volumes.detach(volume, device, self._target)

    async def delete(self, resource: CloudResource) -> None:
        await self._volumes.delete(resource)
        self._made.remove(resource)

    async def clear(self) -> None:
        """Removes the rest, the youngest first. What does not go now goes with the rental."""
        for resource in reversed(tuple(self._made)):
            with contextlib.suppress(NephoscopeError):
                await self.detach(resource)
                await self.delete(resource)


@contextlib.asynccontextmanager
async def _leftovers(volumes: Volumes, target: Target) -> AsyncIterator[_Leftovers]:
    left = _Leftovers(volumes, target)
    try:
        yield left
    finally:
        await uncancelled(left.clear())


async def restore(
    volumes: Volumes, target: Target, spec: VolumeSpec, data_bytes: int, limit_s: float
) -> RestoreTimes:
    """Makes a volume like `spec`, writes to it, makes a snapshot and restores that into a second
    volume, and removes all three. limit_s: for the snapshot, and for each read of the data.

    Raises BenchmarkFailed (`wrong_data`) where the restored volume does not hold what was written.
    """
    size = spec.size_bytes
    async with _leftovers(volumes, target) as left:
        source, created_s = await timed(volumes.create(size, spec.type))
        left.add(source)
        device, attached_s = await left.attach(source, size)
        await guest_volumes.require_blank(target, device, size)
        sha, written_s = await timed(guest_volumes.write(target, device, data_bytes, limit_s))
        # Detached, so that the snapshot has everything: some clouds refuse others.
        _, detached_s = await timed(left.detach(source))
        snapshot, snapshot_s = await timed(volumes.snapshot(source, limit_s))
        left.add(snapshot)
        began = time.monotonic()
        restored, restored_s = await timed(volumes.create(size, spec.type, snapshot.id))
        left.add(restored)
        device, restored_attached_s = await left.attach(restored, size)
        block_s = await guest_volumes.read(target, device, BLOCK_BYTES, limit_s, BLOCK_BYTES)
        usable_s = time.monotonic() - began
        first_s = await guest_volumes.read(target, device, data_bytes, limit_s)
        second_s = await guest_volumes.read(target, device, data_bytes, limit_s)
        restored_sha = await guest_volumes.digest(target, device, data_bytes, limit_s)
        if restored_sha != sha:
            raise BenchmarkFailed(
                "wrong_data",
                f"{restored}, restored from {snapshot}, does not hold what was written before: its "
                f"SHA-256 is {restored_sha[:16]}…, not {sha[:16]}….",
            )
        await left.detach(restored)
        _, volume_removed_s = await timed(left.delete(restored))
        # A snapshot may go with its volume: first, so that its removal is its own.
        _, snapshot_removed_s = await timed(left.delete(snapshot))
        await left.delete(source)
    return RestoreTimes(
        created_s,
        attached_s,
        written_s,
        detached_s,
        snapshot_s,
        restored_s,
        restored_attached_s,
        block_s,
        usable_s,
        first_s,
        second_s,
        volume_removed_s,
        snapshot_removed_s,
    )
