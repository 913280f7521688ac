"""Calls to a cloud that survive what clouds do: throttling, lost answers, lagging lists."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from nephoscope.core.tasks import in_thread
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.model import (
    CloudResource,
    Kind,
    Machine,
    MachineRequest,
    Request,
    ResourceState,
)
from nephoscope.measure.cloud.provider import Cause, CloudError, Provider
from nephoscope.measure.provisioning import Say

_Result = TypeVar("_Result")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0
_SILENT_S = 2.0


@dataclass(slots=True)
class BackOff:
    """Pauses that double up to ten seconds, each drawn between half of it and all of it."""

    pause_s: float = FIRST_PAUSE_S

    async def wait(self, until: float) -> None:
        """Waits for the next pause, and not beyond `until` (monotonic seconds)."""
        drawn = self.pause_s * random.uniform(0.5, 1.0)
        self.pause_s = min(2 * self.pause_s, LONGEST_PAUSE_S)
        await asyncio.sleep(max(0.0, min(drawn, until - time.monotonic())))


class _Waiting:
    """The repetition of one call, until it passes or the patience ends."""

    def __init__(self, patience_s: float, say: Say) -> None:
        self._say, self._began = say, time.monotonic()
        self._until = self._began + patience_s
        self._back_off = BackOff()
        self._announced = False

    def is_over(self, error: CloudError) -> bool:
        """Returns whether the error is final."""
        now = time.monotonic()
        if not error.passes or now >= self._until:
            return True
        if now - self._began > _SILENT_S and not self._announced:
            self._announced = True
            self._say(f"{error.message} Trying again for up to {self._until - now:.0f} s.")
        return False

    async def pause(self) -> None:
        """Waits before the next attempt."""
        await self._back_off.wait(self._until)


class CloudCalls:
    """Calls of one provider. patience_s: for how long a call that may pass is repeated. say: takes
    a line of progress, where a call is repeated for longer than two seconds."""

    def __init__(
        self,
        provider: Provider,
        patience_s: float = 120.0,
        say: Say = lambda line: None,
    ) -> None:
        self.provider = provider
        self.patience_s = patience_s
        self._say = say

    async def repeat(self, call: Callable[[], _Result], patience_s: float | None = None) -> _Result:
        """Returns the result of a call that may be made any number of times.

        Raises CloudError at once where repeating does not help, else the last one when the
        patience ends.
        """
        waiting = _Waiting(self.patience_s if patience_s is None else patience_s, self._say)
        while True:
            try:
                return await in_thread(call)
            except CloudError as error:
                if waiting.is_over(error):
                    raise
            await waiting.pause()

    async def list(self, region: str, run: str | None) -> Sequence[CloudResource]:
        """Returns what of ours a region has, but for what is GONE."""
        resources = await self.repeat(lambda: self.provider.resources(region, run))
        return [resource for resource in resources if resource.state is not ResourceState.GONE]

    async def machines(
        self, region: str, run: str, patience_s: float | None = None
    ) -> Sequence[Machine]:
        """Returns the machines of a rental in a region, those that are GONE among them."""
        only = (Kind.MACHINE,)
        resources = await self.repeat(
            lambda: self.provider.resources(region, run, only), patience_s
        )
        return [resource for resource in resources if isinstance(resource, Machine)]

    async def of_kind(self, region: str, run: str, kind: Kind) -> Sequence[CloudResource]:
        """Returns what of one kind a rental has in a region, but for what is GONE."""
        resources = await self.repeat(lambda: self.provider.resources(region, run, (kind,)))
        return [
            resource
            for resource in resources
            if resource.kind is kind and resource.state is not ResourceState.GONE
        ]

    async def make(self, request: Request, folder: RentalFolder) -> Sequence[CloudResource]:
        """Makes what is asked for, once, whatever becomes of the answers.

        The intent is written and synced first. A call that may have been done is made again with
        the same token where the cloud knows tokens; elsewhere what it made is looked for in the
        listing until that must show it, and a call that the listing may never show is not made
        again. Raises CloudError when the cloud refuses, and for such a call.
        """
        token = secrets.token_hex(16)
        request = replace(request, tags=replace(request.tags, token=token))
        kind, region = kind_of(request), request.region
        count = request.count if isinstance(request, MachineRequest) else 1
        waiting = _Waiting(self.patience_s, self._say)
        while True:
            # Before each attempt: what it makes may show that much later in the listings.
            folder.note("create", kind, region, token=token, count=count)
            try:
                made = await in_thread(self.provider.create, request)
                break
            except CloudError as error:
                is_unknown = error.cause is Cause.UNANSWERED and not self._knows_tokens(kind)
                if is_unknown:
                    made = await self._made_unanswered(kind, request)
                    if made:
                        break
                if (is_unknown and self.provider.traits.forgets) or waiting.is_over(error):
                    folder.note("failed", kind, region, token=token, reason=error.cause)
                    raise
            await waiting.pause()
        folder.note("made", kind, region, token=token, ids=[resource.id for resource in made])
        return made

    def _knows_tokens(self, kind: Kind) -> bool:
        traits = self.provider.traits
        return traits.tokens and kind not in traits.tokenless

    async def _made_unanswered(self, kind: Kind, request: Request) -> Sequence[CloudResource]:
        """Returns what a call made whose answer is lost; empty when it made nothing."""
        traits, back_off = self.provider.traits, BackOff()
        until = time.monotonic() + max(traits.settle_s, traits.late_s)
        while True:
            resources = [
                resource
                for resource in await self.of_kind(request.region, request.tags.run, kind)
                if resource.tags.token in (request.tags.token, "")
            ]
            wanted = request.count if isinstance(request, MachineRequest) else 1
            if len(resources) >= wanted or time.monotonic() >= until:
                return resources
            await back_off.wait(until)


_KINDS = {
    "MachineRequest": Kind.MACHINE,
    "KeyPairRequest": Kind.KEY_PAIR,
    "SecurityGroupRequest": Kind.SECURITY_GROUP,
    "PlacementGroupRequest": Kind.PLACEMENT_GROUP,
    "VolumeRequest": Kind.VOLUME,
    "SnapshotRequest": Kind.SNAPSHOT,
}


def kind_of(request: Request) -> Kind:
    """Returns the kind of what a request makes."""
    return _KINDS[type(request).__name__]
