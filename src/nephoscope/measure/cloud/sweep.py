"""Removal of what was rented: found by tag, removed in order, verified by listing.

A deletion that the cloud accepted is no proof. What counts is a listing that is empty, taken after
the last moment at which something that was asked for before may still appear.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from nephoscope.core.errors import RunFailed
from nephoscope.core.naming import plural
from nephoscope.core.tasks import in_thread, together
from nephoscope.measure.cloud.calls import BackOff, CloudCalls
from nephoscope.measure.cloud.model import Kind, Resource
from nephoscope.measure.cloud.provider import CloudError
from nephoscope.measure.provisioning import Say

PATIENCE_S = 900.0
"""For how long a removal goes on before what is left is reported."""

_ORDER = {kind: place for place, kind in enumerate(Kind)}


@dataclass(slots=True)
class Swept:
    """What a removal did. remaining: with the cloud's last words on each; '' where it gave none.
    unlisted: regions that did not answer, with the words. spared: found, and not ours to remove.
    """

    removed: list[Resource] = field(default_factory=list)
    remaining: dict[Resource, str] = field(default_factory=dict)
    unlisted: dict[str, str] = field(default_factory=dict)
    spared: list[Resource] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Returns whether every region was listed and nothing that was wanted gone is left."""
        return not self.remaining and not self.unlisted

    def require_clean(self, again: str) -> None:
        """Raises RunFailed with what is left. again: the command that tries again."""
        if self.is_clean:
            return
        left = [f"{one}{f' ({why})' if why else ''}" for one, why in self.remaining.items()]
        left += [f"region {region} ({why})" for region, why in self.unlisted.items()]
        raise RunFailed(
            f"Not confirmed as removed, so it may still be billed: {'; '.join(left[:20])}"
            f"{f'; and {len(left) - 20} more' if len(left) > 20 else ''}.",
            f"Run `{again}` again until it confirms the removal.",
        )


async def sweep(
    calls: CloudCalls,
    regions: Iterable[str],
    *,
    run: str | None,
    wanted: Callable[[Resource], bool],
    settled_s: float,
    say: Say,
    patience_s: float = PATIENCE_S,
) -> Swept:
    """Removes every resource in some regions that is `wanted` gone, and waits until it is.

    run: only of that rental. settled_s: seconds since the epoch from which on a listing shows
    everything that was asked for before. Raises nothing for what stays: it is in the result.
    """
    parts = [
        _Region(calls, region, run, wanted, settled_s, say).clear(patience_s) for region in regions
    ]
    swept = Swept()
    for part in await together(*parts) if parts else ():
        swept.removed += part.removed
        swept.remaining |= part.remaining
        swept.unlisted |= part.unlisted
        swept.spared += part.spared
    return swept


class _Region:
    def __init__(
        self,
        calls: CloudCalls,
        region: str,
        run: str | None,
        wanted: Callable[[Resource], bool],
        settled_s: float,
        say: Say,
    ) -> None:
        self._calls, self._region, self._run = calls, region, run
        self._wanted, self._settled_s, self._say = wanted, settled_s, say
        self._seen: dict[tuple[Kind, str], Resource] = {}
        self._words: dict[tuple[Kind, str], str] = {}

    async def clear(self, patience_s: float) -> Swept:
        """Removes and lists until a settled listing is empty, or the patience ends."""
        until, back_off, before = time.monotonic() + patience_s, BackOff(), -1
        while True:
            listed_s = time.time()
            try:
                found = await self._calls.list(self._region, self._run)
            except CloudError as error:
                return self._result((), (), unlisted=error.message)
            left = [resource for resource in found if self._wanted(resource)]
            spared = [resource for resource in found if resource not in left]
            if not left and listed_s >= self._settled_s:
                return self._result((), spared)
            if time.monotonic() >= until:
                return self._result(left, spared)
            if len(left) != before:
                before, back_off = len(left), BackOff()
            await self._remove(left)
            if not left:
                until = max(until, time.monotonic() + self._settled_s - time.time())
            await back_off.wait(until)

    async def _remove(self, left: Sequence[Resource]) -> None:
        """Asks for the removal of all, kind after kind; what is refused is tried again later."""
        new = [one for one in left if (one.kind, one.id) not in self._seen]
        if new:
            self._say(f"{self._region}: removing {_counts(new)}")
        for resource in sorted(left, key=lambda one: _ORDER[one.kind]):
            key = (resource.kind, resource.id)
            self._seen[key] = resource
            try:
                await in_thread(self._calls.provider.delete, resource)
                self._words.pop(key, None)
            except CloudError as error:
                self._words[key] = error.message.rstrip(".")

    def _result(
        self, left: Sequence[Resource], spared: Sequence[Resource], unlisted: str = ""
    ) -> Swept:
        keys = {(one.kind, one.id) for one in left}
        unlisted_regions = {self._region: unlisted.rstrip(".")} if unlisted else {}
        gone = [] if unlisted else [one for key, one in self._seen.items() if key not in keys]
        remaining = {one: self._words.get((one.kind, one.id), "") for one in left}
        if unlisted:
            remaining = {one: self._words.get(key, "") for key, one in self._seen.items()}
        return Swept(gone, remaining, unlisted_regions, list(spared))


def _counts(resources: Sequence[Resource]) -> str:
    kinds = [one.kind for one in resources]
    return ", ".join(plural(kinds.count(kind), str(kind)) for kind in Kind if kind in kinds)
