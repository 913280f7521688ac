"""Volumes of a rental and their snapshots: made once, followed until ready, removed, each timed.

A volume is found in its guest by what appears there after it was attached; see `guest_volumes`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from nephoscope.core.errors import NephoscopeError, RunFailed
from nephoscope.core.tasks import uncancelled
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.guest_volumes import GuestVolume, block_devices, volume_among
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.model import (
    CloudResource,
    Kind,
    Machine,
    ResourceState,
    SnapshotRequest,
    VolumeRequest,
)
from nephoscope.measure.cloud.provider import Cause, CloudError
from nephoscope.measure.targets.probe.target import Target

LISTED_S, LOOKED_S = 0.5, 0.2
"""How often the cloud's list and the guest's devices are read: as late is a change seen."""

READY_S, DEVICE_S = 600.0, 120.0
"""Longest waits for a volume, and for its device in the guest."""

_Value = TypeVar("_Value")


async def timed(doing: Awaitable[_Value]) -> tuple[_Value, float]:
    """Returns a result with the seconds that it took."""
    began = time.monotonic()
    return await doing, time.monotonic() - began


class Volumes:
    """The volumes of one machine of a rental."""

    def __init__(self, calls: CloudCalls, folder: RentalFolder, machine: Machine) -> None:
        self._calls, self._folder, self._machine = calls, folder, machine

    async def create(self, size_bytes: int, type_: str, snapshot: str = "") -> CloudResource:
        """Makes a volume in the machine's zone, and returns it when the cloud lists it as ready."""
        machine = self._machine
        request = VolumeRequest(
            machine.region, machine.zone, machine.tags, size_bytes, type_, snapshot
        )
        return await self._made(request, READY_S)

    async def snapshot(self, volume: CloudResource, limit_s: float) -> CloudResource:
        """Makes a snapshot, and returns it when it is complete."""
        request = SnapshotRequest(volume.region, self._machine.tags, volume.id)
        return await self._made(request, limit_s)

    async def _made(
        self, request: VolumeRequest | SnapshotRequest, limit_s: float
    ) -> CloudResource:
        until = time.monotonic() + limit_s
        (made,) = (await self._calls.make(request, self._folder))[:1]
        try:
            await self._until_ready(made, until, limit_s)
        except BaseException:
            with contextlib.suppress(NephoscopeError):
                await uncancelled(self.delete(made))
            raise
        return made

    async def _until_ready(self, made: CloudResource, until: float, limit_s: float) -> None:
        state = made.state
        while state is not ResourceState.READY:
            if state in (ResourceState.FAILED, ResourceState.LEAVING):
                raise RunFailed(f"{made} is {state}.")
            if time.monotonic() >= until:
                raise RunFailed(f"{made} was still {state} after {limit_s:g} s.")
            await asyncio.sleep(LISTED_S)
            listed = [entry for entry in await self._of_kind(made.kind) if entry.id == made.id]
            # The list may lag behind the answer.
            state = listed[0].state if listed else ResourceState.PENDING

    async def _of_kind(self, kind: Kind) -> Sequence[CloudResource]:
        return await self._calls.of_kind(self._machine.region, self._machine.tags.run, kind)

    async def attach(
        self, volume: CloudResource, size_bytes: int, target: Target
    ) -> tuple[GuestVolume, float]:
        """Attaches a volume; returns it as the guest shows it, and the seconds until it did.

        Raises RunFailed for a guest that shows none in time, or one that cannot be told for sure.
        """
        before = await block_devices(target)
        began = time.monotonic()
        until = began + DEVICE_S
        await self._calls.repeat(self._attachment(volume))
        while True:
            after = await block_devices(target)
            if (device := volume_among(before, after, volume, size_bytes)) is not None:
                return device, time.monotonic() - began
            if time.monotonic() >= until:
                raise RunFailed(
                    f"{volume} was attached to {self._machine}, and the guest shows no new device "
                    f"after {DEVICE_S:g} s.",
                    "Take an image whose kernel sees devices that are added while it runs.",
                )
            await asyncio.sleep(LOOKED_S)

    def _attachment(self, volume: CloudResource) -> Callable[[], None]:
        was_unanswered = False

        def attach() -> None:
            nonlocal was_unanswered
            try:
                self._calls.provider.attach(self._machine, volume)
            except CloudError as error:
                # A call whose answer was lost did it, or not: the guest shows which.
                if was_unanswered and error.cause in (Cause.REFUSED, Cause.IN_USE):
                    return
                was_unanswered = was_unanswered or error.cause is Cause.UNANSWERED
                raise

        return attach

    async def detach(self, volume: CloudResource, device: GuestVolume, target: Target) -> None:
        """Detaches a volume, and returns when the guest no longer shows it."""
        until = time.monotonic() + DEVICE_S
        await self._calls.repeat(lambda: self._calls.provider.detach(volume))
        while device.is_among(await block_devices(target)):
            if time.monotonic() >= until:
                raise RunFailed(f"{self._machine} still shows {volume} {DEVICE_S:g} s later.")
            await asyncio.sleep(LOOKED_S)

    async def delete(self, resource: CloudResource) -> None:
        """Removes a volume or snapshot with its surplus: what a call made twice whose first answer
        was lost. Returns when the cloud lists neither."""
        until = time.monotonic() + READY_S
        self._folder.note("delete", resource.kind, resource.region, ids=[resource.id])
        # Not only what is listed: a list may lag.
        await self._calls.repeat(_deletion(self._calls, resource))
        while True:
            left = [
                entry
                for entry in await self._of_kind(resource.kind)
                if _is_of_one_call(entry, resource)
            ]
            if not left:
                return
            if time.monotonic() >= until:
                raise RunFailed(f"{resource} is still listed {READY_S:g} s after its removal.")
            for entry in left:
                if entry.state is not ResourceState.LEAVING:
                    await self._calls.repeat(_deletion(self._calls, entry))
            await asyncio.sleep(LISTED_S)


def _is_of_one_call(entry: CloudResource, resource: CloudResource) -> bool:
    token = resource.tags.token
    return entry.id == resource.id or (bool(token) and entry.tags.token == token)


def _deletion(calls: CloudCalls, entry: CloudResource) -> Callable[[], None]:
    return lambda: calls.provider.delete(entry)
