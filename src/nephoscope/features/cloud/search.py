"""Machines launched one after the other until one is worth keeping; the others are removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from nephoscope.core.errors import RunFailed, UsageError
from nephoscope.core.records import dataclass
from nephoscope.features.cloud.picking import MachineSearch
from nephoscope.measure.provisioning import Say


@dataclass(frozen=True, slots=True)
class CandidateMachine:
    """A machine that was launched, or started again, and measured.

    values: of the trials; seconds: of a unit of work, their median. rental: by which it is kept or
    removed. host: physical host, as the provider names it; '' where it does not.
    """

    name: str
    rental: str
    id: str
    zone: str
    host: str
    seconds: float
    values: tuple[float, ...]


class CandidateSource(Protocol):
    """Where candidates come from. Each may be kept or removed once."""

    problems: list[str]
    """Machines that gave no candidate, a sentence each."""

    async def launch(self, count: int) -> Sequence[CandidateMachine]:
        """Returns machines, launched and measured; fewer where some failed or gave no value.

        Raises RunFailed where none came about.
        """

    def refuses(self, count: int) -> str:
        """Returns why so many more are not to be launched (the spending limit); '' if they may."""

    async def give_up(self, candidate: CandidateMachine) -> None:
        """Gives a machine up before the next launch, where the best cannot be kept meanwhile."""

    async def remove(self, candidate: CandidateMachine) -> None:
        """Removes a machine and waits until the cloud's list confirms it."""

    async def keep(self, candidate: CandidateMachine) -> None:
        """Leaves a machine up when this process ends."""

    async def close(self) -> None:
        """Removes whatever is neither kept nor removed."""


@dataclass(slots=True)
class Searched:
    """What a search did. candidates: in the order of their launch; stopped: why it ended."""

    candidates: list[CandidateMachine] = field(default_factory=list)
    selected: CandidateMachine | None = None
    launches: int = 0
    stopped: str = ""


async def carry_out(
    source: CandidateSource,
    search: MachineSearch,
    limits: Sequence[float] | None,
    mean_s: float,
    say: Say,
) -> Searched:
    """Searches until a machine is worth keeping, or the launches or the money end.

    limits: see `picking.limits`; None where no mix is known: all launches are made then, of which
    the best is kept. mean_s: seconds of a unit of work that are a relative time of 1. Whatever ends
    it, only the kept machine is left. Raises what the first launch raises.
    """
    search_state = Searched()
    try:
        await _launch_until_kept(source, search, limits, mean_s, say, search_state)
        if search_state.selected is None:
            why = " ".join(source.problems)
            raise RunFailed(
                f"No machine was measured in {search_state.launches} launches. {why}".strip(),
                "Try another type or zone, or give it more time with --budget.",
            )
        await source.keep(search_state.selected)
    finally:
        await source.close()
    return search_state


async def _launch_until_kept(
    source: CandidateSource,
    search: MachineSearch,
    limits: Sequence[float] | None,
    mean_s: float,
    say: Say,
    search_state: Searched,
) -> None:
    while search_state.launches < search.at_most:
        count = min(search.at_once, search.at_most - search_state.launches)
        new = await _next(source, search, count, search_state)
        if new is None:
            return
        search_state.launches += count
        search_state.candidates += new
        await _choose(source, new, search_state)
        if search_state.selected is None:
            continue
        ratio = mean_s / search_state.selected.seconds
        speed = f"; the best has {ratio:.2f} times the speed of the mix"
        say(f"{search_state.launches} of {search.at_most} launched{speed if limits else ''}.")
        if (
            limits is not None
            and search_state.selected.seconds / mean_s <= limits[search_state.launches - 1]
        ):
            if search_state.launches < search.at_most:
                search_state.stopped = "Another launch would cost more than it is expected to save."
            return


async def _next(
    source: CandidateSource, search: MachineSearch, count: int, search_state: Searched
) -> Sequence[CandidateMachine] | None:
    """Returns the next wave; None where the search ends before it, with the reason in `stopped`."""
    if why := source.refuses(count):
        if not search_state.launches:
            raise UsageError(why, "Raise --money, or lower --hours.")
        search_state.stopped = why
        return None
    if search_state.selected is not None and not search.recall:
        await source.give_up(search_state.selected)
        search_state.selected = None
    try:
        return await source.launch(count)
    except (RunFailed, UsageError) as error:
        if search_state.selected is None:
            raise
        search_state.stopped = error.message if error.message.endswith(".") else f"{error.message}."
        return None


async def _choose(
    source: CandidateSource, new: Sequence[CandidateMachine], search_state: Searched
) -> None:
    """Keeps the best of those that are there; removes the others."""
    for entry in new:
        if search_state.selected is not None and search_state.selected.seconds <= entry.seconds:
            await source.remove(entry)
            continue
        if search_state.selected is not None:
            await source.remove(search_state.selected)
        search_state.selected = entry
