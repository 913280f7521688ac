"""Machines of one group: asked for, followed until they run, reached for the first time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nephoscope.core.errors import NephoscopeError, RunFailed
from nephoscope.core.naming import plural
from nephoscope.measure.cloud.calls import CloudCalls
from nephoscope.measure.cloud.intents import RentalFolder
from nephoscope.measure.cloud.model import Machine, MachineRequest, ResourceState, Tags
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudTraits
from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec
from nephoscope.measure.provisioning import Say
from nephoscope.measure.targets import kinds

if TYPE_CHECKING:
    from nephoscope.measure.targets.kinds.record import TargetRecord

POLL_S, _TRY_S, _RETRY_S = 1.0, 20.0, 1.0
_TOO_FEW = (Cause.QUOTA, Cause.CAPACITY)
_ENDED = (
    ResourceState.FAILED,
    ResourceState.STOPPING,
    ResourceState.STOPPED,
    ResourceState.LEAVING,
    ResourceState.GONE,
)


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Seconds from the call that made a machine: to its answer, until the list showed the machine
    running, and to the first login, after which the probe was there.

    began: of the call, in seconds of the monotonic clock. The list is read once a second.
    """

    began: float
    answer_s: float
    running_s: float
    ready_s: float


@dataclass(frozen=True, slots=True)
class Launched:
    """A machine that was reached."""

    machine: Machine
    target: TargetRecord
    times: LaunchTimes


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Fewer machines of a group than were asked for. cause: why the cloud granted too few; None
    where it granted them and they failed or never answered."""

    group: str
    missing: int
    cause: Cause | None
    reason: str


class Launch:
    """The launch of one group. request: for all of its machines, but for their number."""

    def __init__(self, spec: RentalSpec, group: MachineGroup, request: MachineRequest) -> None:
        self._spec, self.group, self._request = spec, group, request
        self.reasons: list[str] = []
        self.shortfall: Shortfall | None = None
        """None until `run` has returned, and where it returned all."""

    async def run(
        self, calls: CloudCalls, folder: RentalFolder, host_key: str, say: Say
    ) -> dict[str, Launched]:
        """Returns the machines by name: `count`, or fewer but `at_least`. Raises RunFailed.

        Those that fail or never answer are removed and replaced; hedges are launched at once.
        Other machines that are not returned are still there.
        """
        group = self.group
        least = group.count if group.at_least is None else group.at_least
        ready: list[Launched] = []
        cause: Cause | None = None
        for attempt in range(1 + self._spec.replace):
            missing = group.count - len(ready)
            hedge = group.hedge if attempt == 0 else 0
            request = replace(
                self._request,
                count=missing + hedge,
                at_least=max(1, least - len(ready)),
                tags=self._request.tags,
            )
            began = time.monotonic()
            try:
                granted = await calls.make(request, folder)
            except CloudError as error:
                if least or error.cause not in _TOO_FEW:
                    raise
                cause = error.cause
                self.reasons.append(error.message.rstrip("."))
                break
            answer_s = time.monotonic() - began
            made = [entry for entry in granted if isinstance(entry, Machine)]
            say(f"{group.name}: {plural(len(made), 'machine')} of {group.type} starting")
            following = Following(calls, folder, host_key, self._spec, request, began, answer_s)
            ready += await following.follow(made, missing)
            self.reasons += following.reasons
            if len(ready) >= group.count:
                break
            say(f"{group.name}: {'; '.join(following.reasons) or 'too few were granted'}")
            used = {entry.machine.id for entry in ready}
            await self._give_up(calls, folder, [entry for entry in made if entry.id not in used])
        why = "; ".join(dict.fromkeys(self.reasons)) or "the cloud granted no more"
        if len(ready) < least:
            raise RunFailed(
                f"{len(ready)} of {plural(group.count, 'machine')} of group {group.name} became "
                f"ready, and at least {least} are needed: {why}.",
                "Try another zone, type or market, or give them more time with `boot`.",
            )
        if (missing := group.count - len(ready)) > 0:
            self.shortfall = Shortfall(group.name, missing, cause, why)
        return {
            name: replace(entry, target=entry.target.model_copy(update={"name": name}))
            for name, entry in zip(group.hosts(), ready[: group.count], strict=False)
        }

    async def _give_up(
        self, calls: CloudCalls, folder: RentalFolder, machines: Sequence[Machine]
    ) -> None:
        """Removes machines before others take their place, so that no more of them live at a time
        than the price is quoted for. One that stays is removed with the surplus."""
        for machine in machines:
            folder.note("delete", machine.kind, self.group.region, ids=[machine.id])
            with contextlib.suppress(CloudError):
                await calls.repeat(partial(calls.provider.delete, machine))


class Following:
    """Machines of one call, from the answer to the first login."""

    def __init__(
        self,
        calls: CloudCalls,
        folder: RentalFolder,
        host_key: str,
        spec: RentalSpec,
        request: MachineRequest,
        began: float,
        answer_s: float,
    ) -> None:
        self._calls, self._folder, self._host_key = calls, folder, host_key
        self._spec, self._request, self._began = spec, request, began
        self._answer_s = answer_s
        self._until = began + spec.boot_s
        self._contacts: dict[str, asyncio.Task[Launched | str]] = {}
        self.reasons: list[str] = []

    async def follow(self, made: Sequence[Machine], wanted: int) -> list[Launched]:
        """Returns the first `wanted` machines that are reached, fewer when the others end or the
        time does."""
        waiting = {entry.id: entry for entry in made}
        ready: list[Launched] = []
        try:
            while len(ready) < wanted and (waiting or self._contacts):
                if time.monotonic() >= self._until + _TRY_S:
                    break
                await self._poll(waiting)
                ready += self._reached()
                if len(ready) < wanted and (waiting or self._contacts):
                    await self._pause()
        finally:
            for task in self._contacts.values():
                task.cancel()
            await asyncio.gather(*self._contacts.values(), return_exceptions=True)
        return ready[:wanted]

    async def _pause(self) -> None:
        if self._contacts:
            await asyncio.wait(self._contacts.values(), timeout=POLL_S)
        else:
            await asyncio.sleep(POLL_S)

    async def _poll(self, waiting: dict[str, Machine]) -> None:
        """Moves machines that run from `waiting` to their first contact."""
        if not waiting:
            return
        machines = await self._calls.machines(self._request.region, self._request.tags.run)
        listed = {entry.id: entry for entry in machines if entry.state is not ResourceState.GONE}
        for id_ in list(waiting):
            entry = listed.get(id_)
            if entry is None:
                unseen_s = time.monotonic() - self._began - self._calls.provider.traits.settle_s
                if unseen_s > _TRY_S:
                    self.reasons.append(f"{id_} is gone")
                    del waiting[id_]
            elif entry.state in _ENDED:
                self.reasons.append(
                    f"{id_} is {entry.state}{f': {p}' if (p := entry.problem) else ''}"
                )
                del waiting[id_]
            elif entry.state is ResourceState.READY and (
                entry.address or entry.target or not self._spec.contact
            ):
                self._contacts[id_] = asyncio.create_task(self._contact(entry))
                del waiting[id_]
            elif time.monotonic() >= self._until:
                limit = f"{self._spec.boot_s:g} s"
                self.reasons.append(f"{id_} was still {entry.state} after {limit}")
                del waiting[id_]

    def _reached(self) -> list[Launched]:
        ready = []
        for id_, task in list(self._contacts.items()):
            if task.done():
                del self._contacts[id_]
                result = task.result()
                if isinstance(result, str):
                    self.reasons.append(result)
                else:
                    ready.append(result)
        return ready

    async def _contact(self, machine: Machine) -> Launched | str:
        """Opens the machine as a target, again and again until it answers; the words why not.

        The host key is known before, so that nobody else can answer at its address; the probe is
        verified by its digest.
        """
        if machine.address and not machine.target:
            with self._folder.known_hosts.open("a", encoding="ascii") as file:
                file.write(f"{machine.address} {self._host_key}\n")
        running_s = time.monotonic() - self._began
        record = target_of(machine.id, machine, self._folder)
        # Longer each time: the probe has to get through, also to a slow machine.
        try_s = _TRY_S
        while self._spec.contact:
            target = record.make()
            try:
                await target.open(timeout_s=try_s)
                break
            except NephoscopeError as error:
                if time.monotonic() >= self._until:
                    words = f"{machine.id} never answered: {error.message.rstrip('.')}"
                    admitted = self._spec.login_from
                    return f"{words} (logins are let in from {admitted})" if admitted else words
            finally:
                with contextlib.suppress(NephoscopeError):
                    await target.close()
            await asyncio.sleep(_RETRY_S)
            try_s = min(2 * try_s, max(_TRY_S, self._until - time.monotonic()))
        ready_s = time.monotonic() - self._began
        times = LaunchTimes(self._began, self._answer_s, running_s, ready_s)
        return Launched(machine, record, times)


def target_of(name: str, machine: Machine, folder: RentalFolder) -> TargetRecord:
    """Returns a machine as a target of a plan."""
    values: dict[str, Any] = dict(machine.target) or {
        "kind": "ssh",
        "address": machine.address or machine.private_address or machine.id,
        "user": "root",
        "identity": str(folder.identity),
        "known_hosts": str(folder.known_hosts),
        "inner_network": "/".join((folder.name, machine.region)),
    }
    return kinds.read({**values, "name": kinds.record.as_name(name)})


def request_of(
    spec: RentalSpec, group: MachineGroup, tags: Tags, traits: CloudTraits, **more: Any
) -> MachineRequest:
    """Returns the request for a group. more: further fields of `MachineRequest`."""
    if not traits.user_data:
        more.pop("user_data", None)
    return MachineRequest(
        group.region,
        group.type,
        group.image,
        tags,
        zone=group.zone,
        market=group.market,
        count=group.count,
        disk_bytes=group.disk_bytes,
        placement_group=group.placement_group,
        network=group.network,
        name=f"{spec.name}-{group.name}",
        **more,
    )
