"""The plan's targets while a run lasts: open, lost, reached again, given up.

A target that does not answer any more takes the trial with it, not the run: it is tried again at
the next rounds, the others go on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nephoscope.errors import Lacking, TargetError
from nephoscope.plans import Plan
from nephoscope.plans import Target as Wanted
from nephoscope.runs.environment import Environment
from nephoscope.targets import Target
from nephoscope.targets.kinds.record import CONTROLLER

Factory = Callable[[Wanted], Target]
"""Makes the target of a plan's record."""

GIVEN_UP_AFTER = 3
"""Rounds in a row in which a target was lost."""

PAUSE_S = 2.0
"""Waited before the second try of the only target, twice as long before the third."""


class TargetLost(TargetError):
    """A target does not answer any more. name: which one."""

    def __init__(self, name: str, error: TargetError) -> None:
        super().__init__(error.message, error.hint)
        self.name = name


@dataclass(slots=True)
class _Station:
    wanted: Wanted
    target: Target | None = None
    identity: str = ""
    strikes: int = 0
    struck_in: int | None = None
    given_up: bool = False
    sentence: str = ""


class Stations:
    """The targets of a plan by name. tools: target -> adapters whose tools have to be there."""

    def __init__(
        self,
        plan: Plan,
        factory: Factory,
        environment: Environment,
        opened: Callable[[str, Mapping[str, Any]], None],
        tools: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        self._factory = factory
        self._environment = environment
        self._opened = opened
        self._tools = tools
        self._told: set[str] = set()
        self._all = {wanted.name: _Station(wanted) for wanted in plan.targets}

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Opens all of them; they are closed when the block ends. TargetError when one fails."""
        try:
            for name in self._all:
                await self._open(name)
            yield
        finally:
            for station in self._all.values():
                await _closed(station)

    async def reopen(self, hosts: Iterable[str]) -> None:
        """After these hosts of the lab were made anew: what ran on them is gone."""
        names = set(hosts)
        for name, station in self._all.items():
            if station.wanted.topology_host in names:
                with self.blamed(name):
                    await _closed(station)
                    await self._open(name)

    def __getitem__(self, name: str) -> Target:
        """The open target. TargetLost while it does not answer."""
        station = self._all[name]
        if station.target is None:
            raise TargetLost(name, TargetError(station.sentence or f"{name} is not open."))
        return station.target

    def wanted(self, name: str) -> Wanted:
        """Returns the plan's record of a target."""
        return self._all[name].wanted

    def machines(self, names: Iterable[str]) -> frozenset[str]:
        """The machines on which these targets are; two names may be one machine."""
        return frozenset(self._machine(self._all[name]) for name in names)

    def shares_our_clock(self, name: str) -> bool:
        """Whether the wall clock there is the one here, to the nanosecond."""
        return self[name].shares_clock

    @contextlib.contextmanager
    def blamed(self, name: str) -> Iterator[None]:
        """Turns a TargetError of a target's verb into a TargetLost that names it."""
        try:
            yield
        except TargetLost:
            raise
        except TargetError as error:
            raise TargetLost(name, error) from error

    def lose(self, error: TargetLost, round: int) -> None:
        """A target did not answer in this round."""
        station = self._all[error.name]
        station.sentence = str(error)
        if station.struck_in != round:
            station.strikes += 1
            station.struck_in = round
        station.given_up = station.strikes >= GIVEN_UP_AFTER

    def answered(self, names: Iterable[str]) -> None:
        """These targets finished a trial: earlier losses do not count any more."""
        for name in names:
            self._all[name].strikes = 0

    async def begin_round(self, round: int) -> list[str]:
        """Tries lost targets again; returns those that are given up since the last round."""
        going = [station for station in self._all.values() if not station.given_up]
        if going and all(station.struck_in is not None for station in going):
            # Nothing else can be measured meanwhile: a machine that reboots is given some time.
            await asyncio.sleep(PAUSE_S * max(station.strikes for station in going))
        for name, station in self._all.items():
            if station.struck_in is None or station.given_up or station.struck_in == round:
                continue
            await _closed(station)
            try:
                await self._open(name)
                station.struck_in = None
            except (TargetError, Lacking) as error:
                self.lose(TargetLost(name, TargetError(error.message, error.hint)), round)
        ended = [name for name in self.given_up if name not in self._told]
        self._told.update(ended)
        return ended

    def missing(self, names: Iterable[str], round: int) -> TargetLost | None:
        """The first of these targets that cannot be used in this round; None when all can."""
        for name in names:
            station = self._all[name]
            if station.given_up or station.target is None or station.struck_in == round:
                return TargetLost(name, TargetError(station.sentence or f"{name} is not open."))
        return None

    @property
    def given_up(self) -> dict[str, str]:
        """Name -> sentence of the targets that are not tried again."""
        return {name: s.sentence for name, s in self._all.items() if s.given_up}

    @property
    def all_given_up(self) -> bool:
        """Whether none is left."""
        return all(station.given_up for station in self._all.values())

    async def _open(self, name: str) -> None:
        station = self._all[name]
        placed = self._environment.placed(station.wanted)
        target = self._factory(placed)
        station.target = target
        try:
            fingerprint = await target.open()
            for benchmark in self._tools.get(name, ()):
                await target.tool(benchmark)
        except BaseException:
            station.target = None
            await target.close()
            raise
        station.identity = machine_id(fingerprint)
        self._opened(name, fingerprint)

    def _machine(self, station: _Station) -> str:
        machine, identity = station.wanted.traits().machine, station.identity
        if machine == CONTROLLER or not identity:
            return machine
        here = {
            one.identity for one in self._all.values() if one.wanted.traits().machine == CONTROLLER
        }
        return CONTROLLER if identity in here else identity


def machine_id(fingerprint: Mapping[str, Any]) -> str:
    """The hash of a machine's own id; empty where it hides it."""
    identity = fingerprint.get("identity")
    found = identity.get("machine_id_hash") if isinstance(identity, dict) else None
    return found if isinstance(found, str) else ""


async def _closed(station: _Station) -> None:
    target, station.target = station.target, None
    if target is not None:
        # A machine that is gone cannot be tidied; what runs there ends at its own deadline.
        with contextlib.suppress(TargetError):
            await target.close()
