"""The plan's targets while a run lasts: open, lost, reached again, given up.

A target that does not answer any more takes the trial with it, not the run: it is tried again at
the next rounds, the others go on meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from types import MappingProxyType
from typing import Any, Protocol

from nephoscope.core.errors import Lacking, NephoscopeError, TargetError
from nephoscope.core.grouping import group_by
from nephoscope.core.records import dataclass
from nephoscope.measure.plans import Plan
from nephoscope.measure.plans.model import Invalidity
from nephoscope.measure.runs import concurrency
from nephoscope.measure.runs.environment import Environment
from nephoscope.measure.targets.kinds.record import CONTROLLER
from nephoscope.measure.targets.kinds.record import TargetRecord as Wanted
from nephoscope.measure.targets.probe.target import Target
from nephoscope.stats import facts

Factory = Callable[[Wanted], Target]
"""Makes the target of a plan's record."""

GIVEN_UP_AFTER = 3
"""Rounds in a row in which a target was lost."""

_OPENING = -(2**31)
"""Stands for a round before all others."""

OPENED_AT_ONCE = 32
"""Targets that are opened at one time: each login takes CPU time here."""

RETRY_WAIT_S = 0.5
"""Time for which a round waits for lost targets that are tried again. A machine that is back
answers sooner; one that is away would hold up every round for the whole time limit."""

FAILURES_NAMED = 3
"""Targets named in the sentence on those that cannot be opened."""

PAUSE_S = 2.0
"""Waited before the second try of the only target, twice as long before the third."""


class TargetLost(TargetError):
    """A target does not answer any more. name: which one."""

    def __init__(self, name: str, error: NephoscopeError) -> None:
        super().__init__(error.message, error.hint)
        self.name = name


class Opened(Protocol):
    """Takes in the fingerprints of targets that were opened."""

    def add(self, name: str, fingerprint: Mapping[str, Any]) -> None:
        """Takes in one. TargetError where it is another machine than before."""

    def store(self) -> None:
        """Stores those that were taken in."""


@dataclass(slots=True)
class _PooledTarget:
    wanted: Wanted
    machine: str
    target: Target | None = None
    identity: str = ""
    has_quota: bool = False
    strikes: int = 0
    struck_in: int | None = None
    is_abandoned: bool = False
    sentence: str = ""


class TargetPool:
    """The targets of a plan by name. tools, servers: target -> adapters whose tools, or servers,
    have to be there.

    absent: target -> reason for which it is not tried. With this mapping, even an empty one, a
    target that cannot be opened is lost as one that stops to answer is; None makes it an error.
    """

    def __init__(
        self,
        plan: Plan,
        factory: Factory,
        environment: Environment,
        opened: Opened,
        tools: Mapping[str, Collection[str]] = MappingProxyType({}),
        servers: Mapping[str, Collection[str]] = MappingProxyType({}),
        absent: Mapping[str, str] | None = None,
    ) -> None:
        self._factory = factory
        self._environment = environment
        self._opened = opened
        self._tools = tools
        self._servers = servers
        self._reported: set[str] = set()
        self._all = {
            wanted.name: _PooledTarget(wanted, wanted.traits().machine) for wanted in plan.targets
        }
        self._collected = group_by(
            [wanted.name for wanted in plan.targets if wanted.collected_by],
            lambda name: self._all[name].wanted.collected_by,
        )
        self._own_identities: set[str] = set()
        """Of the machine that the controller runs on; a new boot may show another one."""
        self._retries: dict[str, asyncio.Task[None]] = {}
        self._patient = absent is not None
        for name, sentence in (absent or {}).items():
            self._all[name].is_abandoned = True
            self._all[name].sentence = sentence

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Opens all of them; they are closed when the block ends.

        TargetError or Lacking when one fails, or, for a patient pool, when none can be opened.
        """
        try:
            await self._open_all()
            yield
        finally:
            await self._end_retries()
            await asyncio.gather(*map(_closed, self._all.values()))

    async def _open_all(self) -> None:
        failures: list[NephoscopeError] = []

        async def open_one(name: str) -> bool:
            try:
                await self._open(name)
            except (TargetError, Lacking) as error:
                failures.append(error)
                if self._patient:
                    self.lose(TargetLost(name, error), _OPENING)
            return True

        names = [name for name, pooled in self._all.items() if not pooled.is_abandoned]
        collected = [name for name in names if self._all[name].wanted.collected_by]
        direct = [name for name in names if not self._all[name].wanted.collected_by]
        for group in (direct, collected):  # collectors before those that they collect for
            await concurrency.run_on_free_machines(
                group, open_one, lambda name: frozenset({self._all[name].machine}), OPENED_AT_ONCE
            )
        self._opened.store()
        if failures and not self._patient:
            raise _of_several(failures, len(names))
        if not any(pooled.target for pooled in self._all.values()):
            raise TargetError("; ".join(s.sentence for s in self._all.values()))

    async def reopen(self, hosts: Iterable[str]) -> None:
        """After these hosts of the lab were made anew: what ran on them is gone."""
        names = set(hosts)
        for name, pooled in self._all.items():
            if pooled.wanted.boots_as in names:
                with self.blamed(name):
                    await _closed(pooled)
                    await self._open(name)
                self._opened.store()

    def __getitem__(self, name: str) -> Target:
        """The open target. TargetLost while it does not answer."""
        pooled = self._all[name]
        if pooled.target is None:
            raise TargetLost(name, TargetError(pooled.sentence or f"{name} is not open."))
        return pooled.target

    def wanted(self, name: str) -> Wanted:
        """Returns the plan's record of a target."""
        return self._all[name].wanted

    def accepts(self, name: str) -> Sequence[Invalidity]:
        """Returns the reasons that make no trial of a target invalid.

        A target that shows a CPU quota when it is opened is a machine of that size: without the
        trials that the quota stopped, the fastest ones alone would stand for it.
        """
        return ("throttled",) if self._all[name].has_quota else ()

    def machines(self, names: Iterable[str]) -> frozenset[str]:
        """The machines that these targets need; two names may be one machine.

        A collector also needs those that it collects for: what it forwards is load on it.
        """
        every = [*names]
        collected = [neighbour for name in every for neighbour in self._collected.get(name, ())]
        return frozenset(self._machine(self._all[name]) for name in (*every, *collected))

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
        pooled = self._all[error.name]
        pooled.sentence = str(error)
        if pooled.struck_in != round:
            pooled.strikes += 1
            pooled.struck_in = round
        pooled.is_abandoned = pooled.strikes >= GIVEN_UP_AFTER

    def answered(self, names: Iterable[str]) -> None:
        """These targets finished a trial: earlier losses do not count any more."""
        for name in names:
            self._all[name].strikes = 0

    async def begin_round(self, round: int) -> list[str]:
        """Tries lost targets again; returns those that are given up since the last round."""
        going = [pooled for pooled in self._all.values() if not pooled.is_abandoned]
        if going and all(pooled.struck_in is not None for pooled in going):
            # Nothing else can be measured meanwhile: a machine that reboots is given some time.
            await asyncio.sleep(PAUSE_S * max(pooled.strikes for pooled in going))
        for name, pooled in self._all.items():
            if pooled.struck_in is None or pooled.is_abandoned or pooled.struck_in == round:
                continue
            if name not in self._retries:
                self._retries[name] = asyncio.ensure_future(self._retry(name, round))
        await self.await_retries(RETRY_WAIT_S)
        ended = [name for name in self.abandoned if name not in self._reported]
        self._reported.update(ended)
        return ended

    async def await_retries(self, limit_s: float | None = None) -> None:
        """Waits until those lost targets that are tried again answered or did not; at most so
        long."""
        if not self._retries:
            return
        done, _ = await asyncio.wait(self._retries.values(), timeout=limit_s)
        self._retries = {name: task for name, task in self._retries.items() if task not in done}
        for task in done:
            task.result()
        self._opened.store()

    async def _retry(self, name: str, round: int) -> None:
        """Opens a lost target again, while the others are measured."""
        pooled = self._all[name]
        await _closed(pooled)
        try:
            await self._open(name)
            pooled.struck_in = None
        except (TargetError, Lacking) as error:
            self.lose(TargetLost(name, error), round)

    async def _end_retries(self) -> None:
        retries, self._retries = [*self._retries.values()], {}
        for task in retries:
            task.cancel()
        await asyncio.gather(*retries, return_exceptions=True)

    def missing(self, names: Iterable[str], round: int) -> TargetLost | None:
        """The first of these targets that cannot be used in this round; None when all can."""
        for name in names:
            pooled = self._all[name]
            if pooled.is_abandoned or pooled.target is None or pooled.struck_in == round:
                return TargetLost(name, TargetError(pooled.sentence or f"{name} is not open."))
        return None

    @property
    def abandoned(self) -> dict[str, str]:
        """Name -> sentence of the targets that are not tried again."""
        return {name: s.sentence for name, s in self._all.items() if s.is_abandoned}

    @property
    def all_abandoned(self) -> bool:
        """Returns whether none is left."""
        return all(pooled.is_abandoned for pooled in self._all.values())

    async def _open(self, name: str) -> None:
        pooled = self._all[name]
        placed = self._environment.placed(pooled.wanted)
        if placed.collected_by:
            target = placed.make_through(self[placed.collected_by])
        else:
            target = self._factory(placed)
        try:
            fingerprint = await target.open()
            for benchmark in self._tools.get(name, ()):
                await target.tool(benchmark)
            for benchmark in self._servers.get(name, ()):
                await target.require_server(benchmark)
            self._opened.add(name, fingerprint)
        except BaseException:
            await target.close()
            raise
        pooled.target = target
        pooled.identity = machine_id(fingerprint)
        if pooled.machine == CONTROLLER and pooled.identity:
            self._own_identities.add(pooled.identity)
        pooled.has_quota = bool(facts.number(fingerprint, "limits.cpu_quota_cpus"))

    def _machine(self, pooled: _PooledTarget) -> str:
        if pooled.machine == CONTROLLER or not pooled.identity:
            return pooled.machine
        return CONTROLLER if pooled.identity in self._own_identities else pooled.identity


def _of_several(failures: Sequence[NephoscopeError], total: int) -> NephoscopeError:
    """Returns the error of targets that cannot be opened: the only one, or one that counts them."""
    if len(failures) == 1:
        return failures[0]
    words = " ".join(failure.message for failure in failures[:FAILURES_NAMED])
    more = f" And {len(failures) - FAILURES_NAMED} more." if len(failures) > FAILURES_NAMED else ""
    return TargetError(
        f"{len(failures)} of {total} targets cannot be opened: {words}{more}", failures[0].hint
    )


def machine_id(fingerprint: Mapping[str, Any]) -> str:
    """The hash of a machine's own id; empty where it hides it."""
    identity = fingerprint.get("identity")
    machine_hash = identity.get("machine_id_hash") if isinstance(identity, dict) else None
    return machine_hash if isinstance(machine_hash, str) else ""


async def _closed(pooled: _PooledTarget) -> None:
    target, pooled.target = pooled.target, None
    if target is not None:
        # A machine that is gone cannot be tidied; what runs there ends at its own deadline.
        with contextlib.suppress(TargetError):
            await target.close()
