"""Removal of what was rented: found by tag, removed in order, verified by listing.

A deletion that the cloud accepted is no proof. What counts is a listing that is empty, taken after
the last moment at which something that was asked for before may still appear.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field

from nephoscope.core.errors import RunFailed
from nephoscope.core.naming import plural
from nephoscope.core.records import dataclass
from nephoscope.core.tasks import in_thread, together
from nephoscope.measure.cloud.calls import BackOff, CloudCalls
from nephoscope.measure.cloud.model import CloudResource, Kind, ResourceState
from nephoscope.measure.cloud.provider import CloudError
from nephoscope.measure.provisioning import Say

PATIENCE_S = 900.0
"""For how long a removal goes on before what is left is reported."""

_REFUSALS = 3
"""Listings in a row that a cloud refuses before its region is given up: credentials that expire are
renewed by the cloud's library, and what is left costs money."""

_ORDER = {kind: place for place, kind in enumerate(Kind)}


@dataclass(slots=True)
class Swept:
    """What a removal did. remaining: with the cloud's last words on each; '' where it gave none.
    unlisted: regions that did not answer, with the words. spared: found, and not ours to remove.
    """

    removed: list[CloudResource] = field(default_factory=list)
    remaining: dict[CloudResource, str] = field(default_factory=dict)
    unlisted: dict[str, str] = field(default_factory=dict)
    spared: list[CloudResource] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Returns whether every region was listed and nothing that was wanted gone is left."""
        return not self.remaining and not self.unlisted

    def require_clean(self, again: str) -> None:
        """Raises RunFailed with what is left. again: the command that tries again."""
        if self.is_clean:
            return
        left = [
            f"{resource}{f' ({why})' if why else ''}" for resource, why in self.remaining.items()
        ]
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
    wanted: Callable[[CloudResource], bool],
    settled_s: Callable[[], float],
    say: Say,
    patience_s: float = PATIENCE_S,
) -> Swept:
    """Removes every resource in some regions that is `wanted` gone, and waits until it is.

    run: only of that rental. settled_s: seconds since the epoch from which on a listing shows
    everything that was asked for before, asked after each listing, from which a provider may learn
    how late that is. Raises nothing for what stays: it is in the result.
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
        wanted: Callable[[CloudResource], bool],
        settled_s: Callable[[], float],
        say: Say,
    ) -> None:
        self._calls, self._region, self._run = calls, region, run
        self._wanted, self._settled_s, self._say = wanted, settled_s, say
        self._seen: dict[tuple[Kind, str], CloudResource] = {}
        self._words: dict[tuple[Kind, str], str] = {}

    async def clear(self, patience_s: float) -> Swept:
        """Removes and lists until a settled listing is empty, or the patience ends."""
        until, back_off, before = time.monotonic() + patience_s, BackOff(), -1
        failed = 0
        while True:
            listed_s = time.time()
            try:
                resources = await self._calls.list(self._region, self._run)
            except CloudError as error:
                failed += 1
                if error.passes or failed == _REFUSALS or time.monotonic() >= until:
                    return self._result((), (), unlisted=error.message)
                await back_off.wait(until)
                continue
            failed = 0
            left = [resource for resource in resources if self._wanted(resource)]
            spared = [resource for resource in resources if resource not in left]
            if not left and listed_s >= self._settled_s():
                return self._result((), spared)
            if time.monotonic() >= until:
                return self._result(left, spared)
            if len(left) != before:
                before, back_off = len(left), BackOff()
            await self._remove(left)
            if not left:
                until = max(until, time.monotonic() + self._settled_s() - time.time())
            await back_off.wait(until)

    async def _remove(self, left: Sequence[CloudResource]) -> None:
        """Asks for the removal of all, kind after kind; what is refused is tried again later."""
        new = [resource for resource in left if (resource.kind, resource.id) not in self._seen]
        if new:
            self._say(f"{self._region}: removing {_counts(new)}")
        for resource in sorted(left, key=lambda resource: _ORDER[resource.kind]):
            key = (resource.kind, resource.id)
            self._seen[key] = resource
            if resource.state is ResourceState.LEAVING:
                continue
            try:
                await in_thread(self._calls.provider.delete, resource)
                self._words.pop(key, None)
            except CloudError as error:
                self._words[key] = error.message.rstrip(".")

    def _result(
        self, left: Sequence[CloudResource], spared: Sequence[CloudResource], unlisted: str = ""
    ) -> Swept:
        for resource in left:
            self._seen.setdefault((resource.kind, resource.id), resource)
        keys = {(resource.kind, resource.id) for resource in left}
        unlisted_regions = {self._region: unlisted.rstrip(".")} if unlisted else {}
        if unlisted:
            keys = set(self._seen)
        remaining = {self._seen[key]: self._words.get(key, "") for key in keys}
        gone = [resource for key, resource in self._seen.items() if key not in keys]
        return Swept(gone, remaining, unlisted_regions, list(spared))


def _counts(resources: Sequence[CloudResource]) -> str:
    kinds = [resource.kind for resource in resources]
    return ", ".join(plural(kinds.count(kind), str(kind)) for kind in Kind if kind in kinds)
